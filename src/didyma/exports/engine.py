"""The interface of an export format: names of columns, the file, and scores by the file."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from didyma.data.matrix import Columns
from didyma.errors import DataError
from didyma.exports.description import Description, FloatArray


class Engine(ABC):
    """Renders descriptions, and scores rows by what it has rendered as the engine would.

    Scoring looks at the contents alone, so that comparing it with the model's own scores tells
    whether the file says what the model does.
    """

    title: ClassVar[str]
    precision: ClassVar[type[np.floating[Any]]] = np.float64
    """In which the engine computes."""
    adds_constant: ClassVar[bool] = True
    """Whether a model of it can add a constant to all scores."""
    by_name: ClassVar[bool] = False
    """Whether it finds columns by their names, not by their places."""
    refuses_negative: ClassVar[bool] = False
    """Whether features are scores of queries, which must not be below 0."""
    unnamed: ClassVar[str] = "column_{label}"
    """What a column without a name is called, by its label or its place."""
    illegal: ClassVar[str] = ""
    """A pattern of what names cannot hold."""
    hint: ClassVar[str] = ""
    """A note for users of such a file."""
    takes_lines: ClassVar[bool] = True
    """Whether it can hold a linear model, or trees alone."""
    clips: ClassVar[bool] = True
    """Whether columns of a linear model may count no further than some limit."""

    def names(self, features: Columns) -> list[str]:
        """What columns are called in the file."""
        if features.names is None:
            labels = enumerate(features.labels)
            return [self.unnamed.format(place=place, label=label) for place, label in labels]
        return spelled(features.names, self.illegal) if self.illegal else list(features.names)

    def check(self, description: Description, names: Sequence[str]) -> None:
        """Refuse a model that the engine cannot hold."""
        if description.lines and not self.takes_lines:
            raise DataError(
                f"{self.title} holds trees: a linear model cannot be one; choose another format"
            )
        clipped = [names[line.column] for line in description.lines if line.clipped]
        if clipped and not self.clips:
            raise DataError(
                f"{self.title} has no normaliser that clips, as the scaler of this model does "
                f"(column {clipped[0]!r}{' and others' if len(clipped) > 1 else ''}); choose "
                "another format"
            )

    def place(self, edge: float) -> float:
        """The edge that stands for one in the file; numbers of training are beside both alike."""
        return edge

    @abstractmethod
    def render(self, description: Description, names: Sequence[str], name: str) -> bytes:
        """The file of the model of that name, whose columns are called ``names``."""

    @abstractmethod
    def score(self, contents: bytes, names: Sequence[str], rows: FloatArray) -> FloatArray:
        """Scores of rows of all columns, by the contents of a file."""


class LuceneEngine(Engine):
    """An engine on Lucene: JSON with columns by name, and sums in single precision.

    Its linear models have a weight for each column and a standard normaliser for those scaled.
    """

    precision = np.float32
    adds_constant = False
    by_name = True
    clips = False

    @staticmethod
    def as_json(model: dict[str, Any]) -> bytes:
        """The contents of a file."""
        return (json.dumps(model, indent=2) + "\n").encode()

    @staticmethod
    def linear_scores(
        weights: Mapping[str, float],
        normalisers: Mapping[str, tuple[Any, Any]],
        names: Sequence[str],
        rows: FloatArray,
    ) -> FloatArray:
        """Σ_j w_j (x_j − mean_j) / deviation_j in the order of the weights."""
        columns = dict(zip(names, rows.astype(np.float32).T))
        for name, (mean, deviation) in normalisers.items():
            columns[name] = (columns[name] - np.float32(mean)) / np.float32(deviation)
        total = np.zeros(len(rows), np.float32)
        for name, weight in weights.items():
            total += columns[name] * np.float32(weight)
        return total.astype(np.float64)


def spelled(names: Sequence[str], illegal: str) -> list[str]:
    """Names with an underscore for each part that matches a pattern, and still no two alike.

    >>> spelled(["title bm25", "title.bm25", "age"], "[^A-Za-z0-9_]")
    ['title_bm25', 'title_bm25_2', 'age']
    """
    spelling: dict[str, None] = {}
    for name in names:
        stem = re.sub(illegal, "_", name) or "_"
        number, unique = 1, stem
        while unique in spelling or (unique != name and unique in names):
            number += 1
            unique = f"{stem}_{number}"
        spelling[unique] = None
    return list(spelling)
