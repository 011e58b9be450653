"""Nested cross-validation: settings are chosen by folds that have no part in judging them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]
T = TypeVar("T")


class NestedChoice(NamedTuple, Generic[T]):
    """What was learned without each fold, by the setting that the other folds chose.

    ``settings`` are what each setting has learned without each fold. Their ``losses`` are summed
    over all folds; by these ``best`` is the setting for what is learned from all of them.
    """

    held_out: list[T]
    settings: list[Sequence[T]]
    losses: NDArray[np.float64]
    best: int


def nested_choice(
    learn: Callable[[Mask], Sequence[T]],
    loss: Callable[[T, Mask], float],
    fold: NDArray[np.int64],
) -> NestedChoice[T]:
    """Choose among the settings that ``learn`` tries on some rows, by the loss on others.

    ``fold`` is that of each row, from 0. Two folds leave nothing to choose by: the first setting is
    taken for each.

    >>> y, fold = np.array([1.0, 3.0, 2.0, 2.0, 1.0, 3.0]), np.array([0, 0, 1, 1, 2, 2])
    >>> means = lambda rows: [0.0, float(y[rows].mean())]
    >>> squares = lambda mean, rows: float(((y[rows] - mean) ** 2).sum())
    >>> choice = nested_choice(means, squares, fold)
    >>> choice.held_out, choice.losses.tolist(), choice.best
    ([2.0, 2.0, 2.0], [28.0, 4.0], 1)
    """
    n_folds = int(fold.max()) + 1
    outer = [learn(fold != n) for n in range(n_folds)]
    losses = np.array([[loss(learned, fold == n) for learned in outer[n]] for n in range(n_folds)])
    inner = np.zeros_like(losses)  # of each fold, the losses of others without it
    if n_folds > 2:
        for first in range(n_folds):
            for second in range(first):
                learned = learn((fold != first) & (fold != second))
                inner[first] += [loss(one, fold == second) for one in learned]
                inner[second] += [loss(one, fold == first) for one in learned]
    chosen = [learned[int(np.argmin(sums))] for learned, sums in zip(outer, inner)]
    return NestedChoice(chosen, outer, losses.sum(axis=0), int(np.argmin(losses.sum(axis=0))))
