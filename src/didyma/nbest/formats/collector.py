"""From the lines of a file to `Lists`: what fits together is collected, anything else refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Groups, Lists
from didyma.errors import DataError
from didyma.nbest.formats.lines import Lines
from didyma.nbest.formats.outputs import Input, Output

Vector: TypeAlias = "NDArray[np.float64]"


class Collector:
    """Lists as they are read: `begin` one, `add` its outputs, `end` it.

    Ids must differ, vectors be equally long, and scores and losses be there for all outputs of the
    file or for none.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._begun: dict[str, int] = {}  # the line of each id
        self._inputs: list[Input] = []
        self._sizes: list[int] = []
        self._outputs: list[Output] = []
        self._scores: list[float | None] = []
        self._losses: list[float | None] = []
        self._lengths: dict[str, int] = {}
        self._given: dict[str, tuple[bool, int]] = {}

    def begin(self, name: str, input: Input) -> None:
        """A list begins at the current line."""
        if name in self._begun:
            self._lines.fail(
                f"a list with the id {name!r} begins at line {self._begun[name]} already, and "
                "the lines of one must stand together",
                "id",
            )
        self._begun[name] = self._lines.number
        self._inputs.append(input)
        self._sizes.append(0)

    def add(self, output: Output, score: float | None, loss: float | None) -> None:
        """An output of the list that was begun last."""
        self._sizes[-1] += 1
        self._outputs.append(output)
        self._scores.append(score)
        self._losses.append(loss)

    def end(self) -> None:
        """The list is complete."""
        input, size = self._inputs[-1], self._sizes[-1]
        first = len(self._outputs) - size
        vectors = [output.vector for output in self._outputs[first:]]
        self._check_lengths("vector", [input.vector])
        self._check_lengths("candidates.vector", [input.reference_vector, *vectors])
        columns: dict[str, Sequence[Any]] = {
            "score": self._scores[first:],
            "loss": self._losses[first:],
            "vector": vectors,
        }
        for name, column in columns.items():
            n_given = sum(value is not None for value in column)
            if 0 < n_given < size:
                self._fail(
                    f"expected one for each of the {size} candidates or for none, found {n_given}",
                    f"candidates.{name}",
                )
            if size and name != "vector":
                has, line = self._given.setdefault(name, (n_given > 0, self._line))
                if has != (n_given > 0):
                    expected = "one for each candidate" if has else "none"
                    self._fail(f"expected {expected}, as at line {line}", f"candidates.{name}")

    def lists(self) -> Lists:
        """All that was collected."""
        if not self._inputs:
            raise DataError("expected n-best lists, found none", path=self._lines.path)
        return Lists(
            self._outputs,
            grouping=Groups.from_lists(self._sizes, list(self._begun)),
            queries=self._inputs,
            scores=_column(self._scores),
            losses=_column(self._losses),
        )

    @property
    def _line(self) -> int:
        return next(reversed(self._begun.values()))

    def _check_lengths(self, name: str, vectors: list[Vector | None]) -> None:
        for vector in vectors:
            if vector is not None:
                length = self._lengths.setdefault(name, len(vector))
                if len(vector) != length:
                    self._fail(f"expected {length} numbers, as before, found {len(vector)}", name)

    def _fail(self, problem: str, field: str) -> None:
        self._lines.fail(problem, field, self._line)


def _column(values: list[float | None]) -> Vector | None:
    if not values or values[0] is None:
        return None
    return np.array(values, dtype=np.float64)
