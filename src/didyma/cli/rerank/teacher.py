"""`didyma rerank distil` and `didyma rerank cascade`: rerankers with a teacher."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from didyma.cli import inputs, options, rerankers
from didyma.cli.groups import command
from didyma.cli.output import check_output, end_if_interrupted, print_json, print_table
from didyma.cli.progress import asking, searching
from didyma.cli.rerankers import Embedding, Model, TeacherOptions
from didyma.errors import placed
from didyma.report.table import listed


@command
def distil(
    *,
    files: inputs.TrainTextFiles,
    taught: TeacherOptions,
    judged: Annotated[
        Path | None, options.file("Further queries with passages and labels, as TRAIN.")
    ] = None,
    dev_share: Annotated[
        float, options.number("Share of queries to judge the student by.", min=0, max=0.9)
    ] = 0.2,
    output: options.Output = Path("reranker.didyma.safetensors"),
    parameters: Annotated[dict[str, Any], rerankers.PARAMETERS],
    embedding: Embedding,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Train a reranker on the scores that a teacher gives to passages.

    The teacher, such as a large cross-encoder, scores the candidates of each
    query. Queries with judgements (a label above 0) count as they are judged. A
    share of the queries is held out: they say how much of the teacher's gain
    over the best order that needs no training is kept. If the command is ended,
    the same command goes on with the passages that have no score yet.

    [bold]Examples[/bold]

    didyma rerank distil queries.jsonl --teacher http://localhost:8080/rerank -o small.safetensors

    didyma rerank distil queries.jsonl --teacher "python teacher.py" --judged train.tsv

    didyma rerank distil --queries topics.tsv --first-stage docs.index --teacher "python teacher.py"
    """
    files.check()
    check_output(output, *files.paths, judged)
    began = time.perf_counter()
    teacher, store = taught.open(output)
    rerankers.check_parameters(parameters, embedding)
    parameters |= embedding.parameters
    lists = files.read(parameters["language"], encoder=embedding.encoder)
    further = (
        None if judged is None else inputs.JudgedTextFiles(judged).read(parameters["language"])
    )

    from didyma import model as model_file
    from didyma.report.table import comparison
    from didyma.text.distillation import distil as train
    from didyma.text.text_reranker import TextReranker

    with placed(files.path), ExitStack() as later, asking() as count:
        shown: dict[str, Any] = {}  # the search begins when the teacher is done

        def telling(name: str) -> Callable[[Any], object]:
            def tell(progress: Any) -> object:
                if not shown:
                    shown.update(later.enter_context(searching()))
                return shown[name](progress)

            return tell

        callbacks: dict[str, Any] = {name: telling(name) for name in ("callback", "on_encoded")}
        student = TextReranker(**parameters, **callbacks)
        done = train(
            lists,
            teacher,
            student,
            judged=further,
            held_out=dev_share,
            store=store,
            callback=count,
        )
    counts = {"queries": done.n_taught + done.n_judged, "judged": done.n_judged}
    summary = {"train": {"file": str(files.path), **counts, "teacher": teacher.name}}
    model_file.save(student, output, summary={**summary, "verdict": str(student.gate_)})
    if as_json:
        print_json(
            {
                "model": str(output),
                "teacher": teacher.name,
                "n_taught": done.n_taught,
                "n_judged": done.n_judged,
                "kept": [gain.to_dict() for gain in done.kept],
                "gate": student.gate_.to_dict(),
                "scores": str(store.folder),
                "interrupted": student.interrupted_,
                "wall_seconds": time.perf_counter() - began,
            }
        )
    else:
        for gain in done.kept:
            print_table(comparison(gain.evaluations, measure=gain.measure))
        typer.echo(f"\n{done}\n\n{student.gate_}\n")
        size = f"{output.stat().st_size / 1e6:.2f} MB, after {time.perf_counter() - began:.1f} s"
        typer.echo(listed({"teacher's scores": str(store.folder), "saved to": f"{output}, {size}"}))
    end_if_interrupted(student.interrupted_, "reranker")


@command
def cascade(
    *,
    model: Model,
    files: inputs.QueryFiles,
    taught: TeacherOptions,
    output: Annotated[
        Path,
        options.file("Where reranker, threshold and name of the teacher go.", "--output", "-o"),
    ] = Path("cascade.didyma.safetensors"),
    budget: Annotated[
        int, options.number("Passages of a query to ask about at most.", min=0, metavar="N")
    ] = 10,
    top: Annotated[int, options.number("Passages whose order matters.", min=1, metavar="K")] = 1,
    share: Annotated[
        float, options.number("Share of the teacher's gain to keep.", min=0.01, max=1.0)
    ] = 0.95,
    measure: Annotated[
        str | None,
        options.text("NAME", "Measure to judge by.", default="AP, or nDCG for a teacher's scores"),
    ] = None,
    plot: Annotated[
        Path | None, options.file("Draw quality over questions into a .png, .svg or .pdf.")
    ] = None,
    embedding: Embedding,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Find out when a reranker should ask a teacher, and save both as one model.

    The teacher is asked about passages whose raw scores differ by less than a
    threshold from those of the top. The table has the measure by how much is
    asked, beside that of asking about the first passages of every query. The
    threshold is the lowest that keeps the share of the gain; it is 0, which
    asks nothing, if no gain is sure. Without labels the teacher scores all
    passages, and what counts is how near the order comes to its own.

    [bold]Example[/bold]

    didyma rerank cascade reranker.didyma.safetensors dev.tsv --teacher http://localhost:8080/rerank
    """
    files.check()
    check_output(output, model, *files.paths)
    check_output(plot, model, *files.paths, output)
    if plot is not None:
        from didyma.report.plots import check_picture, require_matplotlib

        check_picture(plot)
        require_matplotlib("drawing a curve")
    teacher, store = taught.open(output)
    if measure is not None:
        measure = options.read_measure(measure)
    from didyma.text.cascade import Cascade

    tuned = Cascade(rerankers.load(model, embedding), teacher, budget, top=top)
    lists = files.read(tuned.language, encoder=embedding.encoder)
    with placed(files.path), asking() as count:
        tuned.tune(lists, measure, share=share, store=store, callback=count)
    tuned.save(output)
    if plot is not None:
        from didyma.report.plots import draw_cascade, write_picture

        write_picture(draw_cascade(tuned.curve_), plot)
    if as_json:
        print_json(
            {
                "model": str(output),
                "teacher": teacher.name,
                "threshold": tuned.threshold,
                "curve": tuned.curve_.to_dict(),
            }
        )
        return
    typer.echo(tuned.curve_.text())
    asks = "nothing, as no gain is sure" if tuned.threshold == 0 else "what is unsure"
    if tuned.threshold is None:
        asks = f"the first {budget} passages of every query"
    threshold = "none" if tuned.threshold is None else f"{tuned.threshold:.4g}"
    typer.echo("\n" + listed({"threshold": f"{threshold}: asks {asks}", "saved to": str(output)}))
