"""`didyma nbest rerank`: sort the candidates of each list by a model's scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from didyma.cli import options
from didyma.cli.nbest.options import Data, Inputs, Model, read_lists
from didyma.cli.output import check_output, print_message, waiting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.data.lists import Lists

DECODER_SCORE = "decoder_score"


def rerank(
    model: Model,
    data: Data,
    output: Annotated[Path, options.file("File to write.", "--output", "-o")],
    best: Annotated[
        bool, options.flag("--best", "Write only the text of the best candidate, a line each.")
    ] = False,
    inputs: Inputs = None,
) -> None:
    """Sort the candidates of each list by a model's scores, and write them.

    The format is that of DATA, and nothing is lost: what was the score becomes
    the feature decoder_score. References and losses are not looked at. The best
    of an empty list is an empty line.

    [bold]Examples[/bold]

    didyma nbest rerank svm.safetensors test.jsonl -o reranked.jsonl

    didyma nbest rerank svm.safetensors test.nbest --inputs test.de --best
    -o test.en
    """
    check_output(output, model, data, inputs)
    lists = read_lists(data, inputs, None)

    from didyma.files import replace_when_done
    from didyma.nbest import formats as nbest
    from didyma.nbest.reranker import NBestReranker

    reranker = NBestReranker.load(model)
    with waiting("reranking"):
        scores = reranker.predict(lists)
    if best:
        places = lists.groups.choose(scores)
        with replace_when_done(output) as file:
            for first, place in zip(lists.groups.starts, places):
                file.write(f"{lists.items[first + place].text if place >= 0 else ''}\n")
    else:
        kind = "jsonl" if nbest.is_jsonl(data) else "moses"
        nbest.write(_reordered(lists, scores), output, format=kind)
    print_message(f"{len(lists.groups)} lists written to {output}")


def _reordered(lists: Lists, scores: NDArray[np.float64]) -> Lists:
    """Each list sorted by new scores; the old ones become features."""
    import numpy as np

    from didyma.nbest.formats import outputs_of

    outputs = list(outputs_of(lists))
    if lists.scores is not None:
        outputs = [
            replace(output, features={**(output.features or {}), DECODER_SCORE: former})
            for output, former in zip(outputs, lists.scores.tolist())
        ]
    order = np.lexsort((-scores, lists.groups.codes))
    return replace(
        lists,
        items=[outputs[row] for row in order.tolist()],
        scores=scores[order],
        losses=None if lists.losses is None else lists.losses[order],
    )
