"""What a learner sees of a task: cuts of a convex risk.

    J(w) = ½‖w‖² + C R(w),    R(w) = Σ_i c_i max_y [Δ_i(y) + w·(Ψ_i(y) − Ψ*_i)]

A learner never meets an output y. It asks for *cuts*: affine lower bounds ``loss + direction·w`` of
the risk that touch it at the w of the question.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Cut(NamedTuple):
    """An affine lower bound of a risk: risk(w) ≥ loss + direction·w.

    >>> Cut(np.array([-1.0, 0.0]), 1.0).at(np.array([0.25, 3.0]))
    0.75
    """

    direction: Vector
    loss: float

    def at(self, w: Vector) -> float:
        """Value of the bound at w."""
        return self.loss + float(self.direction @ w)


def clipped(w: Vector, signs: Vector | None) -> Vector:
    """The nearest weights with the signs that are asked for; 0 asks for none.

    >>> clipped(np.array([1.0, -2.0, -3.0]), np.array([1.0, 1.0, 0.0])).tolist()
    [1.0, 0.0, -3.0]
    """
    return w if signs is None else np.where(w * signs < 0.0, 0.0, w)


def signs_of(problem: Any) -> Vector | None:
    """The signs that weights of a problem must have, if it asks for any."""
    signs: Vector | None = getattr(problem, "weight_signs", None)
    return signs


class Problem(Protocol):
    """A sum of weighted examples, each a maximum over outputs.

    The risk is evaluated through *scores*, any linear image S of w in which the oracle answers:
    ``respond`` gives coefficients c and a loss with R(w) = loss + c·S, and ``gather`` turns c back
    into a direction. For rankings S = X w and gather is X' c. Along a line in w the scores move
    linearly, so that a line search needs no feature at all.
    """

    n_examples: int
    n_features: int
    weights: Vector  # c_i
    kernel: Any  # the oracle of one example in the core, a `CutOracle`, if there is one
    cut_cost: float  # cost of one example's cut, in units of one pass over a vector of n_features

    def cut(self, w: Vector, i: int) -> Cut:
        """Most violated cut of example i, without its weight c_i."""
        ...

    def risks(self, w: Vector) -> Vector:
        """Risk of each example at w, without weights."""
        ...

    def scores(self, w: Vector) -> Vector:
        """S, linear in w."""
        ...

    def respond(self, scores: Vector) -> tuple[Vector, float]:
        """Coefficients and loss of the summed, weighted cut at these scores."""
        ...

    def gather(self, coefficients: Vector) -> Vector:
        """Direction of a cut from its coefficients: the adjoint of `scores`."""
        ...

    def cut_all(self, w: Vector) -> Cut:
        """Most violated cut of the whole risk: the weighted sum over all examples."""
        ...


class PythonProblem:
    """A problem given by nothing but ``cut(w, i)``; everything else follows.

    >>> class Hinge(PythonProblem):
    ...     "max(0, 1 - w·x) for one x."
    ...     def cut(self, w, i):
    ...         x = np.array([1.0, 2.0])
    ...         return Cut(-x, 1.0) if w @ x < 1 else Cut(0 * x, 0.0)
    >>> Hinge(n_examples=1, n_features=2).cut_all(np.zeros(2))
    Cut(direction=array([-1., -2.]), loss=1.0)
    """

    kernel: Any = None
    cut_cost: float = 100.0

    def __init__(self, n_examples: int, n_features: int, weights: Vector | None = None) -> None:
        self.n_examples, self.n_features = n_examples, n_features
        self.weights = np.full(n_examples, 1.0 / n_examples) if weights is None else weights

    def cut(self, w: Vector, i: int) -> Cut:
        """Most violated cut of example i: the one method a task must write."""
        raise NotImplementedError(f"{type(self).__name__} defines no cut(w, i)")

    def risks(self, w: Vector) -> Vector:
        """Risk of each example at w."""
        return np.array([self.cut(w, i).at(w) for i in range(self.n_examples)])

    def scores(self, w: Vector) -> Vector:
        """Without more knowledge the scores are w itself."""
        return w

    def respond(self, scores: Vector) -> tuple[Vector, float]:
        """Sum the weighted cuts at w = scores."""
        direction, loss = np.zeros(self.n_features), 0.0
        for i, weight in enumerate(self.weights):
            cut = self.cut(scores, i)
            direction += weight * cut.direction
            loss += float(weight) * cut.loss
        return direction, loss

    def gather(self, coefficients: Vector) -> Vector:
        """Coefficients are the direction itself."""
        return coefficients

    def cut_all(self, w: Vector) -> Cut:
        """Sum of the weighted cuts at w."""
        return Cut(*self.respond(w))


class OneHinge(PythonProblem):
    """R(w) = max(0, 1 − w·x) for x = (1, 2): the example by which solvers are explained.

    J is least at w = x / ‖x‖² for C ≥ 1 / ‖x‖².
    """

    def __init__(self) -> None:
        super().__init__(n_examples=1, n_features=2)

    def cut(self, w: Vector, i: int) -> Cut:
        """The cut of the hinge at w."""
        x = np.array([1.0, 2.0])
        return Cut(-x, 1.0) if w @ x < 1 else Cut(0 * x, 0.0)


def cut_oracle(problem: Problem) -> Any:
    """What the core asks for cuts: the problem's own kernel, or else its `cut` in Python."""
    from didyma._core.learning import CutOracle, PythonCut

    kernel = problem.kernel
    return kernel if isinstance(kernel, CutOracle) else PythonCut(problem.cut)
