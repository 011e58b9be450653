"""`didyma passage fit/eval/rank/embed`: a network that ranks passages by how well they answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma import DataError, cli
from didyma.applications.networks import options as neural
from didyma.cli import options
from didyma.files import format_suffix, replace_when_done
from didyma.report import aligned, decimal

if TYPE_CHECKING:
    from didyma.applications.passages.ranker import PassageRanker
    from didyma.data import Lists

app = cli.group(
    """Rank passages by how well they answer a question, from their words.

    [bold]Train, evaluate, apply:[/bold]

    didyma passage fit train.tsv --dev dev.tsv --loss ap -o passage.didyma.safetensors

    didyma passage eval passage.didyma.safetensors test.tsv

    didyma passage rank passage.didyma.safetensors test.tsv -o ranked.tsv

    [bold]Its sentence vectors as features of other rankers:[/bold]

    didyma passage embed passage.didyma.safetensors train.tsv -o train.npz

    didyma fit train.npz --model-type latent-perceptron

    Data are lines of question, sentence and label, with tabs between them, as
    WikiQA has them, with or without a header; or a TREC QA folder."""
)

DATA = "Question, sentence, label on each line (.gz too), or a TREC QA folder."
MEASURES = {"MAP": "AP", "MRR": "RR", "P@1": "P@1"}

RANKER = neural.network_options(
    "didyma.applications.passages.ranker.PassageRanker",
    ["loss", "feature_map", neural.FIXED_VECTORS],
    ["dimension", "filters", "width", "hidden", "similarity", "dropout"],
)
Model = Annotated[Path, options.argument("MODEL", "A model that didyma passage fit has saved.")]
Data = Annotated[Path, options.argument("DATA", DATA)]


@app.command()
@cli.command
def fit(
    *,
    train: Annotated[Path, options.argument("TRAIN", DATA)],
    output: options.Output = Path("passage.didyma.safetensors"),
    dev: Annotated[Path | None, options.file("Held-out questions, to choose the epoch by.")] = None,
    vectors: neural.Vectors = None,
    parameters: Annotated[dict[str, Any], RANKER],
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Train on questions with judged passages and save the ranker.

    An example is a question with all its passages. Ctrl-C ends training early
    and keeps the best epoch so far (exit code 130).

    [bold]Examples[/bold]

    didyma passage fit train.tsv --dev dev.tsv -o passage.didyma.safetensors

    didyma passage fit train.tsv --dev dev.tsv --loss ap --epochs 12

    didyma passage fit train.tsv --dev dev.tsv --vectors glove.txt.gz --fixed-vectors
    """
    neural.check_files(parameters, output, train, dev, vectors=vectors)
    questions = _read(train)
    held_out = None if dev is None else _read(dev)

    from didyma.applications.passages.ranker import PassageRanker
    from didyma.data import word_vectors as vectors_file

    table = None if vectors is None else vectors_file.read(vectors)
    with neural.training("MAP") as callback:
        ranker = PassageRanker(**parameters, callback=callback).fit(questions, held_out, table)
    about = {"path": str(train), "questions": len(questions.groups)}
    neural.save_trained(ranker, output, about, dev, "MAP", "loss", as_json=as_json)


@app.command("eval")
def evaluate(
    model: Model,
    data: Data,
    every: Annotated[
        bool, options.flag("--all", "Count questions whose passages are all of one kind, too.")
    ] = False,
    device: neural.Device = "auto",
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Show MAP, MRR and P@1 of a model.

    Questions whose passages are all answers, or none of them, have the same value
    in any order. They are left out, unless --all is given. Passages with equal
    scores are put in a random order.

    [bold]Example[/bold]

    didyma passage eval passage.didyma.safetensors test.tsv --json
    """
    import numpy as np

    from didyma import evaluate as measure

    ranker, asked = _load(model, device), _read(data)
    questions = asked if every else asked.select_lists(np.flatnonzero(asked.mixed))
    if not len(questions):
        raise DataError("no question has passages that answer it and others", path=data)
    with cli.waiting("scoring"):
        scores = ranker.predict(questions)
    values = measure(scores, questions.y, questions.groups, ", ".join(MEASURES.values()))
    means = {name: float(values[ir_name].mean()) for name, ir_name in MEASURES.items()}
    n_questions = len(questions.groups)
    counts = {"questions": n_questions, "left_out": len(asked.groups) - n_questions}
    if as_json:
        cli.print_json({**means, **counts})
    else:
        rows = [*((name, decimal(value)) for name, value in means.items())]
        rows += [(name.replace("_", " "), str(count)) for name, count in counts.items()]
        typer.echo(aligned(rows))


@app.command()
def rank(
    model: Model,
    data: Data,
    output: Annotated[
        Path,
        options.file(
            "A table (.tsv) of question, rank, score and sentence, or else a TREC run.",
            "--output",
            "-o",
        ),
    ],
    device: neural.Device = "auto",
    jobs: options.Jobs = None,
) -> None:
    """Rank the passages of each question, best first.

    In a TREC run the n-th question of DATA is called n, and its k-th passage
    n-k. Labels of DATA are not looked at.

    [bold]Examples[/bold]

    didyma passage rank passage.didyma.safetensors test.tsv -o ranked.tsv

    didyma passage rank passage.didyma.safetensors test.tsv -o run.txt
    """
    cli.check_output(output, model, None if data.is_dir() else data)
    ranker, questions = _load(model, device), _read(data)
    with cli.waiting("scoring"):
        scores = ranker.predict(questions)
    if format_suffix(output) == ".tsv":
        _write_table(output, questions, scores)
    else:
        from didyma.data.trec import write_run

        write_run(*_names(questions), scores, output)
    cli.print_message(f"{output}: {len(scores)} passages for {len(questions.groups)} questions")


@app.command()
def embed(
    model: Model,
    data: Data,
    output: Annotated[Path, options.file("A NumPy archive (.npz) to write.", "--output", "-o")],
    device: neural.Device = "auto",
    jobs: options.Jobs = None,
) -> None:
    """Write the vectors of question and passage as features of judged results.

    didyma fit, eval and all other commands read the archive as data. Questions
    are called 1, 2, …, and the k-th passage of the n-th question n-k.

    [bold]Examples[/bold]

    didyma passage embed passage.didyma.safetensors train.tsv -o train.npz

    didyma fit train.npz --model-type latent-perceptron --C 100
    """
    if format_suffix(output) != ".npz":
        raise typer.BadParameter("expected a name that ends in .npz", param_hint="--output")
    cli.check_output(output, model, None if data.is_dir() else data)

    import numpy as np

    from didyma.applications.passages.ranker import PassageEmbedding
    from didyma.data import Lists
    from didyma.data.numpy_file import write

    embedding, questions = PassageEmbedding(_load(model, device)), _read(data)
    with cli.waiting("embedding"):
        X = embedding.transform(questions)
    qid, docid = map(np.array, _names(questions))
    write(Lists(X, questions.y, qid, docid, embedding.names), output)
    size = f"{X.shape[0]} rows of {X.shape[1]} features"
    cli.print_message(f"{output}: {size} for {len(questions.groups)} questions")


def _read(path: Path) -> Lists:
    from didyma.data.texts import qa

    questions = qa.read_trecqa(path, lowercase=False)
    cli.print_message(f"{path}: {len(questions.groups)} questions, {len(questions)} passages")
    return questions


def _load(model: Path, device: str) -> PassageRanker:
    from didyma.applications.passages.ranker import PassageRanker

    return PassageRanker.load(model).set_params(device=device)


def _names(questions: Lists) -> tuple[list[str], list[str]]:
    """A name for the question and the passage of each row."""
    pairs = [
        (f"{n}", f"{n}-{k}")
        for n, size in enumerate(questions.groups.sizes.tolist(), start=1)
        for k in range(1, size + 1)
    ]
    qid, docid = map(list, zip(*pairs))
    return qid, docid


def _write_table(path: Path, questions: Lists, scores: Any) -> None:
    import numpy as np

    groups, sentences = questions.groups, questions.texts
    with replace_when_done(path) as file:
        file.write("question\trank\tscore\tsentence\n")
        for text, first, stop in zip(questions.query_texts, groups.starts, groups.starts[1:]):
            order = first + np.argsort(-scores[first:stop], kind="stable")
            for place, k in enumerate(order.tolist(), start=1):
                file.write(f"{text}\t{place}\t{scores[k]:.6g}\t{sentences[k]}\n")
