"""The two views of the low-rank model: bags of features, or vectors that items come with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.model import Saved
from didyma.nbest.bags import Bag
from didyma.nbest.formats import Input, Output, inputs_of, outputs_of
from didyma.protocol import check_is_fitted
from didyma.ranking.featuriser import LearnedFeatures

VECTORS = "vectors"


class GivenVectors(LearnedFeatures):
    """The entries of the vector that each item has, all of one length.

    >>> from didyma.nbest.formats import Output
    >>> lists = Lists([Output("NN", vector=np.array([1.0, 2.0]))])
    >>> GivenVectors().fit(lists).transform(lists).tolist()
    [[1.0, 2.0]]
    """

    length_: Annotated[int, Saved()]

    @property
    def names(self) -> tuple[str, ...]:
        """The number of each entry."""
        check_is_fitted(self, "length_")
        return tuple(map(str, range(self.length_)))

    def fit(self, lists: Lists) -> Self:
        """Learn their length."""
        self.length_ = _stacked(lists).shape[1]
        return self

    def transform(self, lists: Lists) -> NDArray[np.float64]:
        """The vector of each item; shape (n_rows, length)."""
        check_is_fitted(self, "length_")
        rows = _stacked(lists)
        if len(rows) and rows.shape[1] != self.length_:
            raise DataError(
                f"expected vectors of length {self.length_}, found {rows.shape[1]}", field="vectors"
            )
        return rows.reshape(len(rows), self.length_)


View: TypeAlias = Bag | GivenVectors


def learn_views(
    lists: Lists, input_view: str, output_view: str, min_count: int
) -> tuple[View, View]:
    """The views of inputs and of outputs; outputs learn from references too, if they are bags.

    "auto" is vectors where all items have them, else suffixes of inputs and n-grams of outputs.
    """
    inputs, outputs = inputs_of(lists), outputs_of(lists)
    of_input = _view(input_view, "suffixes", inputs, min_count)
    of_output = _view(output_view, "n-grams", outputs, min_count)
    right = [Output(input.reference) for input in inputs if input.reference is not None]
    of_input.fit(Lists(written_inputs(lists) if isinstance(of_input, Bag) else inputs))
    of_output.fit(Lists([*right, *outputs] if isinstance(of_output, Bag) else outputs))
    return of_input, of_output


def _view(kind: str, default: str, items: Sequence[Any], min_count: int) -> View:
    if kind == "auto":
        kind = default if any(item.vector is None for item in items) else VECTORS
    return GivenVectors() if kind == VECTORS else Bag(kind, min_count=min_count)


def written_inputs(lists: Lists) -> list[Input]:
    """The inputs, once it is sure that all of them have texts."""
    inputs = list(inputs_of(lists))
    for name, input in zip(lists.groups.names, inputs):
        if input.text is None:
            raise DataError("expected an input, found none", field=f"list {str(name)!r}")
    return inputs


def _stacked(lists: Lists) -> NDArray[np.float64]:
    vectors = [item.vector for item in lists.items]
    lengths = {0 if vector is None else len(vector) for vector in vectors}
    if 0 in lengths or len(lengths) > 1:
        raise DataError(f"expected vectors of one length, found {sorted(lengths)}", field="vectors")
    return np.array(vectors, dtype=np.float64).reshape(len(vectors), max(lengths, default=0))
