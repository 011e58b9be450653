"""Oracles: an argmax as the compiled solvers call it, a `didyma._core.structures.Argmax`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.layout import Floats, Layout
from didyma.values import aligned, as_array

if TYPE_CHECKING:
    from didyma.structure import Structure

__all__ = ["best_outputs", "python_argmax"]


def python_argmax(structure: Structure, layout: Layout) -> Any:
    """The oracle that calls a structure's own method `argmax`, and checks what it returns."""
    name = f"{type(structure).__name__}.argmax"

    def argmax(scores: Floats, extra: Floats) -> NDArray[np.int64]:
        additional = {
            key: extra[place.start : place.stop].reshape(place.shape)
            for key, place in layout.additional.items()
        }
        parts = as_array(structure.argmax(scores.reshape(layout.shape), **additional))
        if parts.ndim != 1 or (parts.size and not np.issubdtype(parts.dtype, np.integer)):
            raise DataError(
                f"{name} must return one axis of integer part indices, returned {parts.dtype} "
                f"of shape {parts.shape}"
            )
        return aligned(parts.astype(np.int64, copy=False))

    return core.PythonArgmax(name, argmax)


def best_outputs(
    oracle: Any, layout: Layout
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """The best output of each instance: parts (B, n_parts), additional parts (B, n_extra), both
    padded with −1, and whether any output is possible (B,).
    """
    parts, extra_parts, possible = core.best_outputs(oracle, *layout.arguments)
    return parts, extra_parts, possible
