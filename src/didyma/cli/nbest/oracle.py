"""`didyma nbest oracle`: what there is to gain."""

from __future__ import annotations

import typer

from didyma.cli import options as common
from didyma.cli.nbest import options
from didyma.cli.nbest.options import LossName
from didyma.cli.nbest.reading import read_lists
from didyma.cli.output import aligned, print_json
from didyma.formatting import decimal

__all__ = ["oracle"]

COUNTS = ("n", "lists")


def oracle(
    data: options.Data,
    loss: options.Loss = LossName.auto,
    loss_column: options.LossColumn = "loss",
    references: options.References = None,
    as_json: common.Json = False,
) -> None:
    """Show the loss of the best choice among the first n candidates.

    At n = 1 this is the decoder's own choice; the last line bounds what any
    reranker can do with these lists.

    [bold]Examples[/bold]

    didyma nbest oracle test.jsonl

    didyma nbest oracle test.nbest --references test.en --loss edit --json
    """
    lists = read_lists(data, None, references, loss_column)

    from didyma.report.choices import Judge

    rows = list(Judge(lists, loss.value).oracles())
    if as_json:
        print_json({"n_lists": len(lists.groups), "oracle": rows})
        return
    names = list(rows[0])
    table = [[str(row[k]) if k in COUNTS else decimal(row[k]) for k in names] for row in rows]
    typer.echo(aligned([names, *table]))
