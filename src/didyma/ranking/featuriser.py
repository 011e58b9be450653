"""The interface of featurisers, which turn candidates into rows of features; and their union."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Lists
from didyma.data.matrix import Matrix, is_sparse
from didyma.model import Saved, Serialisable
from didyma.model.codec import Record, State, Tensors, decode, encode
from didyma.protocol import Estimator

__all__ = ["Featuriser", "Joined", "LearnedFeatures", "State", "Windowed", "check_array"]


@dataclass(frozen=True, eq=False)
class Windowed:
    """Features of windows, in the order of their items.

    Attributes
    ----------
    X : matrix of shape (n_windows, n_columns)
    item : array of shape (n_windows,)
        Number of each window's item among all rows of the lists, ascending.
    spans : array of shape (n_windows, 2), or None
        Where the window stands in the item, in code points; None if each item is one window.

    >>> windowed = Windowed(np.zeros((3, 0)), np.array([0, 0, 1]))
    >>> windowed.best([0.5, 2.0, 1.0])
    (array([2., 1.]), array([1, 2]))
    """

    X: Matrix
    item: NDArray[np.int64]
    spans: NDArray[np.int32] | None = None

    def best(self, scores: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Score of each item, that of its best window, and which window that is."""
        values = np.asarray(scores, np.float64)
        # Of equal scores the first window is best.
        order = np.lexsort((-values, self.item))
        first = order[np.flatnonzero(np.diff(self.item, prepend=-1))]
        return values[first], first


class Featuriser(Serialisable, ABC):
    """Turns the items of `Lists` into features, one row for each; labels are never seen.

    What it is and has learned are its fields (`didyma.model.Saved`).

    >>> class Length(Featuriser):
    ...     "The number of letters of a passage."
    ...     names = ("length",)
    ...     def fit(self, lists):
    ...         return self
    ...     def transform(self, lists):
    ...         return np.array([[len(text)] for text in lists.items], float)
    >>> from didyma import Lists
    >>> lists = Lists.of_texts(["who?"], [["Ida.", "Nobody."]])
    >>> Length().fit(lists).transform(lists).tolist()
    [[4.0], [7.0]]
    """

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Name of each column."""

    @property
    def uses_scores(self) -> bool:
        """Whether the first stage's scores make features."""
        return False

    @abstractmethod
    def fit(self, lists: Lists) -> Self:
        """Learn from the lists that a model is trained on."""

    @abstractmethod
    def transform(self, lists: Lists) -> Matrix:
        """Features of each row; shape (n_rows, n_columns)."""

    def windowed(self, lists: Lists) -> Windowed:
        """Features of the windows of each row: of itself, unless long items are cut."""
        return Windowed(self.transform(lists), np.arange(len(lists)))


class Joined(Featuriser):
    """The columns of several featurisers side by side.

    >>> from didyma.text.features import FirstStage, SmallFeatures, TextFeatures
    >>> lists = Lists.of_texts(["a ship"], [["ships sail", "a tree"]], scores=[[2.0, 1.0]])
    >>> joined = Joined([TextFeatures([SmallFeatures()]), TextFeatures([FirstStage()])])
    >>> joined.fit(lists).transform(lists).shape
    (2, 18)
    """

    featurisers: Annotated[tuple[Featuriser, ...], Saved()]

    def __init__(self, featurisers: Sequence[Featuriser]) -> None:
        self.featurisers = tuple(featurisers)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return tuple(name for part in self.featurisers for name in part.names)

    @property
    def uses_scores(self) -> bool:
        """Whether the first stage's scores make features of one of them."""
        return any(part.uses_scores for part in self.featurisers)

    def fit(self, lists: Lists) -> Self:
        """Fit all of them."""
        for part in self.featurisers:
            part.fit(lists)
        return self

    def transform(self, lists: Lists) -> Matrix:
        """Features of each row; sparse if some of them are."""
        parts = [part.transform(lists) for part in self.featurisers]
        if not any(map(is_sparse, parts)):
            return np.hstack(parts)
        import scipy.sparse as sp

        return sp.csr_array(sp.hstack(parts, format="csr"))


def check_array(
    name: str, array: NDArray[Any], dtype: type[np.generic], shape: tuple[int, ...]
) -> None:
    """Raise ValueError if an array that was read is not of this type and shape."""
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(
            f"{name} should be {np.dtype(dtype)} of shape {shape}, but is {array.dtype} of shape "
            f"{array.shape}"
        )


class LearnedFeatures(Featuriser, Estimator):
    """A featuriser that is an estimator: its state are its parameters and what it has learned."""

    def state(self) -> State:
        """Arrays by the names of their attributes; parameters and all other attributes."""
        arrays, record = encode(self)
        return arrays, {"parameters": record["parameters"], "learned": record["attributes"]}

    @classmethod
    def from_state(cls, arrays: Tensors, values: Record) -> Self:
        """The featuriser that has this state; ValueError if it does not fit together."""
        record = {"class": cls.__name__, "parameters": values["parameters"]}
        columns = {"n_features": None, "feature_names": None}
        found: Self = decode({**record, "attributes": values["learned"], **columns}, arrays)
        return found
