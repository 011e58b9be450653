"""Two small tasks, by which learners are explained and tried."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from didyma.structured.task import Task

Vector = NDArray[np.float64]


class Signs(Task):
    """Is a number positive? Outputs are 1 and −1, Ψ(x, output) = x · output.

    >>> Signs().argmax(np.array([2.0]), -3.0)
    -1
    """

    n_features = 1

    def features(self, x: float, output: int) -> Vector:
        """The number with the output's sign."""
        return np.array([x * output])

    def argmax(self, w: Vector, x: float) -> int:
        """The sign of w x."""
        return 1 if w[0] * x > 0 else -1

    def loss(self, y: int, output: int) -> float:
        """1 if the sign is wrong."""
        return float(y != output)

    def loss_augmented(self, w: Vector, x: float, y: int, scale: float = 1.0) -> int:
        """The sign of largest score and loss together."""
        return max((1, -1), key=lambda output: scale * (output != y) + w[0] * x * output)


class Bags(Task):
    """Which item of a bag makes it positive? Labels say whether there is one, not which.

    A bag is a matrix with a row for each item; an output is the number of an item, or None.

    >>> Bags().complete(np.array([1.0, 0.0]), np.array([[1.0, 0.0], [2.0, 0.0]]), True)
    1
    """

    n_features = 2

    def features(self, x: Vector, output: int | None) -> Vector:
        """The item, or zero."""
        return np.zeros(2) if output is None else x[output]

    def argmax(self, w: Vector, x: Vector) -> int | None:
        """The best item if its score is positive."""
        return int(np.argmax(x @ w)) if (x @ w).max() > 0 else None

    def loss(self, y: bool, output: int | None) -> float:
        """1 if there is an item where there should be none, or none where there should be one."""
        return float(y != (output is not None))

    def loss_augmented(self, w: Vector, x: Vector, y: bool, scale: float = 1.0) -> int | None:
        """The best item or None, whichever has more score and loss together."""
        item = int(np.argmax(x @ w))
        return item if x[item] @ w + scale * (not y) > scale * y else None

    def complete(self, w: Vector, x: Vector, y: bool) -> int | None:
        """The best item of a positive bag."""
        return int(np.argmax(x @ w)) if y else None
