"""Regularised objectives over the hull of a structure's outputs.

    Ω*(η) = max over u, v in the hull of the outputs   η_U·u + η_F·v − Ω(u)

has the gradient [u; v]. With gold outputs g, the Fenchel-Young loss Ω*(η) + Ω(g) − η·g, whose
gradient is [u; v] − g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from didyma._core import polytope as core
from didyma.errors import DataError
from didyma.execution import on_threads, shards
from didyma.polytope.distributions import Distribution, Distributions
from didyma.polytope.sparsemap import DEFAULT, SolverOptions, scaled, solve
from didyma.structure import Structure
from didyma.structures.batches import flatten
from didyma.structures.compiled import CompiledStructure
from didyma.structures.layout import Floats, Layout

OFF_HULL = 1e-6  # by how much, relatively, rounding may lift a gold point above the hull

WarmStart = Distributions | Sequence[Distribution | None] | None


@dataclass(frozen=True)
class Gibbs:
    """Where the derivative of a CRF's marginals is taken: p(output) ∝ exp(score / temperature).

    The layout has scores over the temperature, and no parts that count for nothing.
    """

    structure: Any
    layout: Layout
    temperature: float

    def select(self, b: NDArray[np.int64]) -> Gibbs:
        """Some instances, in this order; one may come several times."""
        return replace(self, layout=self.layout.select(b))

    def apply_jacobian(self, p: Floats, p_extra: Floats, n_jobs: int = 1) -> tuple[Floats, Floats]:
        """J [p; p_extra], row by row."""
        q, q_extra = self._along("covariances", n_jobs, p, p_extra)
        return q / self.temperature, q_extra / self.temperature

    def second_derivative(
        self, p: Floats, p_extra: Floats, r: Floats, r_extra: Floats, n_jobs: int = 1
    ) -> tuple[Floats, Floats]:
        """How J [p; p_extra] moves along r, row by row."""
        t, t_extra = self._along("third_cumulants", n_jobs, p, p_extra, r, r_extra)
        return t / self.temperature**2, t_extra / self.temperature**2

    def _along(self, name: str, n_jobs: int, *directions: Floats) -> tuple[Floats, Floats]:
        method = getattr(self.structure, name, None)
        if method is None:
            raise NotImplementedError(
                f"{type(self.structure).__name__} has no method {name}, which derivatives of "
                "a CRF's marginals need; those of SparseMAP need only an argmax"
            )
        if not isinstance(self.structure, CompiledStructure):
            n_jobs = 1  # nobody has said that it may be asked by several threads

        def move(b: slice) -> Any:
            return method(self.layout.select(b), *(direction[b] for direction in directions))

        moved, moved_extra = zip(*on_threads(n_jobs)(move, shards(len(self.layout), n_jobs)))
        return np.concatenate(moved), np.concatenate(moved_extra)


class Maximum(NamedTuple):
    """A value for each instance (B,) and its gradient: parts u (B, d), additional parts v (B, f).

    ``solution`` knows the second derivative.
    """

    value: Floats
    u: Floats
    v: Floats
    solution: Distributions | Gibbs

    def spread(self, counts: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Value, u and v, with zeros for instances that do not count."""

        def spread(values: Floats) -> Floats:
            out = np.zeros((len(counts), *values.shape[1:]))
            out[counts] = values
            return out

        return spread(self.value), spread(self.u), spread(self.v)


class Regularizer(Protocol):
    """A convex function Ω on the hull of the outputs."""

    curved: ClassVar[bool]
    """Whether the derivative of the maximiser depends on the scores."""

    def maximise(
        self, structure: Structure, layout: Layout, options: SolverOptions, warm_start: WarmStart
    ) -> Maximum:
        """Ω* of each instance and its gradient."""
        ...

    def at(self, gold: Floats, temperature: float) -> Any:
        """Ω of outputs, or of other points of the hull, (B, d)."""
        ...


class SquaredNorm:
    """Ω(u) = t/2 ‖u‖²: SparseMAP."""

    curved: ClassVar[bool] = False

    def maximise(
        self, structure: Structure, layout: Layout, options: SolverOptions, warm_start: WarmStart
    ) -> Maximum:
        """The active set."""
        solution = solve(layout, structure, options, warm_start)
        return _at(solution, layout, 0.5 * options.temperature)

    def at(self, gold: Floats, temperature: float) -> Any:
        """Half the squared norm."""
        return 0.5 * temperature * np.einsum("bd,bd->b", gold, gold)


class Entropy:
    """Ω(u) = −t × the entropy of p(output) ∝ exp(score/t): the CRF."""

    curved: ClassVar[bool] = True

    def maximise(
        self, structure: Structure, layout: Layout, options: SolverOptions, warm_start: WarmStart
    ) -> Maximum:
        """The log partition."""
        expectations = getattr(structure, "expectations", None)
        if expectations is None:
            raise NotImplementedError(
                f"{type(structure).__name__} has no method expectations, which a CRF needs; "
                "SparseMAP needs only an argmax"
            )
        t = options.temperature
        cooled = structure.relevant(scaled(layout, t))
        value, u, v = expectations(cooled)
        return Maximum(t * value, u, v, Gibbs(structure, cooled, t))

    def at(self, gold: Floats, temperature: float) -> Any:
        """A single output has no entropy; that of other points is a constant that is left out."""
        return 0.0


class Zero:
    """Ω = 0: the perceptron, whose maximiser is the argmax."""

    curved: ClassVar[bool] = False
    max_iter: ClassVar[int] = 1
    finite: ClassVar[bool] = True
    method: ClassVar[Any] = core.Method.ARGMAX

    def maximise(
        self, structure: Structure, layout: Layout, options: SolverOptions, warm_start: WarmStart
    ) -> Maximum:
        """The argmax, at any temperature."""
        options = replace(options, temperature=1.0, solver=self)
        return _at(solve(layout, structure, options, warm_start), layout, 0.0)

    def at(self, gold: Floats, temperature: float) -> Any:
        """Nothing."""
        return 0.0


def _at(solution: Distributions, layout: Layout, weight: float) -> Maximum:
    """The score less weight · ‖u‖² at a solution, and the marginals there."""
    u = solution.flat_marginals
    vertices = solution.offsets, solution.extra_parts, solution.weights
    value, v = core.value_and_expectation(*vertices, layout.scores, layout.extra, u, weight)
    return Maximum(value, u, v, solution)


SQUARED_NORM, ENTROPY = SquaredNorm(), Entropy()
REGULARIZERS: dict[str, Regularizer] = {
    "perceptron": Zero(),
    "crf": ENTROPY,
    "sparsemap": SQUARED_NORM,
}


@dataclass(frozen=True)
class Objective:
    """A structure, a regulariser, and how to solve.

    ``margin`` is the cost of each part of the gold output that an output lacks.
    """

    structure: Structure
    options: SolverOptions = DEFAULT
    regularizer: Regularizer = SQUARED_NORM
    margin: float = 0.0
    warm_start: WarmStart = None

    def maximise(self, layout: Layout) -> Maximum:
        """Ω* of each instance and its gradient."""
        return self.regularizer.maximise(self.structure, layout, self.options, self.warm_start)

    def loss(self, layout: Layout, outputs: NDArray[Any]) -> Maximum:
        """The loss of each instance, given its gold output, and its gradient."""
        gold, gold_extra = encode(self.structure, outputs, layout)
        gold_score = _dot(layout.scores, gold)
        if layout.additional:
            gold_score += _dot(layout.extra, gold_extra)
        if gold_score.min(initial=0.0) == -np.inf:
            raise DataError(
                f"the gold output of instance {np.argmin(gold_score)} has a part with score -inf",
                field="gold",
            )
        value = self.regularizer.at(gold, self.options.temperature) - gold_score
        if self.margin:  # the Hamming cost of an output that shares nothing with the gold, less …
            value += self.margin * gold.sum(axis=1)
            layout = replace(layout, scores=layout.scores - self.margin * gold)
        maximum = self.maximise(layout)
        value += maximum.value
        if value.min(initial=0.0) < 0.0:
            least = -OFF_HULL * (1.0 + np.abs(gold_score) + np.abs(maximum.value))
            if (outside := np.flatnonzero(value < least)).size:
                raise DataError(
                    f"the gold of instance {outside[0]} is not in the hull of the outputs: it "
                    "scores higher than the best of them",
                    field="gold",
                )
            value = np.maximum(value, 0.0)  # rounding may leave -1e-17
        return Maximum(value, maximum.u - gold, maximum.v - gold_extra, maximum.solution)


def encode(structure: Structure, outputs: NDArray[Any], layout: Layout) -> tuple[Floats, Floats]:
    """How often each part (B, d) and each additional part (B, f) is in the outputs.

    Floating-point arrays of the scores' shape are points of the hull: 0/1 for one output, or means
    of several; where there are additional scores, rows of all d + f parts are (`hull_points`).
    """
    n, d = layout.scores.shape
    is_point = outputs.dtype.kind == "f"
    if is_point and outputs.shape == (n, d + layout.extra.shape[1]) and layout.additional:
        return outputs[:, :d].astype(np.float64), outputs[:, d:].astype(np.float64)
    if is_point:
        shape = (n, *layout.shape)
        if layout.additional:
            raise DataError(
                f"{type(structure).__name__} has additional scores: expected outputs as it "
                "predicts them, of which several may have weights",
                field="gold",
            )
        inside = (outputs >= -OFF_HULL) & (outputs <= 1 + OFF_HULL)
        if outputs.shape != shape or not inside.all():
            raise DataError(
                f"expected zeros and ones of shape {shape}, or numbers between them, found shape "
                f"{outputs.shape}",
                field="gold",
            )
        return flatten(outputs).astype(np.float64), np.zeros((n, layout.extra.shape[1]))
    parts, extra_parts = structure.encode(outputs, layout)
    gold, gold_extra = np.zeros_like(layout.scores), np.zeros((n, layout.extra.shape[1]))
    rows, ones = np.arange(n + 1), np.ones(n)
    core.expectation(rows, np.ascontiguousarray(parts), ones, gold)
    core.expectation(rows, np.ascontiguousarray(extra_parts), ones, gold_extra)
    return gold, gold_extra


def hull_points(
    structure: Structure, outputs: NDArray[Any], weights: Floats, layout: Layout
) -> Floats:
    """Weighted means of several outputs of each instance, (B, G, …), as rows of all their parts.

    Weights (B, G) are nonnegative, and are divided by their sum.
    """
    n = len(layout)
    if weights.ndim != 2 or weights.shape != outputs.shape[:2] or len(weights) != n:
        raise DataError(
            f"expected a weight for each gold output, of shape {outputs.shape[:2]}, found shape "
            f"{weights.shape}",
            field="gold_weights",
        )
    total = weights.sum(axis=1, keepdims=True)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (total > 0).all()):
        raise DataError(
            "expected numbers from 0 up, not all 0 for an instance", field="gold_weights"
        )
    points = np.zeros((n, layout.scores.shape[1] + layout.extra.shape[1]))
    for g, share in enumerate((weights / total).T):
        points += share[:, None] * np.hstack(encode(structure, outputs[:, g], layout))
    return points if layout.additional else points.reshape(n, *layout.shape)


def _dot(scores: Floats, u: Floats) -> Floats:
    """Row by row; where u is 0 the score may be −inf."""
    out = np.zeros(len(u))
    core.products(scores, u, out)
    return out
