"""`didyma nbest eval`, `compare` and `oracle`: models, the decoder and the best possible choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options
from didyma.cli.compare import names_of
from didyma.cli.groups import command
from didyma.cli.nbest.options import DATA, Data, ListFiles, Loss, Model
from didyma.cli.output import print_json, print_message, waiting
from didyma.report.table import aligned, footnote
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.nbest.reranker import NBestReranker
    from didyma.report.choices import Judge
    from didyma.report.table import Row

COUNTS = ("n", "lists")


@command
def evaluate(
    *,
    model: Model,
    data: Data,
    test: options.Test = "wilcoxon",
    judging: Loss,
    files: ListFiles,
    as_json: options.Json = False,
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
    _print_comparison(files.read(data), rerankers, test, False, judging["loss"], as_json)


@command
def compare(
    *,
    models: Annotated[list[Path], options.argument("MODEL", "One model or more.")],
    data: Annotated[Path, options.file(DATA)],
    test: options.Test = "wilcoxon",
    holm: Annotated[
        bool, options.flag("--holm", "Correct p-values for the number of models.")
    ] = False,
    judging: Loss,
    files: ListFiles,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Compare models with the decoder's first choice, the oracle and each other.

    The columns are explained by eval --help. All files are looked at before any
    list is scored: one that holds another kind of model is named.

    [bold]Examples[/bold]

    didyma nbest compare svm.safetensors low-rank.safetensors --data test.jsonl

    didyma nbest compare *.safetensors --data test.jsonl --holm
    """
    rerankers = _load(models)
    _print_comparison(files.read(data), rerankers, test, holm, judging["loss"], as_json)


@command
def oracle(*, data: Data, judging: Loss, files: ListFiles, as_json: options.Json = False) -> None:
    """Show the loss of the best choice among the first n candidates.

    At n = 1 this is the decoder's own choice; the last line bounds what any
    reranker can do with these lists.

    [bold]Examples[/bold]

    didyma nbest oracle test.jsonl

    didyma nbest oracle test.nbest --references test.en --loss edit --json
    """
    lists = files.read(data)

    from didyma.report.choices import Judge

    rows = list(Judge(lists, judging["loss"]).oracles())
    if as_json:
        print_json({"n_lists": len(lists.groups), "oracle": rows})
        return
    names = list(rows[0])
    table = [[str(row[k]) if k in COUNTS else decimal(row[k]) for k in names] for row in rows]
    typer.echo(aligned([names, *table]))


def _load(models: list[Path]) -> dict[str, NBestReranker]:
    """All models by their names in the table, before work is done for any of them."""
    from didyma.nbest.reranker import NBestReranker

    names = names_of(models, ("decoder", "oracle"))
    return {name: NBestReranker.load(path) for path, name in names.items()}


def _print_comparison(
    lists: Lists,
    rerankers: Mapping[str, NBestReranker],
    test: str,
    holm: bool,
    loss: str,
    as_json: bool,
) -> None:
    from didyma.report.choices import Judge

    judge = Judge(lists, loss)
    chosen = {}
    for name, reranker in rerankers.items():
        with waiting(f"reranking by {name}"):
            chosen[name] = reranker.rerank(judge.lists)
        if len(rerankers) > 1:
            print_message(f"{name}: loss {decimal(judge.summary(chosen[name])['loss'])}")
    rows = judge.compare(chosen, test, correct=holm)
    if as_json:
        counts = {"n_lists": len(judge.lists.groups), "n_empty": judge.n_empty}
        systems = {row.name: _record(row) for row in rows}
        print_json({**counts, "loss": judge.measure, "test": test, "systems": systems})
    else:
        typer.echo(_comparison_text(rows, judge, test, holm))


def _record(row: Row) -> dict[str, Any]:
    """A system for machines; only what was tested has more than means."""
    if row.p_value is None:
        return dict(row.means)
    counts = {"wins": row.wins, "losses": row.losses, "ties": row.ties}
    return {**row.means, "gain": row.difference, **counts, "p_value": row.p_value}


def _comparison_text(rows: Sequence[Row], judge: Judge, test: str, holm: bool) -> str:
    table = [["system", *rows[0].means, "gain", "W/L/T", "p"], *(row.cells for row in rows)]
    tested = footnote(rows, test.removesuffix("-test"), "against the decoder", holm)
    if not tested:
        table = [cells[: 1 + len(rows[0].means)] for cells in table]
    kinds = {"given": "as given", "hamming": "wrong tokens", "edit": "normalised edit distance"}
    note = f"loss: {kinds[judge.measure]}, mean over {len(judge.lists.groups)} lists"
    if judge.n_empty:
        note += f" ({judge.n_empty} have no candidates)"
    return "\n".join(filter(None, [aligned(table), note, tested]))
