"""A problem of one example, by which solvers are explained and tried."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from didyma.learning.problem import Cut, PythonProblem


class OneHinge(PythonProblem):
    """R(w) = max(0, 1 − w·x) for x = (1, 2); J is least at w = x / ‖x‖² for C ≥ 1 / ‖x‖².

    >>> OneHinge().cut_all(np.zeros(2))
    Cut(direction=array([-1., -2.]), loss=1.0)
    """

    def __init__(self) -> None:
        super().__init__(n_examples=1, n_features=2)

    def cut(self, w: NDArray[np.float64], i: int) -> Cut:
        """The cut of the hinge at w."""
        x = np.array([1.0, 2.0])
        return Cut(-x, 1.0) if w @ x < 1 else Cut(0 * x, 0.0)
