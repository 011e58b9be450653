"""What held-out queries say about settings: cross-validation, and which setting is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists

FOLDS = 3
ERRORS = 3.0  # standard errors by which the best of several settings must be ahead to count

Vector = NDArray[np.float64]


def cross_validate(
    lists: Lists, usable: NDArray[np.bool_], measure: str, fit: Callable[..., Iterable[Vector]]
) -> Vector | None:
    """The mean of the measure over held-out queries by each setting, weighted as they are.

    None says that there are too few queries; see `held_out_values`.
    """
    folds = list(held_out_values(lists, usable, measure, fit))
    if not folds:
        return None
    values, weights = (np.concatenate(parts, axis=-1) for parts in zip(*folds))
    return np.asarray(values @ weights / weights.sum())


def held_out_values(
    lists: Lists, usable: NDArray[np.bool_], measure: str, fit: Callable[..., Iterable[Vector]]
) -> Iterator[tuple[Vector, Vector]]:
    """The measure of the queries of each fold by each setting, (n_settings × n_queries), and the
    weights of these queries.

    ``fit(train, test)`` scores the rows of ``test`` once for each setting. Each third of the usable
    queries is held out in turn; there are no folds where queries are too few.
    """
    from didyma.metrics import Evaluator, parse

    judged = parse(measure)
    queries = np.random.default_rng(0).permutation(np.flatnonzero(usable))
    if len(queries) < 2 * FOLDS:
        return
    fold = np.full(len(lists.groups), -1)
    fold[queries] = np.arange(len(queries)) % FOLDS
    for held_out in range(FOLDS):
        of_row = fold[lists.groups.codes]
        train, test = (lists.select(rows) for rows in (of_row != held_out, of_row == held_out))
        evaluator = Evaluator(test.y, test.groups, judged)
        values = np.array([evaluator(scores)[judged] for scores in fit(train, test)])
        yield values, np.ones(len(test.groups)) if test.weights is None else test.weights


def first_near_best(values: Vector, weights: Vector, errors: float = ERRORS) -> int:
    """The first row of values (settings × queries) that the best one is not clearly ahead of.

    That is by so many standard errors of their paired differences, of which the mean is weighted.

    >>> values = np.array([[0.1, 0.5, 0.2], [0.2, 0.5, 0.1], [0.8, 0.9, 1.0]])
    >>> first_near_best(values, np.ones(3))
    2
    """
    shares, n = weights / weights.sum(), values.shape[1]
    behind = values[int(np.argmax(values @ shares))] - values
    means = behind @ shares
    error = np.sqrt(((behind - means[:, None]) ** 2 @ shares**2) * (n / (n - 1)))
    return int(np.argmax(means <= errors * error))
