"""What n-best lists are made of: inputs, and outputs that a decoder proposes for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists, joined
from didyma.data.passage import Passage
from didyma.errors import DataError
from didyma.values import kind_of

Vector: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """A proposed output: its text, and what is known about it besides its score and its loss.

    ``features`` are named numbers, ``vector`` its representation, ``other`` further fields of its
    file. Texts are tokens with white space between them; spaces inside a token must be escaped.

    >>> Output("NN VBZ", {"lm": -2.5}).features
    {'lm': -2.5}
    """

    text: str
    features: Mapping[str, float] | None = None
    vector: Vector | None = None
    other: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """What outputs are proposed for: its text, the right output as far as it is known, vectors.

    >>> Input("time flies", reference="NN VBZ").reference
    'NN VBZ'
    """

    text: str | None = None
    reference: str | None = None
    vector: Vector | None = None
    reference_vector: Vector | None = None
    other: Mapping[str, Any] = field(default_factory=dict)


def of_outputs(
    inputs: Sequence[Input | str],
    outputs: Sequence[Sequence[Output | str]],
    *,
    scores: Sequence[ArrayLike] | None = None,
    losses: Sequence[ArrayLike] | None = None,
    references: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
) -> Lists:
    """Lists with ``outputs[i]`` for ``inputs[i]``, in the decoder's order, and so all others.

    >>> of_outputs(["time flies"], [["NN NNS", "NN VBZ"]], references=["NN VBZ"])
    Lists(2 rows of Output, 1 queries)
    """
    queries = [input if isinstance(input, Input) else Input(input) for input in inputs]
    if references is not None:
        queries = [
            replace(query, reference=reference)
            for query, reference in zip(queries, references, strict=True)
        ]
    sizes = [len(candidates) for candidates in outputs]
    if len(sizes) != len(queries):
        raise DataError(f"{len(sizes)} lists for {len(queries)} inputs", field="outputs")
    return Lists(
        [item if isinstance(item, Output) else Output(item) for item in chain(*outputs)],
        grouping=Groups.from_lists(sizes, ids),
        queries=queries,
        scores=joined(scores, sizes, "scores"),
        losses=joined(losses, sizes, "losses"),
    )


def outputs_of(lists: Lists) -> Sequence[Output]:
    """The items, which must be outputs."""
    if not isinstance(lists, Lists):
        raise DataError(f"expected Lists, found {kind_of(lists)}", field="lists")
    if not isinstance(lists.items, list) or not all(map(_is_output, lists.items)):
        raise DataError("expected Lists of outputs: see didyma.nbest.formats", field="items")
    return cast("Sequence[Output]", lists.items)


def _is_output(item: object) -> bool:
    return isinstance(item, Output)


def inputs_of(lists: Lists) -> Sequence[Input]:
    """The queries, which must be inputs; such without anything known where there are none."""
    if lists.queries is None:
        return [Input()] * len(lists.groups)
    if not all(isinstance(query, Input) for query in lists.queries):
        raise DataError("expected Lists of outputs: see didyma.nbest.formats", field="queries")
    return lists.queries


def passage_of(value: Any) -> Passage:
    """An output as a passage, with its numbers as metadata; anything else as `Passage.of` does."""
    if not isinstance(value, Output):
        return Passage.of(value)
    numbers = {"features": value.features, "vector": value.vector}
    metadata = {**value.other, **{name: n for name, n in numbers.items() if n is not None}}
    return Passage(value.text, metadata.pop("id", None), metadata)


def output_of(document: Passage, n: int) -> Output:
    """The inverse of `passage_of`; ``n`` is the number of the document, for messages."""
    features, vector = (document.metadata.get(name) for name in ("features", "vector"))
    try:
        numbers = None if features is None else {str(k): float(features[k]) for k in features}
        entries = None if vector is None else np.asarray(vector, np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "expected features with numbers, and a vector of numbers", field=f"document {n}"
        ) from None
    values = [*(numbers or {}).values(), *np.ravel([] if entries is None else entries)]
    if not np.isfinite(values).all() or (entries is not None and entries.ndim != 1):
        raise DataError("expected finite numbers", field=f"document {n}")
    return Output(document.text, numbers, entries)
