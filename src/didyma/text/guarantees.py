"""Thresholds with a guarantee: learn then test for precision, conformal risk control for recall.

Queries are the unit: passages of one query resemble each other, and say less than as many others.

Precision above a threshold neither rises nor falls with it. So a fixed grid of thresholds is tested
from strict ones on: a threshold is certified if a p-value of

    H: of the queries that have an answer above it, the mean share of relevant answers is too low

is small enough, and testing goes on to the next until one fails. Three such sequences share the
error: they start at the share that is asked for, where calibrated scores have more than that above
them, and at a third and two thirds of the way from there to 1, for scores that are too sure. With
probability ``level`` over held-out queries, all that is certified is right (Angelopoulos et al.,
Learn then Test). P-values are those of Hoeffding and Bentkus for the mean R̂ of n losses in [0, 1]
whose expectation is said to exceed α:

    min( exp(−n kl(min(R̂, α), α)),  e · P(Bin(n, α) ≤ ⌈n R̂⌉) )

Recall falls as a threshold rises, or a list is cut earlier. So the strictest cut with

    n / (n + 1) · mean loss + 1 / (n + 1) ≤ α

has an expected loss of at most α on a further query like these (conformal risk control).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.model import Saved, Serialisable

STEPS = 99
GRID = np.arange(STEPS, 0, -1) / (STEPS + 1)  # thresholds, the strictest first
STARTS = 3  # sequences of tests

Vector: TypeAlias = NDArray[np.float64]


class Certified(NamedTuple):
    """A threshold, what is guaranteed above it, and by how many held-out queries."""

    score: float
    promised: float
    level: float
    queries: int

    def __str__(self) -> str:
        return (
            f"{self.score:.2f}: with {self.level:.0%} confidence {self.promised:.0%} of a query's "
            f"answers are relevant on average ({self.queries} held-out queries have an answer)"
        )


@dataclass(frozen=True, eq=False)
class Guarantees(Serialisable):
    """What held-out queries say of each threshold .99, .98, …, .01.

    Attributes
    ----------
    answered : array of shape (99,)
        Queries with a passage that reaches the threshold.
    wrong : array of shape (99,)
        Mean over these of the share of such passages that is not relevant.
    missed : array of shape (99,)
        Mean over queries with a relevant passage of the share of those that is below.
    n_relevant : int
        Such queries.

    >>> scores = np.tile([0.9, 0.2], 100)
    >>> held = Guarantees.of(scores, np.tile([1.0, 0.0], 100), Groups.from_sizes([2] * 100, 200))
    >>> held.precision(0.9).score, held.recall(0.9).score
    (0.21, 0.9)
    """

    answered: Annotated[Vector, Saved(STEPS)]
    wrong: Annotated[Vector, Saved(STEPS)]
    missed: Annotated[Vector, Saved(STEPS)]
    n_relevant: int

    @classmethod
    def of(cls, scores: Vector, relevance: Vector, groups: Groups) -> Self:
        """Look at calibrated scores of models that did not see the query."""
        n, codes = len(groups), groups.codes
        relevant = np.bincount(codes, relevance, n)
        has_relevant = relevant > 0
        answered, wrong, missed = np.zeros((3, STEPS))
        for place, threshold in enumerate(GRID):
            above = scores >= threshold
            count = np.bincount(codes[above], minlength=n)
            hits = np.bincount(codes[above], relevance[above], n)
            has_answer = count > 0
            answered[place] = has_answer.sum()
            if has_answer.any():
                wrong[place] = np.mean(1 - hits[has_answer] / count[has_answer])
            if has_relevant.any():
                missed[place] = np.mean(1 - hits[has_relevant] / relevant[has_relevant])
        return cls(answered, wrong, missed, int(has_relevant.sum()))

    def precision(self, precision: float, level: float = 0.9) -> Certified:
        """The least threshold above which answers are as often relevant as is asked.

        Raises DataError if no threshold can be certified, and says how many queries it would take
        at least.
        """
        alpha = 1 - check_share(precision, "precision")
        error = 1 - check_share(level, "level")
        if alpha == 0:
            raise DataError(
                "expected less than 1: no number of queries shows it", field="precision"
            )
        firsts = precision + alpha * np.arange(STARTS) / STARTS
        starts = np.searchsorted(-GRID, -firsts - 1e-9).tolist()  # the first that is no greater
        passes = [
            hoeffding_bentkus(wrong, int(count), alpha) <= error / STARTS
            for wrong, count in zip(self.wrong.tolist(), self.answered.tolist())
        ]
        certified = [
            place
            for place in range(STEPS)
            if any(start <= place and all(passes[start : place + 1]) for start in starts)
        ]
        if not certified:
            fewest = math.ceil(math.log(error / STARTS) / math.log1p(-alpha))
            raise DataError(
                f"too few held-out queries to guarantee {precision:g} with {level:.0%} confidence: "
                f"{int(self.answered.max())} have an answer, and without any mistake {fewest} "
                "would be needed",
                field="precision",
            )
        last = certified[-1]
        return Certified(float(GRID[last]), precision, level, int(self.answered[last]))

    def recall(self, recall: float) -> Certified:
        """The greatest threshold that keeps this share of relevant passages in expectation."""
        alpha = 1 - check_share(recall, "recall")
        place = conformal_cut(self.missed, self.n_relevant, alpha)
        return Certified(float(GRID[place]), recall, 1.0, self.n_relevant)

    def _check_state(self) -> None:
        shares = np.concatenate([self.wrong, self.missed])
        if not (np.isfinite(shares).all() and shares.min() >= 0 and shares.max() <= 1):
            raise ValueError("expected shares from 0 to 1")


def hoeffding_bentkus(mean: float, n: int, alpha: float) -> float:
    """A p-value of the mean of n losses in [0, 1], if their expectation exceeds alpha.

    >>> hoeffding_bentkus(0.0, 22, 0.1) < 0.1 < hoeffding_bentkus(0.0, 21, 0.1)
    True
    """
    from scipy.stats import binom

    if n == 0 or mean >= alpha:
        return 1.0
    kl = -math.log1p(-alpha)
    if mean > 0:
        kl = mean * math.log(mean / alpha) + (1 - mean) * math.log((1 - mean) / (1 - alpha))
    bentkus = math.e * float(binom.cdf(math.ceil(n * mean - 1e-9), n, alpha))
    return min(1.0, math.exp(-n * kl), bentkus)


def conformal_cut(losses: ArrayLike, n: int, alpha: float) -> int:
    """The first place of mean losses, which fall from left to right, that n queries allow.

    >>> conformal_cut([0.5, 0.2, 0.05, 0.0], 80, 0.1)
    2
    """
    means = np.asarray(losses, np.float64)
    allowed = np.flatnonzero(n / (n + 1) * means + 1 / (n + 1) <= alpha + 1e-12)
    if not len(allowed):
        more = "no number of queries shows it"
        if alpha > 0:
            more = f"{math.ceil(1 / alpha - 1)} at least are needed"
        raise DataError(
            f"no cut of {len(means)} loses so little by what {n} queries with a relevant passage "
            f"say; {more}",
            field="recall",
        )
    return int(allowed[0])


def check_share(value: float, field: str) -> float:
    """The value, if it is a share above 0."""
    if not 0 < value <= 1:
        raise DataError(f"expected a share above 0, found {value!r}", field=field)
    return value
