"""From the lists of a file to `Lists`: what fits together is collected, anything else refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.errors import DataError, placed
from didyma.files import PathName
from didyma.nbest.formats.outputs import Input, Output, Vector
from didyma.ranking.training_input import LARGEST

LOSS = "loss"  # what losses are called unless another name is given


@dataclass(frozen=True, slots=True, eq=False)
class ListRecord:
    """One list of a file: the line where it begins, its id, its input and its outputs."""

    line: int
    name: str
    input: Input
    outputs: Sequence[Output]
    scores: Sequence[float | None]
    losses: Sequence[float | None]


def collect(path: PathName, records: Iterable[ListRecord], loss: str = LOSS) -> Lists:
    """All lists of a file.

    Ids must differ, vectors be equally long, and vectors, scores and losses be there for all
    outputs of the file or for none, as vectors of inputs; empty lists need none. ``loss`` is the
    name of losses.
    """
    begun: dict[str, ListRecord] = {}
    lengths: dict[str, int] = {}
    present: dict[str, tuple[bool, int]] = {}
    for record in records:
        with placed(path, record.line):
            if record.name in begun:
                line = begun[record.name].line
                raise DataError(
                    f"a list with the id {record.name!r} begins at line {line} already, and the "
                    "lines of one must stand together",
                    field="id",
                )
            begun[record.name] = record
            vectors = [output.vector for output in record.outputs]
            _check_lengths(lengths, "vector", [record.input.vector])
            _check_lengths(lengths, "candidates.vector", [record.input.reference_vector, *vectors])
            _check_present(present, "candidates.score", record.scores, record.line)
            _check_present(present, f"candidates.{loss}", record.losses, record.line)
            _check_present(present, "candidates.vector", vectors, record.line)
            if record.outputs:
                _check_present(present, "vector", [record.input.vector], record.line, "one")
    if not begun:
        raise DataError("expected n-best lists, found none", path=path)
    lists = begun.values()
    return Lists(
        [output for record in lists for output in record.outputs],
        grouping=Groups.from_lists([len(record.outputs) for record in lists], list(begun)),
        queries=[record.input for record in lists],
        scores=_column([score for record in lists for score in record.scores]),
        losses=_column([loss for record in lists for loss in record.losses]),
    )


def check_number(number: float, field: str) -> float:
    """A finite number, none so large that sums of squares would overflow."""
    if abs(number) > LARGEST:
        problem = f"expected a number from -{LARGEST:g} to {LARGEST:g}, found {number:g}"
        raise DataError(problem, field=field)
    return number


def check_loss(loss: float, field: str) -> float:
    """A loss, which must not be negative."""
    if loss < 0:
        raise DataError(f"expected a loss of 0 or more, found {loss:g}", field=field)
    return loss


def _check_lengths(lengths: dict[str, int], field: str, vectors: Iterable[Vector | None]) -> None:
    for vector in vectors:
        if vector is not None:
            length = lengths.setdefault(field, len(vector))
            if len(vector) != length:
                raise DataError(
                    f"expected {length} numbers, as before, found {len(vector)}", field=field
                )


def _check_present(
    earlier: dict[str, tuple[bool, int]],
    field: str,
    values: Sequence[Any],
    line: int,
    one: str = "one for each candidate",
) -> None:
    """All candidates of a list must have a value or none, and so must those of all lists."""
    count, size = sum(value is not None for value in values), len(values)
    if 0 < count < size:
        problem = f"expected one for each of the {size} candidates or for none, found {count}"
        raise DataError(problem, field=field)
    if size:
        has, first = earlier.setdefault(field, (count > 0, line))
        if has != (count > 0):
            expected = one if has else "none"
            raise DataError(f"expected {expected}, as at line {first}", field=field)


def _column(values: Sequence[float | None]) -> Vector | None:
    if not values or values[0] is None:
        return None
    return np.array(values, dtype=np.float64)
