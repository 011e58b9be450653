"""Matching: pairs of rows and columns, each used at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.batches import as_outputs, check_range, check_scores, column_of_row, flatten
from didyma.structures.compiled import CompiledStructure
from didyma.structures.layout import Floats, Layout, Lengths, Parts
from didyma.values import aligned, as_array


@dataclass(frozen=True)
class Matching(CompiledStructure):
    """Maximal matchings of n rows with m columns: scores (B, n, m), outputs (B, n).

    An output is the column of each row, −1 where a row has none. As many pairs as possible are
    matched, min(n, m) of them, whatever their scores; −inf forbids a pair. Lengths are (B, 2)
    numbers of rows and columns; for square scores (B,) numbers will do for both.

    >>> Matching().predict([[2.0, 3.0], [0.0, 2.0], [1.0, 0.0]])
    array([ 0,  1, -1])
    """

    kernel: ClassVar[Any] = core.matching
    ndim: ClassVar[int] = 2
    intractable: ClassVar[str] = "sums over matchings are permanents, which are #P-hard"

    def arrange(self, batch: Floats, lengths: Lengths) -> Layout:
        """Part i pairs line i of the smaller side; lengths are numbers of rows and columns."""
        n, m = shape = batch.shape[1:]
        sizes = _as_sizes(lengths, len(batch), n, m)
        used = None
        if lengths is not None:
            rows, columns = np.arange(n)[:, None], np.arange(m)
            used = (rows < sizes[:, :1, None]) & (columns < sizes[:, 1:, None])
        longest = max(n, m)
        transposed = n * m if (sizes[:, 0] > sizes[:, 1]).any() else 0
        return Layout(
            flatten(check_scores(batch, "scores", used)),
            shape,
            min(n, m),
            dims=np.array([m], np.int64),
            sizes=sizes,
            n_work=5 * longest + transposed,
            n_index=1 + 6 * longest,
        )

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """Pairs of the rows, or of the columns where these are fewer."""
        n, m = layout.shape
        columns = as_outputs(outputs, (n,), layout)
        rows = layout.sizes[:, :1]
        used = np.arange(n) < rows
        check_range(columns, -1, layout.sizes[:, 1:], used, "column")
        columns = np.where(used, columns, -1)
        instance, row = np.nonzero(columns >= 0)
        column = columns[instance, row]
        row_of = np.full((len(layout), m), -1, np.int32)
        row_of[instance, column] = row
        twice = np.flatnonzero(row_of[instance, column] != row)
        if len(twice):
            b, j = instance[twice[0]], column[twice[0]]
            raise DataError(f"instance {b}: column {j} is matched twice", field="outputs")
        pairs, expected = (columns >= 0).sum(axis=1), layout.sizes.min(axis=1)
        wrong = np.flatnonzero(pairs != expected)
        if len(wrong):
            b = wrong[0]
            raise DataError(
                f"instance {b}: expected {expected[b]} pairs, as many as possible, found "
                f"{pairs[b]}",
                field="outputs",
            )
        by_row = layout.sizes[instance, 0] <= layout.sizes[instance, 1]
        parts = np.full((len(layout), layout.n_parts), -1, np.int32)
        parts[instance, np.where(by_row, row, column)] = row * m + column
        return parts, layout.no_extra_parts

    def decode(self, parts: Parts, layout: Layout) -> NDArray[np.int64]:
        """Column of each row."""
        return column_of_row(parts, *layout.shape)


def _as_sizes(lengths: Lengths, batch: int, n: int, m: int) -> NDArray[np.int64]:
    """Numbers of rows and columns of each instance, between 0 and the padded ones."""
    if lengths is None:
        return np.tile(np.array([n, m], np.int64), (batch, 1))
    values = as_array(lengths)
    if batch == 1 and values.shape == (2,):
        values = values[None]
    elif n == m and np.atleast_1d(values).shape == (batch,):
        values = np.stack([values.reshape(batch)] * 2, axis=1)
    if values.shape != (batch, 2) or not np.issubdtype(values.dtype, np.integer):
        raise DataError(
            f"expected integers of shape {(batch, 2)}, the rows and columns of each instance, "
            f"found {values.dtype} of shape {values.shape}",
            field="lengths",
        )
    wrong = np.argwhere((values < 0) | (values > (n, m)))
    if len(wrong):
        b, side = wrong[0]
        raise DataError(
            f"expected 0 to {(n, m)[side]} {('rows', 'columns')[side]} (the padded size), found "
            f"{values[b, side]} for instance {b}",
            field="lengths",
        )
    return aligned(values.astype(np.int64, copy=False))
