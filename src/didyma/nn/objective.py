"""What is maximised: a regularised score over the hull of a structure's outputs.

    Ω*(η) = max over u, v in the hull of the outputs   η_U·u + η_F·v − Ω(u)

has the gradient [u; v]. With gold outputs g, the Fenchel-Young loss Ω*(η) + Ω(g) − η·g, whose
gradient is [u; v] − g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma._core import polytope as core
from didyma.errors import DataError
from didyma.execution import n_threads
from didyma.nn.maximum import Gibbs, Maximum
from didyma.polytope.distributions import Distribution, Distributions
from didyma.polytope.sparsemap import ActiveSet, scaled, solve
from didyma.structure import CompiledStructure, Floats, Layout, Structure, flatten

__all__ = ["Objective"]


@dataclass(frozen=True)
class Argmax:
    """The solver of Ω = 0."""

    max_iter: ClassVar[int] = 1
    finite: ClassVar[bool] = True
    method: ClassVar[Any] = core.Method.ARGMAX


@dataclass(frozen=True)
class Objective:
    """A structure, a regulariser ("sparsemap", "crf"; "perceptron" means none), and how to solve.

    ``margin`` is the cost of each part of the gold output that an output lacks, ``temperature`` the
    weight of the regulariser. ``face`` is for derivatives of the marginals (see `solve`).
    """

    structure: Structure
    regularizer: str = "sparsemap"
    margin: float = 0.0
    temperature: float = 1.0
    tol: float = 1e-9
    max_iter: int | None = None
    n_jobs: int | None = None
    warm_start: Distributions | Sequence[Distribution | None] | None = None
    face: bool = False

    def maximise(self, layout: Layout) -> Maximum:
        """Ω* of each instance and its gradient."""
        if self.regularizer == "crf":
            return self._log_partition(layout)
        solution = solve(
            layout,
            self.structure,
            tol=self.tol,
            max_iter=self.max_iter,
            temperature=self.temperature if self._squared else 1.0,
            warm_start=self.warm_start,
            solver=ActiveSet() if self._squared else Argmax(),
            face=self.face,
            n_jobs=n_threads(self.n_jobs),
        )
        u = solution.marginals.reshape(layout.scores.shape)
        value, v = np.empty(len(layout)), np.zeros((len(layout), layout.extra.shape[1]))
        core.value_and_expectation(
            solution.offsets,
            solution.extra_parts,
            solution.weights,
            layout.scores,
            layout.extra,
            u,
            0.5 * self.temperature if self._squared else 0.0,
            value,
            v,
        )
        return Maximum(value, u, v, solution)

    def loss(self, layout: Layout, outputs: NDArray[Any]) -> Maximum:
        """The loss of each instance, given its gold output, and its gradient."""
        gold, gold_extra = encode(self.structure, outputs, layout)
        gold_score = _dot(layout.scores, gold) + _dot(layout.extra, gold_extra)
        if (forbidden := np.flatnonzero(gold_score == -np.inf)).size:
            raise DataError(
                f"the gold output of instance {forbidden[0]} has a part with score -inf",
                field="gold",
            )
        found = self.maximise(replace(layout, scores=layout.scores - self.margin * gold))
        size = gold.sum(axis=1)  # Hamming cost of an output that shares nothing with the gold
        offset = self.margin * size + (0.5 * self.temperature * size if self._squared else 0.0)
        value = np.maximum(found.value + offset - gold_score, 0.0)  # rounding may leave -1e-17
        return Maximum(value, found.u - gold, found.v - gold_extra, found.solution)

    @property
    def _squared(self) -> bool:
        return self.regularizer == "sparsemap"

    def _log_partition(self, layout: Layout) -> Maximum:
        t = self.temperature
        expectations = getattr(self.structure, "expectations", None)
        if expectations is None:
            raise NotImplementedError(
                f"{type(self.structure).__name__} has no method expectations, which a CRF needs; "
                "SparseMAP needs only an argmax"
            )
        cooled = scaled(layout, t)
        if isinstance(self.structure, CompiledStructure):
            cooled = self.structure.relevant(cooled)
        value, u, v = expectations(cooled)
        return Maximum(t * value, u, v, Gibbs(self.structure, cooled, t))


def encode(structure: Structure, outputs: NDArray[Any], layout: Layout) -> tuple[Floats, Floats]:
    """How often each part (B, d) and each additional part (B, f) is in the outputs.

    A structure without a method ``encode`` takes 0/1 arrays of the scores' shape.
    """
    if not hasattr(structure, "encode"):
        shape = (len(layout), *layout.shape)
        if layout.additional:
            raise DataError(
                f"{type(structure).__name__} has additional scores and needs a method encode",
                field="gold",
            )
        if outputs.shape != shape or not np.isin(outputs, (0, 1)).all():
            raise DataError(
                f"expected zeros and ones of shape {shape}, found shape {outputs.shape}",
                field="gold",
            )
        return flatten(outputs).astype(np.float64), np.zeros((len(layout), layout.extra.shape[1]))
    parts, extra_parts = structure.encode(outputs, layout)
    gold, gold_extra = np.zeros_like(layout.scores), np.zeros((len(layout), layout.extra.shape[1]))
    rows, ones = np.arange(len(layout) + 1), np.ones(len(layout))
    core.expectation(rows, np.ascontiguousarray(parts), ones, gold)
    core.expectation(rows, np.ascontiguousarray(extra_parts), ones, gold_extra)
    return gold, gold_extra


def _dot(scores: Floats, u: Floats) -> Floats:
    """Row by row; where u is 0 the score may be −inf."""
    out = np.zeros(len(u))
    core.products(scores, u, out)
    return out
