"""SparseMAP: the sparse posterior over structures, from nothing but an argmax.

    u* = argmax over u in the hull of the outputs   η·u − t/2 ‖u‖²

is unique, has few structures in its support, and is differentiable almost everywhere (Niculae,
Martins, Blondel and Cardie 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma._core import polytope as core
from didyma.errors import DataError, warn
from didyma.execution import n_threads
from didyma.polytope.distributions import Distribution, Distributions
from didyma.structure import (
    LARGEST,
    CompiledStructure,
    Floats,
    Layout,
    Structure,
    check_structure,
    impossible,
)

__all__ = ["ActiveSet", "ToleranceWarning", "scaled", "solve", "sparsemap"]

UNLIMITED = 2**62


class ToleranceWarning(UserWarning):
    """A solver stopped at its limit before it reached its tolerance."""


class Solver(Protocol):
    """A method, and its own limit of calls."""

    @property
    def max_iter(self) -> int:
        """Most calls where the user sets no limit."""
        ...

    @property
    def finite(self) -> bool:
        """Whether it comes to an end at a tolerance of 0."""
        ...

    @property
    def method(self) -> Any:
        """One of `didyma._core.polytope.Method`."""
        ...


@dataclass(frozen=True)
class ActiveSet:
    """Exact steps over the affine hull of a few structures: the fastest, and finite."""

    max_iter: ClassVar[int] = UNLIMITED
    finite: ClassVar[bool] = True
    method: ClassVar[Any] = core.Method.ACTIVE_SET


EXACT = ActiveSet()


def sparsemap(
    scores: ArrayLike,
    structure: Structure,
    *,
    lengths: ArrayLike | None = None,
    return_solution: bool = False,
    tol: float = 1e-9,
    max_iter: int | None = None,
    temperature: float = 1.0,
    warm_start: Distributions | Sequence[Distribution | None] | None = None,
    solver: Solver = EXACT,
    n_jobs: int | None = None,
    **additional: ArrayLike | None,
) -> Any:
    """Marginals of the sparse posterior over structures, in the shape and type of the scores.

    >>> import didyma
    >>> scores = [[[1.0, 0.9], [0.2, 0.0], [0.0, 0.6]]]  # one sequence: 3 words, 2 tags
    >>> stay = [[0.5, 0.0], [0.0, 0.5]]
    >>> didyma.sparsemap(scores, didyma.structures.Sequence(), transitions=stay).round(2)
    array([[[0.45, 0.55],
            [0.45, 0.55],
            [0.45, 0.55]]])

    Args:
        scores: one instance, or a batch along the first axis; −inf forbids a part, and so does any
            number that is far below the others. What lies beyond an instance's length may be
            anything.
        structure: of `didyma.structures`, or your own `didyma.Structure`.
        lengths: the instances' own sizes, where they are padded; 0 leaves an output without parts.
        return_solution: also return `Distributions`: structures, probabilities, gap, derivatives.
        tol: duality gap at which to stop, over the temperature, or what rounding leaves of it where
            the scores of the structures that are compared are huge. It bounds ‖u − u*‖². With
            ``return_solution`` the active set goes on to the face that the optimum lies on, since
            derivatives are those of the face; a larger gap than ``tol`` is warned of.
        max_iter: most argmax calls per instance; None means until the gap is reached.
        temperature: weight t of the regulariser; towards 0 the argmax is reached.
        warm_start: a former solution of the same instances, or one `Distribution` per instance
            (None where there is none), to start from. It pays when scores have moved little.
        solver: `ActiveSet()` or a `ConditionalGradient`.
        n_jobs: threads over the batch; None means every core.
        additional: scores of additional parts, such as ``transitions`` of a sequence.
    """
    check_structure(structure)
    layout = structure.lay_out(scores, lengths, **additional)
    solution = solve(
        layout,
        structure,
        tol=tol,
        max_iter=max_iter,
        temperature=temperature,
        warm_start=warm_start,
        solver=solver,
        face=return_solution,
        n_jobs=n_threads(n_jobs),
    )
    given = np.asarray(scores)
    marginals = solution.marginals.reshape(given.shape)
    if given.dtype in (np.float32, np.float16):
        marginals = marginals.astype(given.dtype)
    return (marginals, solution) if return_solution else marginals


def solve(
    layout: Layout,
    structure: Structure,
    *,
    tol: float = 1e-9,
    max_iter: int | None = None,
    temperature: float = 1.0,
    warm_start: Distributions | Sequence[Distribution | None] | None = None,
    solver: Solver = EXACT,
    face: bool = False,
    n_jobs: int = 1,
) -> Distributions:
    """Solve a batch that is laid out already.

    ``face``: go on until nothing but rounding is left of the gap, on the face of the hull that the
    optimum lies on. Marginals are close long before, but their derivatives are those of the face.
    """
    if not (temperature > 0.0 and np.isfinite(temperature)):
        raise DataError(f"expected a positive number, found {temperature}", field="temperature")
    if not tol >= 0.0:
        raise DataError(f"expected a number from 0 up, found {tol}", field="tol")
    if max_iter is not None and max_iter < 1:
        raise DataError(f"expected at least 1, found {max_iter}", field="max_iter")
    given, layout = layout, scaled(layout, temperature)
    if isinstance(structure, CompiledStructure) and not structure.closed_form:
        # A structure s is in the support only if θ_s − m_s·u is the highest, and 0 ≤ m_s·u ≤ |m_s|:
        # one that scores lower by more than the number of parts never is, at no u.
        layout = structure.narrow(layout, layout.n_parts)
    first = _start(warm_start, structure, layout)
    marginals, gap, n_iter, status, offsets, parts, extra_parts, weights = _run(
        layout,
        structure,
        first,
        solver,
        float(tol),
        0.0 if face and solver.finite else float(tol),
        solver.max_iter if max_iter is None else max_iter,
        n_jobs,
    )
    if (failed := status == core.IMPOSSIBLE).any():
        raise impossible(int(np.argmax(failed)))
    converged = status == core.OPTIMAL
    if not converged.all():
        worst = int(np.argmax(np.where(converged, -np.inf, gap)))
        warn(
            f"{int((~converged).sum())} of {len(layout)} instances stopped before a gap of "
            f"{tol * temperature:g}; the largest is {gap[worst] * temperature:.1e} (instance "
            f"{worst}, after {n_iter[worst]} argmax calls)"
            f"{'' if max_iter is None else f': raise max_iter={max_iter}'}",
            ToleranceWarning,
        )
    return Distributions(
        structure,
        given,
        marginals.reshape(len(layout), *layout.shape),
        gap * temperature,
        converged,
        n_iter,
        offsets,
        parts,
        extra_parts,
        weights,
        temperature,
    )


def _run(
    layout: Layout,
    structure: Structure,
    first: _Start | Distributions,
    solver: Solver,
    tol: float,
    stop: float,
    max_iter: int,
    n_jobs: int,
) -> Any:
    if structure.closed_form and isinstance(solver, ActiveSet):
        return structure.closed_form[0](layout.scores, layout.sizes)
    return core.solve(
        structure.oracle(layout),
        structure.aligned,
        layout.scores,
        layout.extra,
        layout.dims,
        layout.sizes,
        layout.n_work,
        layout.n_index,
        layout.n_parts,
        layout.n_extra,
        first.offsets,
        first.parts,
        first.extra_parts,
        first.weights,
        solver.method,
        tol,
        stop,
        max_iter,
        n_jobs,
    )


def scaled(layout: Layout, temperature: float) -> Layout:
    """The same with scores over the temperature."""
    if temperature == 1.0:
        return layout
    with np.errstate(over="ignore"):
        scores, extra = layout.scores / temperature, layout.extra / temperature
    if max(scores.max(initial=0.0), extra.max(initial=0.0)) > LARGEST:
        raise DataError(
            f"scores over a temperature of {temperature:g} exceed {LARGEST:g}", field="temperature"
        )
    return replace(layout, scores=scores, extra=extra)


@dataclass(frozen=True)
class _Start:
    offsets: NDArray[np.int64]
    parts: NDArray[np.int32]
    extra_parts: NDArray[np.int32]
    weights: Floats


def _start(
    start: Distributions | Sequence[Distribution | None] | None,
    structure: Structure,
    layout: Layout,
) -> _Start | Distributions:
    if start is not None and len(start) != len(layout):
        raise DataError(
            f"expected one distribution per instance ({len(layout)}), found {len(start)}",
            field="warm_start",
        )
    if isinstance(start, Distributions):
        before = start.layout
        for b, size in enumerate(before.sizes.tolist()):
            dims = (*size, before.extra.shape[1])
            _check_start(start.structure, before.shape, dims, structure, layout, b)
        return start
    if start is None:
        return _Start(
            np.zeros(len(layout) + 1, np.int64),
            np.zeros((0, layout.n_parts), np.int32),
            np.zeros((0, layout.n_extra), np.int32),
            np.zeros(0),
        )
    known = []
    for b, one in enumerate(start):
        if one is not None:
            _check_start(one.structure, one.marginals.shape, one.dims, structure, layout, b)
            known.append(one)
    counts = [0 if one is None else one.support_size for one in start]
    return _Start(
        np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
        np.concatenate([np.zeros((0, layout.n_parts), np.int32), *(one.parts for one in known)]),
        np.concatenate(
            [np.zeros((0, layout.n_extra), np.int32), *(one.extra_parts for one in known)]
        ),
        np.concatenate([np.zeros(0), *(one.probabilities for one in known)]),
    )


def _check_start(
    found: Structure | None,
    shape: tuple[int, ...],
    dims: tuple[int, ...],
    structure: Structure,
    layout: Layout,
    b: int,
) -> None:
    """Refuse outputs of another structure, or of an instance of another size."""
    if type(found) is not type(structure) or (
        type(structure).__eq__ is not object.__eq__ and found != structure
    ):
        raise DataError(f"it is of {found!r}, not of {structure!r}", field="warm_start")
    if shape != layout.shape:
        raise DataError(
            f"its scores have shape {shape}, these {layout.shape}: pad instances to the same shape "
            "in all calls",
            field="warm_start",
        )
    own = (*layout.sizes[b].tolist(), layout.extra.shape[1])
    if dims != own:
        raise DataError(
            f"instance {b} had lengths {dims[:-1]} and {dims[-1]} additional scores, now it has "
            f"{own[:-1]} and {own[-1]}: start from the same instances",
            field="warm_start",
        )
