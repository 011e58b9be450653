"""No training fails silently: a warning where what was learned is worth no more than nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Groups, Lists
from didyma.data.matrix import Matrix
from didyma.errors import NothingLearnedWarning, warn
from didyma.learning.problem import Problem
from didyma.learning.solution import Solution

__all__ = ["Learner", "concordance", "gain_over_zero", "warn_if_nothing_learned", "warn_of_zero"]

Vector = NDArray[np.float64]

SAMPLE = 100  # queries that tell whether a ranking is better than none ...
FEW, CLEARLY = 10, 4.0  # ... unless a few already do, by so many standard errors


def concordance(scores: Vector, relevant: NDArray[np.bool_]) -> float:
    """Share of the pairs of one query that are in the right order, ties as halves.

    >>> concordance(np.array([2.0, 1.0, 1.0]), np.array([False, True, False]))
    0.25
    """
    others = np.sort(scores[~relevant])
    below = np.searchsorted(others, scores[relevant], "left")
    not_above = np.searchsorted(others, scores[relevant], "right")
    return float((below + not_above).sum() / (2.0 * relevant.sum() * len(others)))


def gain_over_zero(problem: Problem, C: float, solution: Solution, tol: float) -> float:
    """How far the objective of a solution is below that of zero weights, relative to the latter.

    By strong convexity that is at least ½‖w‖², up to the tolerance; only if this is too small to
    tell is the loss at zero asked for. Where C is so small that w is the cut at zero times −C,
    nothing stands against it, and its direction is all that counts.
    """
    value, norm = solution.result.value, float(np.linalg.norm(solution.w))
    if 0.5 * norm**2 > 2.0 * tol * value:
        return np.inf
    zero = problem.cut_all(np.zeros(problem.n_features))
    gain = 1.0 - value / (C * zero.loss) if zero.loss > 0.0 else 0.0
    if gain > tol or not norm > 0.5 * C * np.linalg.norm(zero.direction) > 0.0:
        return gain
    return np.inf


def warn_if_nothing_learned(
    score: Callable[[NDArray[np.int64]], Vector],
    relevant: NDArray[np.bool_],
    groups: Groups,
    *,
    gain: float,
    tol: float,
    advice: str,
) -> None:
    """Warn if weights are no better than zero weights, or rank no better than a constant.

    ``gain`` is that of `gain_over_zero`: within ``tol`` training cannot tell the two apart. A
    constant has half of all pairs in the right order; the mean over training queries must be above
    that by its standard error. ``score(rows)`` gives the scores of some rows: of many queries a
    sample is taken, so that looking is cheap.
    """
    if gain <= tol:
        warn_of_zero(tol, advice)
    elif reason := _by_chance(score, relevant, groups):
        warn(f"nothing was learned: {reason}; {advice}", NothingLearnedWarning)


def warn_of_zero(tol: float, advice: str) -> None:
    """Say that zero weights would have done as well."""
    reason = f"the objective is within {tol:g} of that of zero weights"
    warn(f"nothing was learned: {reason}; {advice}", NothingLearnedWarning)


def _by_chance(
    score: Callable[[NDArray[np.int64]], Vector], relevant: NDArray[np.bool_], groups: Groups
) -> str:
    """Why a ranking is no better than a constant, or nothing if it is."""
    count = np.bincount(groups.codes, weights=relevant, minlength=len(groups))
    usable = np.flatnonzero((count > 0) & (count < groups.sizes))
    if len(usable) == 0:
        return ""
    mean = 0.0
    for most, errors in ((FEW, CLEARLY), (SAMPLE, 1.0)):
        places = np.linspace(0, len(usable) - 1, min(most, len(usable))).astype(np.int64)
        queries = [groups.rows[groups.starts[q] : groups.starts[q + 1]] for q in usable[places]]
        parts = np.split(score(np.concatenate(queries)), np.cumsum([len(q) for q in queries])[:-1])
        shares = np.array([concordance(s, relevant[q]) for s, q in zip(parts, queries)])
        error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
        mean = shares.mean()
        if mean > 0.5 + errors * error:
            return ""
    return (
        f"of the pairs of a training query {mean:.3f} are in the right order, and of a constant "
        "score 0.5"
    )


class Learner:
    """What trains on judged rows of queries, and can tell whether that was in vain."""

    _gain: float = np.inf  # over zero weights, where there is an objective: see `gain_over_zero`

    def _check_learned(self, train: Lists) -> None:
        """Warn if the fit was in vain."""
        warn_if_nothing_learned(
            lambda rows: self._score_rows(train.X[rows]),
            self._relevant(train),
            train.groups,
            gain=self._gain,
            tol=getattr(self, "tol", 0.0),
            advice=self._advice(),
        )

    def _score_rows(self, X: Matrix) -> Vector:
        """Scores of rows that have been read."""
        raise NotImplementedError

    def _relevant(self, lists: Lists) -> NDArray[np.bool_]:
        """Which rows ought to stand above the others of their query."""
        return lists.y >= 1

    def _advice(self) -> str:
        """What to try if nothing was learned."""
        return "scale the features, try another C, or look for features that tell rows apart"
