"""`didyma nbest eval` and `compare`: models next to the decoder and the best possible choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options as common
from didyma.cli.compare import Test, names_of
from didyma.cli.nbest import options
from didyma.cli.nbest.options import LossName
from didyma.cli.nbest.reading import read_lists
from didyma.cli.output import aligned, print_json, say, waiting
from didyma.formatting import decimal
from didyma.report.table import footnote

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.nbest.reranker import NBestReranker
    from didyma.report.choices import Judge
    from didyma.report.table import Row

__all__ = ["compare", "evaluate"]


def evaluate(
    model: options.Model,
    data: options.Data,
    test: options.Significance = Test.wilcoxon,
    loss: options.Loss = LossName.auto,
    loss_column: options.LossColumn = "loss",
    inputs: options.Inputs = None,
    references: options.References = None,
    as_json: common.Json = False,
) -> None:
    """Evaluate a model next to the decoder's first choice and the oracle.

    The loss is the mean over the lists that have candidates; exact is the share
    of choices with a loss of 0. The oracle takes the best candidate of each list.
    If candidates are as long as their reference, accuracy is the share of right
    tokens. Gain and wins are against the decoder.

    [bold]Examples[/bold]

    didyma nbest eval svm.safetensors test.jsonl

    didyma nbest eval svm.safetensors test.nbest --inputs test.de --references test.en
    """
    rerankers = _load([model])
    lists = read_lists(data, inputs, references, loss_column)
    _print_comparison(lists, rerankers, test, False, loss, as_json)


def compare(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help="Two or more models.")],
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help=options.DATA)],
    test: options.Significance = Test.wilcoxon,
    holm: Annotated[
        bool, typer.Option("--holm", help="Correct p-values for the number of models.")
    ] = False,
    loss: options.Loss = LossName.auto,
    loss_column: options.LossColumn = "loss",
    inputs: options.Inputs = None,
    references: options.References = None,
    as_json: common.Json = False,
) -> None:
    """Compare models with the decoder's first choice, the oracle and each other.

    The columns are explained by eval --help.

    [bold]Examples[/bold]

    didyma nbest compare svm.safetensors low-rank.safetensors --data test.jsonl

    didyma nbest compare *.safetensors --data test.jsonl --holm
    """
    if len(models) < 2:
        raise typer.BadParameter("give two or more to compare", param_hint="MODEL")
    rerankers = _load(models)
    lists = read_lists(data, inputs, references, loss_column)
    _print_comparison(lists, rerankers, test, holm, loss, as_json)


def _load(models: list[Path]) -> dict[str, NBestReranker]:
    """All models by their names in the table, before work is done for any of them."""
    from didyma.nbest.reranker import NBestReranker

    names = names_of(models, ("decoder", "oracle"))
    return {name: NBestReranker.load(path) for path, name in names.items()}


def _print_comparison(
    lists: Lists,
    rerankers: Mapping[str, NBestReranker],
    test: Test,
    holm: bool,
    loss: LossName,
    as_json: bool,
) -> None:
    from didyma.report.choices import Judge

    judge = Judge(lists, loss.value)
    chosen = {}
    for name, reranker in rerankers.items():
        with waiting(f"reranking by {name}"):
            chosen[name] = reranker.rerank(judge.lists)
        if len(rerankers) > 1:
            say(f"{name}: loss {decimal(judge.summary(chosen[name])['loss'])}")
    rows = judge.compare(chosen, test.value, correct=holm)
    if as_json:
        counts = {"n_lists": len(judge.lists.groups), "n_empty": judge.n_empty}
        systems = {row.name: _record(row) for row in rows}
        print_json({**counts, "loss": judge.measure, "test": test.value, "systems": systems})
    else:
        typer.echo(_comparison_text(rows, judge, test, holm))


def _record(row: Row) -> dict[str, Any]:
    """A system for machines; only what was tested has more than means."""
    if row.p_value is None:
        return dict(row.means)
    counts = {"wins": row.wins, "losses": row.losses, "ties": row.ties}
    return {**row.means, "gain": row.difference, **counts, "p_value": row.p_value}


def _comparison_text(rows: Sequence[Row], judge: Judge, test: Test, holm: bool) -> str:
    table = [["system", *rows[0].means, "gain", "W/L/T", "p"], *(row.cells for row in rows)]
    tested = footnote(rows, test.value.removesuffix("-test"), "against the decoder", holm)
    if not tested:
        table = [cells[: 1 + len(rows[0].means)] for cells in table]
    kinds = {"given": "as given", "hamming": "wrong tokens", "edit": "normalised edit distance"}
    note = f"loss: {kinds[judge.measure]}, mean over {len(judge.lists.groups)} lists"
    if judge.n_empty:
        note += f" ({judge.n_empty} have no candidates)"
    return "\n".join(filter(None, [aligned(table), note, tested]))
