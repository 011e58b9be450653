"""Layout: a batch of instances as flat arrays, which solvers and kernels read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Parts = NDArray[np.int32]
Lengths = ArrayLike | None  # sizes of the instances; None where nothing is padded

NO_EXTRA = np.zeros((1, 0))
NO_DIMS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Additional:
    """One array of additional scores: columns ``start:stop`` of all of them, and its shape."""

    start: int
    stop: int
    shape: tuple[int, ...]  # of one instance
    shared: bool  # one array for the whole batch

    @property
    def columns(self) -> slice:
        """Where it stands among all additional scores."""
        return slice(self.start, self.stop)

    def of(self, extra: Any) -> Any:
        """This array of each instance (B, …), out of all additional columns (B, f)."""
        return extra[:, self.start : self.stop].reshape(len(extra), *self.shape)


@dataclass(slots=True, eq=False)
class Layout:
    """A batch of B instances as flat arrays: scores (B, d) and additional scores (B, f) or (1, f).

    Part p of instance b scores ``scores[b, p]``, additional part q ``extra[b, q]`` (``extra[0, q]``
    where the whole batch shares them). Room for ``n_parts`` and ``n_extra`` of them is enough for
    any output.
    """

    scores: Floats
    shape: tuple[int, ...]  # of the scores of one instance
    n_parts: int
    extra: Floats = field(default_factory=lambda: NO_EXTRA)
    additional: Mapping[str, Additional] = field(default_factory=dict)
    n_extra: int = 0
    dims: NDArray[np.int64] = field(default_factory=lambda: NO_DIMS)
    sizes: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    n_work: int = 0
    n_index: int = 0
    data: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """`Structure.data` of instances, by the key that is the first of an instance's ``sizes``."""

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def no_extra_parts(self) -> Parts:
        """Additional parts of outputs that have none, (B, 0)."""
        return np.zeros((len(self), 0), np.int32)

    @property
    def no_extra_marginals(self) -> Floats:
        """Marginals of additional parts where there are none, (B, 0)."""
        return np.zeros((len(self), 0))

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The batch as the core's solvers take it."""
        room = self.n_work, self.n_index, self.n_parts, self.n_extra
        return self.scores, self.extra, self.dims, self.sizes, *room

    @property
    def plan_arguments(self) -> tuple[Any, ...]:
        """The batch as the core's sums over a hypergraph take it."""
        return self.scores, self.extra, self.dims, self.sizes, self.n_work

    def plan_arguments_of(self, b: int) -> tuple[Any, ...]:
        """Instance b as the core's derivations of a hypergraph take it."""
        return self.scores[b], self.extra_of(b), self.dims, self.sizes[b], self.n_work

    def data_of(self, b: int) -> Mapping[str, Any]:
        """What instance b has beside scores, by name."""
        return self.data[int(self.sizes[b, 0])] if self.data else {}

    def extra_of(self, b: Any) -> Floats:
        """Additional scores of instance b; of several, one row where they share them."""
        if len(self.extra) > 1:
            return self.extra[b]
        return self.extra[0] if np.ndim(b) == 0 else self.extra

    def select(self, b: Any) -> Layout:
        """Some instances: their numbers, or a mask."""
        extra = self.extra[b] if len(self.extra) > 1 else self.extra
        return replace(self, scores=self.scores[b], extra=extra, sizes=self.sizes[b])
