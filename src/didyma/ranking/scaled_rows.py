"""Rows scaled before training, without a second copy in memory."""

from __future__ import annotations

import math
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from didyma.data.lists import Groups, Lists
from didyma.data.matrix import is_sparse
from didyma.data.row_blocks import slice_rows
from didyma.errors import DataError
from didyma.learning.scoring import BLOCK
from didyma.model import Model

__all__ = ["SCALERS", "scaled", "scaler_of"]

SCALERS = {
    "standard": "StandardScaler",
    "max-abs": "MaxAbsScaler",
    "query-minmax": "QueryMinMaxScaler",
    "query-standard": "QueryStandardScaler",
    "query-percentile": "QueryPercentileScaler",
}


def scaler_of(lists: Lists, scale: str) -> Model | None:
    """A scaler of one of these names that has learned from the rows; none for "none"."""
    if scale == "none":
        return None
    if scale != "max-abs" and is_sparse(lists.X):
        raise DataError(f"sparse features can be scaled by max-abs only, not by {scale}")
    return Model.scaler(SCALERS[scale], lists)


def scaled(scaler: Model, lists: Lists, folder: Path) -> Lists:
    """The lists with rows as the scaler makes them, a few queries at a time.

    They take the place of rows that were read into memory; of rows that are mapped from a file, a
    temporary file in the ``folder`` that ends with the process.
    """
    groups = lists.groups
    if is_sparse(lists.X) or not np.array_equal(groups.rows, np.arange(len(lists))):
        return scaler.transform(lists)
    X: Any = lists.X
    target = X if X.flags.writeable else _mapped(X.shape, X.dtype, folder)
    first = 0
    while first < len(groups):
        until = groups.starts[first] + BLOCK
        last = max(first + 1, int(np.searchsorted(groups.starts, until, side="right")) - 1)
        start, stop = int(groups.starts[first]), int(groups.starts[last])
        names = groups.names[first:last]
        part = replace(
            slice_rows(lists, start, stop),
            grouping=Groups.from_lists(groups.sizes[first:last], names.tolist()),
        )
        target[start:stop] = scaler.transform(part).X
        first = last
    return replace(lists, items=target)


def _mapped(shape: tuple[int, ...], dtype: Any, folder: Path) -> Any:
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # a disk that is full says so now, or ends us later
            try:
                os.posix_fallocate(file.fileno(), 0, math.prod(shape) * np.dtype(dtype).itemsize)
            except OSError as error:
                raise OSError(error.errno, error.strerror, os.fspath(folder)) from None
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))
