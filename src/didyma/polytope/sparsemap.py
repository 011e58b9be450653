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
from didyma.errors import DataError, check_choice, warn
from didyma.execution import n_threads
from didyma.parameters import check_parameter
from didyma.polytope.distributions import Distribution, Distributions
from didyma.structure import Structure, require_structure
from didyma.structures.batches import LARGEST, check_positive, impossible
from didyma.structures.compiled import CompiledStructure
from didyma.structures.layout import Floats, Layout
from didyma.structures.oracles import mask_unreachable

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


STEPS = {
    "vanilla": core.Method.VANILLA,
    "away": core.Method.AWAY,
    "pairwise": core.Method.PAIRWISE,
}


@dataclass(frozen=True)
class ConditionalGradient:
    """Frank-Wolfe with ``step`` "pairwise", "away" or "vanilla", for comparisons.

    Convergence is linear (sublinear for "vanilla"), so without ``max_iter`` it stops after 10,000
    calls; the active set needs far fewer.
    """

    step: str = "pairwise"
    max_iter: ClassVar[int] = 10_000
    finite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice(self.step, STEPS, "step")

    @property
    def method(self) -> Any:
        """The method with this step."""
        return STEPS[self.step]


EXACT = ActiveSet()


@dataclass(frozen=True)
class SolverOptions:
    """How a batch is solved; `sparsemap` says what each option means.

    ``face``: go on until nothing but rounding is left of the gap, on the face of the hull that the
    optimum lies on. Marginals are close long before, but their derivatives are those of the face.
    """

    temperature: float = 1.0
    tol: float = 1e-9
    max_iter: int | None = None
    n_jobs: int | None = None
    face: bool = False
    solver: Solver = EXACT

    def __post_init__(self) -> None:
        check_positive(self.temperature, "temperature")
        check_parameter("tol", self.tol)
        if self.max_iter is not None:
            check_parameter("max_iter", self.max_iter)


DEFAULT = SolverOptions()


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
    >>> didyma.sparsemap(scores, didyma.structures.Chain(), transitions=stay).round(2)
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
    require_structure(structure)
    options = SolverOptions(temperature, tol, max_iter, n_jobs, return_solution, solver)
    layout = structure.lay_out(scores, lengths, **additional)
    solution = solve(layout, structure, options, warm_start)
    array = np.asarray(scores)
    marginals = solution.marginals.reshape(array.shape)
    if array.dtype in (np.float32, np.float16):
        marginals = marginals.astype(array.dtype)
    return (marginals, solution) if return_solution else marginals


def solve(
    layout: Layout,
    structure: Structure,
    options: SolverOptions = DEFAULT,
    warm_start: Distributions | Sequence[Distribution | None] | None = None,
) -> Distributions:
    """Solve a batch that is laid out already."""
    temperature, tol, solver = options.temperature, options.tol, options.solver
    unscaled, layout = layout, scaled(layout, temperature)
    if isinstance(structure, CompiledStructure) and not structure.closed_form:
        # A structure s is in the support only if θ_s − m_s·u is the highest, and 0 ≤ m_s·u ≤ |m_s|:
        # one that scores lower by more than the number of parts never is, at no u.
        layout = mask_unreachable(structure.kernel, layout, layout.n_parts)
    if warm_start is None and isinstance(solver, ActiveSet):
        warm_start = structure.first_guess(layout, options)
    start = NO_START if warm_start is None else _start(warm_start, structure, layout)
    if structure.closed_form and isinstance(solver, ActiveSet):
        solved = structure.closed_form[0](layout.scores, layout.sizes)
    else:
        solved = core.solve(
            structure.oracle(layout),
            structure.aligned,
            *layout.arguments,
            *start,
            solver.method,
            tol,
            0.0 if options.face and solver.finite else tol,
            solver.max_iter if options.max_iter is None else options.max_iter,
            1 if len(layout) == 1 else n_threads(options.n_jobs),
        )
    worst_status, marginals, gap, *rest = solved
    if temperature != 1.0:
        gap *= temperature
    solution = Distributions(structure, unscaled, temperature, marginals, gap, *rest)
    if worst_status != core.OPTIMAL:
        _report(solution, options)
    return solution


def _report(solution: Distributions, options: SolverOptions) -> None:
    """Raise for an instance without outputs, warn of those that stopped early."""
    if (failed := solution.status == core.IMPOSSIBLE).any():
        raise impossible(int(np.argmax(failed)))
    stopped = ~solution.converged
    worst = int(np.argmax(np.where(stopped, solution.gap, -np.inf)))
    limit = "" if options.max_iter is None else f": raise max_iter={options.max_iter}"
    warn(
        f"{int(stopped.sum())} of {len(solution)} instances stopped before a gap of "
        f"{options.tol * options.temperature:g}; the largest is {solution.gap[worst]:.1e} "
        f"(instance {worst}, after {solution.n_iter[worst]} argmax calls){limit}",
        ToleranceWarning,
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


# Offsets, parts, additional parts and weights of the vertices that a solve begins with.
StartVertices = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], Floats]
NO_PARTS = np.zeros((0, 0), np.int32)
NO_START: StartVertices = np.zeros(0, np.int64), NO_PARTS, NO_PARTS, np.zeros(0)


def _start(
    start: Distributions | Sequence[Distribution | None], structure: Structure, layout: Layout
) -> StartVertices:
    if len(start) != len(layout):
        raise DataError(
            f"expected one distribution per instance ({len(layout)}), found {len(start)}",
            field="warm_start",
        )
    if isinstance(start, Distributions):
        before = start.layout
        for b, size in enumerate(before.sizes.tolist()):
            dims = (*size, before.extra.shape[1])
            _check_start(start.structure, before.shape, dims, structure, layout, b)
        return start.offsets, start.parts, start.extra_parts, start.weights
    present = []
    for b, one in enumerate(start):
        if one is not None:
            _check_start(one.structure, one.marginals.shape, one.dims, structure, layout, b)
            present.append(one)
    counts = [0 if one is None else one.support_size for one in start]
    return (
        np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
        np.concatenate([np.zeros((0, layout.n_parts), np.int32), *(one.parts for one in present)]),
        np.concatenate(
            [np.zeros((0, layout.n_extra), np.int32), *(one.extra_parts for one in present)]
        ),
        np.concatenate([np.zeros(0), *(one.probabilities for one in present)]),
    )


def _check_start(
    start_structure: Structure | None,
    shape: tuple[int, ...],
    dims: tuple[int, ...],
    structure: Structure,
    layout: Layout,
    b: int,
) -> None:
    """Refuse outputs of another structure, or of an instance of another size."""
    if type(start_structure) is not type(structure) or (
        type(structure).__eq__ is not object.__eq__ and start_structure != structure
    ):
        raise DataError(f"it is of {start_structure!r}, not of {structure!r}", field="warm_start")
    if shape != layout.shape:
        raise DataError(
            f"its scores have shape {shape}, these {layout.shape}: pad instances to the same shape "
            "in all calls",
            field="warm_start",
        )
    expected = (*layout.sizes[b].tolist(), layout.extra.shape[1])
    if dims != expected:
        raise DataError(
            f"instance {b} had lengths {dims[:-1]} and {dims[-1]} additional scores, now it has "
            f"{expected[:-1]} and {expected[-1]}: start from the same instances",
            field="warm_start",
        )
