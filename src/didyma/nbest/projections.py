"""Low-dimensional reranking (Jagarlamudi and Daumé 2012): what two projections are fitted to.

Input x_i, its right output y_i and candidates ŷ_ij of loss L_ij are vectors; r_ij = y_i − ŷ_ij. The
projections A, B are the canonical directions (`didyma.nbest.canonical`) of X and

    Z = (1 − λ) Y + λ R,   R_i = (1/m_i) Σ_j α_ij r_ij.

λ = 0 is the generative model, α = L the softened one. The discriminative model starts there and
alternates: with margins M_ij = x_i'A B'r_ij and ψ_ij = (1 − M_ij) L_ij the slack ξ_i is the least
positive ψ_ij (0 if there is none), and where ξ_i > 0 the multipliers move to

    α_ij ← max(0, α_ij − γ (M_ij − 1 + ξ_i / L_ij)),   for L_ij > 0.

It is a heuristic, not descent: the least slack lets one constraint of a list hold, not all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data.matrix import Matrix
from didyma.nbest.canonical import CanonicalCorrelations, Directions

Vector = NDArray[np.float64]
Array = NDArray[np.float64]

BLOCK = 65_536  # candidates projected at a time


@dataclass(frozen=True, eq=False)
class RerankingProblem:
    """Inputs X (n, d1), right outputs Y (n, d2), and lists of candidates with their losses.

    The candidates of input i are the rows ``starts[i]`` to ``starts[i + 1] − 1``.
    """

    X: Matrix
    Y: Matrix
    candidates: Matrix
    starts: NDArray[np.int64]
    losses: Vector

    @cached_property
    def lists(self) -> NDArray[np.int64]:
        """The input of each candidate."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def target(self, lam: float, alpha: Vector) -> Matrix:
        """Z = (1 − λ) Y + λ R for the multipliers α."""
        if lam == 0:
            return self.Y
        n, m = len(self.starts) - 1, len(alpha)
        weights = lam * alpha / np.diff(self.starts)[self.lists]
        mean = sp.csr_array((weights, np.arange(m), self.starts), shape=(n, m))
        shares = (1.0 - lam) + np.asarray(mean.sum(axis=1))
        target = sp.diags_array(shares) @ self.Y - mean @ self.candidates
        return sp.csr_array(target) if sp.issparse(target) else np.asarray(target)

    def margins(self, A: Array, B: Array) -> Vector:
        """x_i'A B'(y_i − ŷ_ij) of each candidate."""
        margins = np.empty(len(self.losses))
        if not len(margins):
            return margins
        inputs, outputs = self.X @ A, self.Y @ B
        for start in range(0, len(margins), BLOCK):
            rows = slice(start, start + BLOCK)
            owner = self.lists[rows]
            residuals = outputs[owner] - self.candidates[rows] @ B
            margins[rows] = np.einsum("ij,ij->i", inputs[owner], residuals)
        return margins

    def slacks(self, margins: Vector) -> Vector:
        """ξ_i, the least positive (1 − M_ij) L_ij of each list; 0 where none is positive."""
        psi = (1.0 - margins) * self.losses
        slacks = np.full(len(self.starts) - 1, np.inf)
        violated = psi > 0
        np.minimum.at(slacks, self.lists[violated], psi[violated])
        return np.where(np.isfinite(slacks), slacks, 0.0)

    def moved(self, alpha: Vector, margins: Vector, slacks: Vector, step: float) -> Vector:
        """The multipliers after a step, which stay nonnegative."""
        slack = slacks[self.lists]
        moves = (slack > 0) & (self.losses > 0)
        excess = margins[moves] - 1.0 + slack[moves] / self.losses[moves]
        alpha = alpha.copy()
        alpha[moves] = np.maximum(0.0, alpha[moves] - step * excess)
        return alpha


@dataclass(frozen=True)
class LowRankRound:
    """What a callback sees after each solution of the eigenproblem; True stops the fit.

    ``slack`` is the mean over the inputs, ``change`` the largest change of one (infinite at first).
    """

    n_iter: int
    slack: float
    change: float
    residual: float


@dataclass(frozen=True, eq=False)
class Learned:
    """Directions, the slacks ξ that they leave, and how they were reached."""

    directions: Directions
    slacks: Vector
    n_iter: int
    converged: bool

    @property
    def projections(self) -> tuple[Array, Array]:
        """A and B."""
        return self.directions.A, self.directions.B


@dataclass(frozen=True)
class Discriminative:
    """The alternation: solve for A and B, move the multipliers, until slacks change less than tol.

    One iteration is the softened model.
    """

    step: float = 0.1
    max_iter: int = 5
    tol: float = 1e-3

    def solve(
        self,
        problem: RerankingProblem,
        views: CanonicalCorrelations,
        lam: float,
        k: int,
        callback: Callable[[LowRankRound], bool | None] | None = None,
        first: Directions | None = None,
    ) -> Learned:
        """Learn k directions; ``first`` are those of the softened model where they are known."""
        alpha = problem.losses
        slacks = np.full(len(problem.starts) - 1, np.inf)
        for n_iter in range(1, self.max_iter + 1):
            if n_iter == 1 and first is not None:
                directions = first
            else:
                directions = views.solve(problem.target(lam, alpha), k)
            margins = problem.margins(directions.A, directions.B)
            previous, slacks = slacks, problem.slacks(margins)
            change = float(np.max(np.abs(slacks - previous), initial=0.0))
            reached = LowRankRound(n_iter, float(slacks.mean()), change, directions.residual)
            stop = callback is not None and callback(reached)
            if change < self.tol or stop:
                break
            alpha = problem.moved(alpha, margins, slacks, self.step)
        return Learned(directions, slacks, n_iter, change < self.tol)


def cosines(inputs: Array, outputs: Array) -> Vector:
    """Cosines of the rows of two arrays; 0 where a row is zero.

    >>> cosines(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([0.6, 0. ])
    """
    products = np.einsum("ij,ij->i", inputs, outputs)
    norms = np.linalg.norm(inputs, axis=1) * np.linalg.norm(outputs, axis=1)
    return np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)


def similarities(
    X: Matrix, candidates: Matrix, lists: NDArray[np.int64], A: Array, B: Array
) -> Vector:
    """cos(A'x_i, B'ŷ_ij) of each candidate, row j of ``candidates`` with i = ``lists[j]``."""
    inputs = X @ A
    values = np.empty(len(lists))
    for start in range(0, len(values), BLOCK):
        rows = slice(start, start + BLOCK)
        values[rows] = cosines(inputs[lists[rows]], candidates[rows] @ B)
    return values
