"""Features of texts: a reader and parts that share what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.features.text.extended import ExtendedFeatures
from didyma.features.text.first_stage import FirstStage
from didyma.features.text.part import Part
from didyma.features.text.reading import Reader, Reading, State
from didyma.features.text.small import SmallFeatures
from didyma.features.text.windows import STEP, WINDOW, Windowed, cut
from didyma.features.text.word_vectors import WordVectors

__all__ = ["TextFeatures"]

# What a saved state may name.
PARTS: dict[str, type[Part]] = {
    part.__name__: part for part in (ExtendedFeatures, FirstStage, SmallFeatures, WordVectors)
}


class TextFeatures:
    """Features of queries and passages.

    >>> passages = [["Jane Austen wrote Emma.", "A clock has two hands."]]
    >>> features = TextFeatures([SmallFeatures()]).fit(["who wrote Emma?"], passages)
    >>> X = features.transform(["who wrote Emma?"], passages)
    >>> X.shape == (2, len(features.names)) and bool((X[0, :14] > X[1, :14]).all())
    True

    Parameters
    ----------
    parts : sequence of Part
        Their columns stand side by side; the texts are read once for all of them.
    language : str or None
        Of the stop words and stems; "auto" finds it by counting stop words in `fit`, None does
        without both.
    """

    def __init__(self, parts: Sequence[Part], language: str | None = "auto") -> None:
        self.parts, self.language = tuple(parts), language

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        self._reader()  # which columns there are may depend on the language
        return tuple(name for part in self.parts for name in part.names)

    def fit(
        self,
        queries: Sequence[str],
        passages: Sequence[Sequence[str]],
        scores: Sequence[ArrayLike] | None = None,
    ) -> Self:
        """Learn how rare words are, and what the parts learn; ``passages[q]`` are those of q."""
        self.reader_ = Reader.fit(queries, passages, self.language)
        reading = self.reader_.read(queries, passages, scores)
        for part in self.parts:
            part.fit(reading)
        return self

    def transform(
        self,
        queries: Sequence[str],
        passages: Sequence[Sequence[str]],
        scores: Sequence[ArrayLike] | None = None,
    ) -> NDArray[np.float64]:
        """Features of each passage, those of the first query first; shape (n_rows, n_columns)."""
        return self._columns(self._reader().read(queries, passages, scores))

    def transform_windows(
        self,
        queries: Sequence[str],
        passages: Sequence[Sequence[str]],
        scores: Sequence[ArrayLike] | None = None,
        *,
        size: int = WINDOW,
        step: int = STEP,
    ) -> Windowed:
        """Features of windows of at most ``size`` words, one every ``step``, of each passage.

        >>> features = TextFeatures([SmallFeatures()]).fit(["x"], [["x y"]])
        >>> windowed = features.transform_windows(["x y"], [["a b c x y", "z"]], size=3, step=2)
        >>> score, window = windowed.best(windowed.X[:, 0])
        >>> windowed.spans[window].tolist()
        [[4, 9], [0, 1]]
        """
        reading, windows = cut(self._reader().read(queries, passages, scores), size, step)
        return replace(windows, X=self._columns(reading))

    def _columns(self, reading: Reading) -> NDArray[np.float64]:
        return np.hstack([part.columns(reading) for part in self.parts])

    def state(self) -> State:
        """What was learned, as arrays and values that JSON can hold."""
        arrays, values = self._reader().state()
        arrays = {f"reader/{name}": array for name, array in arrays.items()}
        record: dict[str, Any] = {"language": self.language, "reader": values, "parts": []}
        for n, part in enumerate(self.parts):
            learned, values = part.state()
            arrays |= {f"{n}/{name}": array for name, array in learned.items()}
            record["parts"].append([type(part).__name__, values])
        return arrays, record

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], record: dict[str, Any]) -> Self:
        """The features that have learned this."""
        parts = [
            PARTS[name].from_state(_under(f"{n}/", arrays), values)
            for n, (name, values) in enumerate(record["parts"])
        ]
        features = cls(parts, record["language"])
        features.reader_ = Reader.from_state(_under("reader/", arrays), record["reader"])
        return features

    def _reader(self) -> Reader:
        if not hasattr(self, "reader_"):
            raise DataError("the features are not fitted yet: call fit first")
        return self.reader_


def _under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
