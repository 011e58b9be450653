"""State that changes while something is trained: saved by name, and checked when restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

LARGEST = float(np.finfo(np.float64).max)

Record = TypeVar("Record")


class Stateful:
    """An object whose state is the attributes that ``_changing`` names.

    These are arrays, random generators, plain values, or objects with a state themselves. `restore`
    accepts a value only if it is of the kind that it replaces: an array of the same type and shape,
    or, of those in ``_growing``, with as many axes. `check_state` checks what else must hold.

    >>> class Counter(Stateful):
    ...     _changing = ("count",)
    ...     count = 0
    >>> one, other = Counter(), Counter()
    >>> one.count = 3
    >>> other.restore(one.state())
    >>> other.count
    3
    """

    _changing: ClassVar[tuple[str, ...]] = ()
    _growing: ClassVar[tuple[str, ...]] = ()
    _unbounded: ClassVar[tuple[str, ...]] = ()  # arrays that may hold infinity

    def state(self) -> dict[str, Any]:
        """All that `restore` needs."""
        return {name: _state_of(getattr(self, name)) for name in self._changing}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in self._changing:
            now, value = getattr(self, name), state[name]
            if isinstance(now, np.random.Generator):
                now.bit_generator.state = value
            elif hasattr(now, "restore"):
                now.restore(value)
            elif isinstance(now, np.ndarray):
                shape = now.ndim * (None,) if name in self._growing else now.shape
                largest = np.inf if name in self._unbounded else LARGEST
                setattr(self, name, array_of(value, name, shape, now.dtype, high=largest))
            else:
                setattr(self, name, value if now is None else _plain_like(value, name, now))
        self.check_state()

    def check_state(self) -> None:
        """Raise a ValueError if values that were restored do not go together."""


def array_of(
    value: Any,
    name: str,
    shape: tuple[int | None, ...],
    dtype: Any = np.float64,
    *,
    low: float | None = None,
    high: float = LARGEST,
) -> NDArray[Any]:
    """A copy of an array of a checkpoint, if it is of this type and shape; None is any size.

    Its numbers are from ``low`` to ``high``; any that is finite if these are not given.
    """
    if not isinstance(value, np.ndarray):
        raise ValueError(f"{name} should be an array, but is a {type(value).__name__}")
    sizes = zip(value.shape, shape)
    if value.ndim != len(shape) or any(wanted not in (None, size) for size, wanted in sizes):
        wanted = " × ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} should be of shape {wanted}, but is of {value.shape}")
    if value.dtype != dtype:
        raise ValueError(f"{name} should be of {np.dtype(dtype)}, but is of {value.dtype}")
    least = -high if low is None else low
    if not bool(((value >= least) & (value <= high)).all()):
        raise ValueError(f"{name} should have numbers from {least:g} to {high:g}")
    return np.array(value, order="C")


def record_of(kind: type[Record], state: Mapping[str, Any]) -> Record:
    """A dataclass whose plain fields are of the types that it declares."""
    samples: dict[str, Any] = {"bool": False, "int": 0, "float": 0.0, "str": ""}
    for member in fields(kind):  # type: ignore[arg-type]
        if member.type in samples:
            _plain_like(state[member.name], member.name, samples[str(member.type)])
    return kind(**state)


def _plain_like(value: Any, name: str, sample: Any) -> Any:
    """A plain value, if it is of the type of another; a whole number will do where any does."""
    kind = next((kind for kind in (bool, int, float) if isinstance(sample, kind)), type(sample))
    is_alike = type(value) in ((int, float) if kind is float else (kind,)) and value == value
    if not is_alike or (kind is int and not -1 <= value < 2**63):  # they count, or mean none
        raise ValueError(f"{name} should be a {kind.__name__}, but is {value!r:.40}")
    return float(value) if kind is float else value


def _state_of(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    return value.state() if hasattr(value, "restore") else value
