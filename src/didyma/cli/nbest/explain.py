"""`didyma nbest explain`: why a model chose otherwise than the decoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli import options
from didyma.cli.nbest.options import Data, Inputs, Model, read_lists
from didyma.cli.output import print_json
from didyma.errors import DataError
from didyma.report.table import aligned, listed
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.nbest.reranker import NBestReranker


def explain(
    model: Model,
    data: Data,
    id: Annotated[
        str | None,
        options.text(
            "ID",
            "Which list.",
            default="the first for which model and decoder choose differently",
        ),
    ] = None,
    top: Annotated[int, options.number("How many features to show.", min=1, metavar="K")] = 10,
    inputs: Inputs = None,
    as_json: options.Json = False,
) -> None:
    """Show which features made a model choose otherwise than the decoder.

    Positive numbers speak for the choice of the model, negative ones for that
    of the decoder, all in the unit of scores. Of the low-rank model they are
    pairs of a feature of the input and one of the output.

    [bold]Example[/bold]

    didyma nbest explain svm.safetensors test.jsonl --id 7
    """
    lists = read_lists(data, inputs, None)

    from didyma.nbest.formats import inputs_of, outputs_of
    from didyma.nbest.reranker import DECODERS_OWN, NBestReranker
    from didyma.report.choices import first_choices

    reranker = NBestReranker.load(model)
    number = _find(lists, id, reranker, data)
    single = lists.select_lists([number])
    name, input = str(lists.groups.names[number]), inputs_of(single)[0]
    if not len(single):
        raise DataError("expected candidates, found none", path=data, field=f"list {name!r}")
    scores = single.scores if reranker.uses_scores else None
    reasons = reranker.explain(input, outputs_of(single), scores)
    chosen = int(single.groups.choose([reason.raw for reason in reasons])[0])
    first = int(first_choices(single)[0])
    why = reasons[chosen].above(reasons[first])
    amounts = {part.name: part.amount for part in why.differences if part.amount}
    decoder, total = amounts.pop(DECODERS_OWN, 0.0), sum(amounts.values())
    shown, rest = list(amounts.items())[:top], sum(list(amounts.values())[top:])
    better, worse = reasons[chosen].text, reasons[first].text
    if as_json:
        texts = {"input": input.text, "chosen_text": better, "first_text": worse}
        places = {"chosen": chosen, "first": first, "decoder": decoder, "model": total}
        listing = [{"name": part, "value": amount} for part, amount in shown]
        print_json({"id": name, **texts, **places, "contributions": listing, "rest": rest})
        return
    texts = {"list": name, "input": input.text, "decoder": worse, "chosen": better}
    typer.echo(listed({key: text or "" for key, text in texts.items()}) + "\n")
    parts = [(DECODERS_OWN, decoder), *shown, ("all others", rest), ("sum", decoder + total)]
    typer.echo(aligned([[part, decimal(value + 0.0, signed=True)] for part, value in parts]))


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
