"""Two small tasks, with a latent part and without, and examples of them."""

from __future__ import annotations

import itertools

import numpy as np

from didyma.structured.task import Task

N_CLASSES, N_PARTS, N_COLUMNS = 3, 4, 3


class Parts(Task):
    """A class and a part of x; the loss grows with the distance of the classes."""

    n_features = N_CLASSES * N_COLUMNS

    def features(self, x, output):
        label, part = output
        vector = np.zeros((N_CLASSES, N_COLUMNS))
        vector[label] = x[part]
        return vector.ravel()

    def loss(self, y, output):
        return abs(y - output[0]) / 2.0

    def _best(self, w, x, labels, bonus):
        return max(
            itertools.product(labels, range(len(x))),
            key=lambda output: w @ self.features(x, output) + bonus(output),
        )

    def argmax(self, w, x):
        return self._best(w, x, range(N_CLASSES), lambda output: 0.0)

    def loss_augmented(self, w, x, y, scale=1.0):
        return self._best(w, x, range(N_CLASSES), lambda output: scale * self.loss(y, output))

    def complete(self, w, x, y):
        return self._best(w, x, [y], lambda output: 0.0)

    def initial(self, x, y, rng):
        return y, int(rng.integers(len(x)))


class Whole(Task):
    """The same without a latent part: x is one vector."""

    n_features = N_CLASSES * N_COLUMNS

    def features(self, x, output):
        vector = np.zeros((N_CLASSES, N_COLUMNS))
        vector[output] = x
        return vector.ravel()

    def loss(self, y, output):
        return float(y != output)

    def argmax(self, w, x):
        return int(np.argmax(w.reshape(N_CLASSES, -1) @ x))

    def loss_augmented(self, w, x, y, scale=1.0):
        return int(np.argmax(w.reshape(N_CLASSES, -1) @ x + scale * (np.arange(N_CLASSES) != y)))


def examples_of_parts(n=40, seed=0):
    """Four vectors each, one of which tells the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, N_CLASSES, n).tolist()
    examples = [rng.standard_normal((N_PARTS, N_COLUMNS)) for _ in labels]
    for x, y in zip(examples, labels):
        x[rng.integers(N_PARTS), y] += 2.5
    return examples, labels


def examples_of_wholes(n=60):
    """One vector each."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, N_CLASSES, n).tolist()
    return [rng.standard_normal(N_COLUMNS) + 2.0 * np.eye(N_COLUMNS)[y] for y in labels], labels
