"""Oracles: an argmax as the compiled solvers call it, a `didyma._core.structures.Argmax`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.layout import Floats, Layout
from didyma.values import aligned, as_array


def python_argmax(structure: Any, layout: Layout) -> Any:
    """The oracle that calls a structure's own method `argmax`, and checks what it returns."""
    name = f"{type(structure).__name__}.argmax"
    places = tuple(layout.additional.items())

    def argmax(scores: Floats, extra: Floats, size: NDArray[np.int64]) -> NDArray[np.int64] | None:
        keywords = {
            key: extra[place.start : place.stop].reshape(place.shape) for key, place in places
        }
        if layout.data:
            keywords.update(layout.data[int(size[0])])
        returned = structure.argmax(scores.reshape(layout.shape), **keywords)
        if returned is None and structure.reads_infinity:
            return None
        parts = as_array(returned)
        if parts.ndim == 1 and parts.dtype == np.int64:
            return aligned(parts)
        if parts.dtype == np.bool_:
            raise DataError(
                f"{name} must return indices of parts, returned booleans of shape {parts.shape}: "
                "np.flatnonzero(output) gives the indices of its True"
            )
        if parts.ndim != 1 or (parts.size and not np.issubdtype(parts.dtype, np.integer)):
            raise DataError(
                f"{name} must return one axis of integer part indices, returned {parts.dtype} "
                f"of shape {parts.shape}"
            )
        return aligned(parts.astype(np.int64, copy=False))

    return core.PythonArgmax(name, argmax, structure.concurrent)


def best_outputs(
    oracle: Any, layout: Layout
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """The best output of each instance: parts (B, n_parts), additional parts (B, n_extra), both
    padded with −1, and whether any output is possible (B,).
    """
    parts, extra_parts, possible = core.best_outputs(oracle, *layout.arguments)
    return parts, extra_parts, possible


def total(scores: Floats, parts: NDArray[np.int32]) -> Floats:
    """Sum of the scores at each row's parts, which end at the first −1."""
    if not scores.shape[1]:
        return np.zeros(len(scores))
    picked = np.take_along_axis(scores, np.maximum(parts, 0).astype(np.int64), axis=1)
    return np.where(parts >= 0, picked, 0.0).sum(axis=1)
