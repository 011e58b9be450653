"""`didyma compare`: systems side by side, with a paired test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import options
from didyma.cli.evaluate import evaluate_model
from didyma.cli.groups import command
from didyma.cli.inputs import InputColumns, read_model
from didyma.cli.output import print_json, print_table, print_warning
from didyma.errors import DataError
from didyma.report.table import comparison

if TYPE_CHECKING:
    from didyma.metrics import Evaluation

EXTENSIONS = (".didyma", ".gz", ".run", ".safetensors", ".txt")


@command
def compare(
    *,
    systems: Annotated[
        list[Path], options.argument("MODEL|RUN", "Two or more runs, or two or more models.")
    ],
    qrels: Annotated[Path | None, options.file("Compare runs, by these TREC judgements.")] = None,
    data: Annotated[Path | None, options.file("Compare models, on these judged results.")] = None,
    measures: Annotated[
        str, options.text("NAMES", "Measures; the first is the one that is tested.")
    ] = options.MEASURES,
    baseline: Annotated[
        str | None,
        options.text(
            "NAME",
            "The system that others are compared with: a file, or its name in the table.",
            default="the first",
        ),
    ] = None,
    test: options.Test = "wilcoxon",
    holm: Annotated[
        bool, options.flag("--holm", "Correct p-values for the number of systems.")
    ] = False,
    latex: Annotated[
        bool, options.flag("--latex", "Print a LaTeX tabular (booktabs) instead.")
    ] = False,
    columns: InputColumns,
    as_json: options.Json = False,
) -> None:
    """Compare runs, or models, with a baseline: means, wins / losses / ties,
    p-values.

    [bold]Examples[/bold]

    didyma compare --qrels qrels.txt map.run roc.run bm25.run --baseline bm25

    didyma compare --data test.txt map.safetensors roc.safetensors --latex

    didyma compare --data test.jsonl live.safetensors new.safetensors --holm

    Rerankers of texts are compared on texts; didyma rerank compare tells more of
    two of them, and leaves out the queries that they were trained on.
    """
    if (qrels is None) == (data is None):
        raise typer.BadParameter("give one of them", param_hint="--qrels / --data")
    if len(systems) < 2:
        raise typer.BadParameter("give two or more to compare", param_hint="MODEL|RUN")
    options.at_most_one(latex=latex, json=as_json)

    from didyma.metrics import parse_all

    tested, *_ = parse_all(measures)
    names = names_of(systems)
    chosen = None if baseline is None else names.get(Path(baseline), baseline)
    if chosen not in (None, *names.values()):
        expected = ", ".join(names.values())
        raise DataError(f"expected one of {expected}, found {chosen!r}", field="baseline")
    if qrels is not None:
        evaluations = _evaluate_runs(systems, qrels, measures)
    else:
        assert data is not None
        evaluations = _evaluate_models(systems, data, measures, columns)
    table = comparison(
        dict(zip(names.values(), evaluations)),
        measure=str(tested),
        baseline=chosen,
        test=test,
        correct=holm,
    )
    if as_json:
        print_json(table.to_dict())
    elif latex:
        typer.echo(table.latex())
    else:
        print_table(table)


def names_of(systems: list[Path], taken: Sequence[str] = ()) -> dict[Path, str]:
    """What a table calls each file: its name without extensions, or its path if that is taken."""
    for path, times in Counter(systems).items():
        if times > 1:
            raise DataError(f"given {times} times", path=path)
    short = {path: _short(path) for path in systems}
    shared = Counter([*short.values(), *taken])
    return {path: name if shared[name] == 1 else str(path) for path, name in short.items()}


def _short(path: Path) -> str:
    while path.suffix.lower() in EXTENSIONS:
        path = path.with_suffix("")
    return path.name


def _evaluate_runs(systems: list[Path], qrels: Path, measures: str) -> Iterator[Evaluation]:
    from didyma.data.trec import read_qrels, read_run
    from didyma.metrics import RunEvaluator

    judged = read_qrels(qrels)
    evaluator, runs = RunEvaluator(judged, measures), [read_run(path) for path in systems]
    for path, run in zip(systems, runs):
        lacking = [
            str(qid)
            for qid in dict.fromkeys(judged.qid.tolist())
            if qid not in set(run.qid.tolist())
        ]
        if lacking:
            shown = ", ".join(lacking[:5]) + (", …" if len(lacking) > 5 else "")
            print_warning(f"{path}: lacks {len(lacking)} judged queries, which count 0: {shown}")
    return map(evaluator, runs)


def _evaluate_models(
    systems: list[Path], data: Path, measures: str, columns: InputColumns
) -> Iterator[Evaluation]:
    if _is_reranker(systems[0]):
        return _evaluate_rerankers(systems, data, measures)
    models = [read_model(path) for path in systems]  # before work is done for any of them
    return (evaluate_model(model, data, columns, measures) for model in models)


def _is_reranker(path: Path) -> bool:
    from didyma.model import Model

    return Model.read(path).name in ("Cascade", "Reranker", "TextReranker")


def _evaluate_rerankers(systems: list[Path], data: Path, measures: str) -> Iterator[Evaluation]:
    """Values of rerankers of texts, without those of their options that only `rerank` takes."""
    from didyma.data.texts import reader as texts
    from didyma.report.model_comparison import unseen
    from didyma.text.reranker import load_reranker

    models = [load_reranker(path) for path in systems]
    for path, model in zip(systems, models):
        lists = texts.read(data, schema=model.schema_)
        if seen := int((~unseen(lists, model)).sum()):
            print_warning(f"{path}: {seen} of {len(lists.groups)} queries were in its training")
    return (model.evaluate(texts.read(data, schema=model.schema_), measures) for model in models)
