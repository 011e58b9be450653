"""What a passage network makes of texts, as features for other rankers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma.applications.passages.ranker import PassageRanker
from didyma.data import Lists
from didyma.model import Model, State
from didyma.ranking import Featuriser


class PassageEmbedding(Featuriser):
    """[φ(q), φ(d)] of a trained `PassageRanker`, 2 · filters columns.

    It learned with the network, so that `fit` has nothing to do: the lists that another ranker
    learns from may be others.

    >>> from didyma import Lists
    >>> from didyma.applications.passages import PassageRanker
    >>> asked, told = ["who sings ?", "who runs ?"], ["Ann sings .", "Bob runs ."]
    >>> lists = Lists.of_texts(asked, [told, told], [[1, 0], [0, 1]])
    >>> ranker = PassageRanker(dimension=4, filters=8, epochs=1).fit(lists)
    >>> PassageEmbedding(ranker).fit(lists).transform(lists).shape
    (4, 16)
    """

    def __init__(self, ranker: PassageRanker) -> None:
        self.ranker = ranker

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        sides = ("question", "passage")
        return tuple(f"{side}_{k}" for side in sides for k in range(self.ranker.filters))

    def fit(self, lists: Lists) -> Self:
        """Leave everything as it is."""
        return self

    def transform(self, lists: Lists) -> NDArray[np.float64]:
        """The vectors of question and passage of each row."""
        return self.ranker.embed(lists)

    def state(self) -> State:
        """The network and its words."""
        arrays, record = Model.of(self.ranker).state()
        return arrays, {"ranker": record}

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The embedding by this network."""
        ranker = Model.from_state(arrays, values["ranker"]).estimator
        if not isinstance(ranker, PassageRanker):
            raise ValueError(f"expected a PassageRanker, found {type(ranker).__name__}")
        return cls(ranker)
