"""`didyma nbest explain`: why a model chose otherwise than the decoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import options as common
from didyma.cli.nbest import options
from didyma.cli.nbest.reading import read_lists
from didyma.cli.output import aligned, listed, print_json
from didyma.errors import DataError
from didyma.report.table import decimal

if TYPE_CHECKING:
    from didyma.data import Lists
    from didyma.estimators.nbest import NBestReranker

__all__ = ["explain"]


def explain(
    model: options.Model,
    data: options.Data,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="Which list.",
            show_default="the first that is chosen from differently",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="K", help="How many features to show.")
    ] = 10,
    inputs: options.Inputs = None,
    as_json: common.Json = False,
) -> None:
    """Show which features made a model choose otherwise than the decoder.

    Positive numbers speak for the choice of the model, negative ones for that
    of the decoder, all in the unit of scores. Of the low-rank model they are
    pairs of a feature of the input and one of the output.

    [bold]Example[/bold]

    didyma nbest explain svm.safetensors test.jsonl --id 7
    """
    lists = read_lists(data, inputs, None)

    from didyma.estimators.nbest import NBestReranker
    from didyma.formats.nbest import inputs_of, outputs_of

    reranker = NBestReranker.load(model)
    number = _find(lists, id, reranker, data)
    found = reranker.explain(lists, number, top)
    name, input = str(lists.groups.names[number]), inputs_of(lists)[number].text
    first, chosen = (
        outputs_of(lists)[lists.groups.starts[number] + place].text
        for place in (found.first, found.chosen)
    )
    if as_json:
        record = found._asdict() | {
            "contributions": [part._asdict() for part in found.contributions],
        }
        texts = {"input": input, "chosen_text": chosen, "first_text": first}
        print_json({"id": name, **texts, **record})
        return
    texts = {"list": name, "input": input or "", "decoder": first, "chosen": chosen}
    typer.echo(listed(texts) + "\n")
    parts = [("decoder's score", found.decoder), *found.contributions, ("all others", found.rest)]
    parts.append(("sum", found.decoder + found.model))
    typer.echo(aligned([[name, decimal(value + 0.0, signed=True)] for name, value in parts]))


def _find(lists: Lists, id: str | None, reranker: NBestReranker, path: Path) -> int:
    """The number of the list that is asked for."""
    if id is not None:
        names = lists.groups.names.tolist()
        if id not in names:
            raise DataError(f"expected a list {id!r}, found none", path=path, field="id")
        return int(names.index(id))

    from didyma.report.choices import first_choices

    differing = reranker.rerank(lists) != first_choices(lists)
    if not differing.any():
        raise DataError(
            "the model and the decoder agree on all lists; choose one by --id", path=path
        )
    return int(differing.argmax())
