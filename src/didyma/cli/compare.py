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
from didyma.cli.output import print_json, print_table
from didyma.errors import DataError
from didyma.report.table import comparison

if TYPE_CHECKING:
    from didyma.metrics import Evaluation

__all__ = ["compare", "names_of"]

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

    evaluator = RunEvaluator(read_qrels(qrels), measures)
    return map(evaluator, [read_run(path) for path in systems])


def _evaluate_models(
    systems: list[Path], data: Path, measures: str, columns: InputColumns
) -> Iterator[Evaluation]:
    models = [read_model(path) for path in systems]  # before work is done for any of them
    return (evaluate_model(model, data, columns, measures) for model in models)
