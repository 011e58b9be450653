"""Paired two-tailed tests between two systems, on one value per query of each, and their power.

A p-value is the probability of a difference at least this large if the systems were
interchangeable. Differences are rounded to twelve decimals: what is smaller is arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError

PairedTest: TypeAlias = Callable[[ArrayLike, ArrayLike], float]

DECIMALS = 12
EXACT = 50  # pairs up to which Wilcoxon's test enumerates signs
CHUNK = 1 << 22
MOST_QUERIES = 10**7  # that a search for enough of them looks at


@dataclass(frozen=True)
class Comparison:
    """A system against a baseline: ``difference`` and ``wins`` are in favour of the system.

    >>> new = compare([0.2, 0.4, 0.5], {"new": [0.3, 0.4, 0.9]}, test=t_test)["new"]
    >>> new.wins, new.losses, new.ties, round(new.difference, 3)
    (2, 0, 1, 0.167)
    """

    mean: float
    difference: float
    wins: int
    losses: int
    ties: int
    p_value: float


def wilcoxon(a: ArrayLike, b: ArrayLike) -> float:
    """Wilcoxon's signed-rank test: |Σ sign(d) rank(|d|)| against signs that are tosses of a coin.

    Equal pairs are left out, equal differences share their ranks. Exact up to fifty pairs, by the
    normal distribution with the same variance beyond.

    >>> wilcoxon([0.5, 0.6, 0.7, 0.8, 0.9], [0.4, 0.4, 0.4, 0.4, 0.4])
    0.0625
    """
    from scipy.stats import rankdata

    differences = _differences(a, b)
    differences = differences[differences != 0]
    ranks = rankdata(np.abs(differences))
    observed = abs(np.sign(differences) @ ranks)
    if len(ranks) > EXACT:
        return math.erfc(observed / math.sqrt(2 * ranks @ ranks))
    twice = (2 * ranks).astype(np.int64)  # integers, as shared ranks end in halves
    positive = np.ones(1)  # the distribution of the sum of those ranks whose sign is positive
    for rank in twice:
        missing = np.zeros(rank)
        positive = (np.append(positive, missing) + np.append(missing, positive)) / 2
    sums = np.abs(2 * np.arange(len(positive)) - twice.sum())
    return min(1.0, float(positive[sums >= 2 * observed].sum()))


def t_test(a: ArrayLike, b: ArrayLike) -> float:
    """Student's paired test; 1 for a single pair, which shows nothing.

    >>> round(t_test([0.3, 0.4, 0.9], [0.2, 0.4, 0.5]), 3)
    0.3
    """
    from scipy import stats

    differences = _differences(a, b)
    if len(differences) < 2 or not differences.any():
        return 1.0
    if np.ptp(differences) == 0:
        return 0.0
    return float(stats.ttest_1samp(differences, 0.0).pvalue)


def randomisation(
    a: ArrayLike, b: ArrayLike, *, rounds: int = 10_000, random_state: int = 0
) -> float:
    """Fisher's randomisation test of the mean: p = (1 + #{|d'| ≥ |d|}) / (1 + rounds).

    In each round d' is the mean difference after the two values of every pair were swapped or not
    by the toss of a coin.

    >>> randomisation([0.3, 0.4, 0.9], [0.2, 0.4, 0.5], rounds=99)
    0.51
    """
    differences = _differences(a, b)
    observed = abs(differences.sum()) * (1 - 1e-9)  # equal sums may differ by rounding
    random = np.random.default_rng(random_state)
    extreme, step = 0, max(1, CHUNK // max(1, len(differences)))
    for start in range(0, rounds, step):
        swaps = random.random((min(step, rounds - start), len(differences))) < 0.5
        sums = differences.sum() - 2 * (swaps @ differences)
        extreme += int((np.abs(sums) >= observed).sum())
    return (1 + extreme) / (1 + rounds)


def interval(
    a: ArrayLike,
    b: ArrayLike,
    *,
    level: float = 0.95,
    rounds: int = 10_000,
    random_state: int = 0,
) -> tuple[float, float]:
    """The paired bootstrap interval of the mean difference: quantiles over draws of queries.

    >>> low, high = interval([0.3, 0.4, 0.9, 0.5], [0.2, 0.4, 0.5, 0.4])
    >>> 0 < low < 0.15 < high < 0.4
    True
    """
    differences = _differences(a, b)
    n, random = len(differences), np.random.default_rng(random_state)
    step = max(1, CHUNK // n)
    means = np.concatenate(
        [
            differences[random.integers(0, n, (min(step, rounds - start), n))].mean(axis=1)
            for start in range(0, rounds, step)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


# Names by which a command line or an estimator chooses a test.
TESTS: dict[str, PairedTest] = {"wilcoxon": wilcoxon, "t": t_test, "randomisation": randomisation}


def wins_losses(a: ArrayLike, b: ArrayLike) -> tuple[int, int, int]:
    """Number of queries on which ``a`` is better than, worse than and equal to ``b``.

    >>> wins_losses([0.5, 0.1, 0.3], [0.4, 0.4, 0.3])
    (1, 1, 1)
    """
    signs = np.sign(_differences(a, b))
    return int((signs > 0).sum()), int((signs < 0).sum()), int((signs == 0).sum())


def compare(
    baseline: ArrayLike,
    others: Mapping[str, ArrayLike],
    *,
    test: PairedTest = wilcoxon,
    correct: bool = False,
) -> dict[str, Comparison]:
    """Each of several systems against one baseline, by their values per query.

    ``correct`` applies Holm's correction to the p-values, one for each system.

    >>> compare([0.2, 0.4], {"new": [0.3, 0.4]}, test=t_test)["new"].wins
    1
    """
    comparisons = {}
    for name, values in others.items():
        comparisons[name] = Comparison(
            float(np.mean(np.asarray(values, dtype=np.float64))),
            float(_differences(values, baseline).mean()),
            *wins_losses(values, baseline),
            test(values, baseline),
        )
    if not correct:
        return comparisons
    corrected = holm([comparison.p_value for comparison in comparisons.values()])
    return {
        name: replace(comparison, p_value=float(p_value))
        for (name, comparison), p_value in zip(comparisons.items(), corrected)
    }


def holm(p_values: Sequence[float]) -> NDArray[np.float64]:
    """Holm's step-down correction: the i-th smallest of m becomes max over j ≤ i of (m-j+1) p_j.

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(corrected, 1.0)


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise DataError(
            "expected one value per query from both systems, "
            f"found shapes {first.shape} and {second.shape}"
        )
    differences = np.round(first - second, DECIMALS)
    if not np.isfinite(differences).all():
        place = int((~np.isfinite(differences)).argmax())
        raise DataError(
            f"expected two numbers for query {place}, found {first[place]} and {second[place]}"
        )
    return differences


@dataclass(frozen=True)
class Power:
    """Power of a paired test: how many queries a comparison needs, by the differences at hand.

    Attributes
    ----------
    n_queries : int
        At hand.
    deviation : float
        Of their differences.
    gain : float
        That is to be shown.
    now : float
        The chance that so many queries show it.
    wanted : float
        The chance that is asked for.
    needed : int or None
        Queries in all that give this chance; None if ten million do not.

    >>> print(queries_needed([0.1, -0.1] * 20, 0.02))
    164 more queries would show a gain of .02 with 80 % (the 40 at hand: 23 %)
    """

    n_queries: int
    deviation: float
    gain: float
    level: float
    now: float
    wanted: float
    needed: int | None

    @property
    def more(self) -> int | None:
        """Queries that are lacking."""
        return None if self.needed is None else max(0, self.needed - self.n_queries)

    def __str__(self) -> str:
        gain, chance = f"{self.gain:.3g}".removeprefix("0"), f"{self.now:.0%}".replace("%", " %")
        wanted = f"{self.wanted:.0%}".replace("%", " %")
        if self.more is None:
            return f"no number of queries would show a gain of {gain} with {wanted}"
        if not self.more:
            return f"the {self.n_queries} queries at hand show a gain of {gain} with {chance}"
        queries = "1 more query" if self.more == 1 else f"{self.more} more queries"
        at_hand = f"the {self.n_queries} at hand: {chance}"
        return f"{queries} would show a gain of {gain} with {wanted} ({at_hand})"

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {**asdict(self), "more": self.more}


def power_of(n_queries: int, deviation: float, gain: float, level: float = 0.05) -> float:
    """The chance that the two-tailed paired t-test shows a gain, in its direction, at a level.

    P(T > t) of a non-central t with n − 1 degrees of freedom and non-centrality √n · gain /
    deviation, t being the 1 − level / 2 quantile of the central one.

    >>> round(power_of(199, 0.1, 0.02), 3)
    0.802
    """
    from scipy import stats

    if n_queries < 2:
        return 0.0
    if deviation == 0:
        return 1.0 if gain > 0 else level / 2
    critical = stats.t.ppf(1 - level / 2, n_queries - 1)
    chance = stats.nct.sf(critical, n_queries - 1, math.sqrt(n_queries) * gain / deviation)
    return 1.0 if math.isnan(chance) else float(chance)


def queries_needed(
    differences: ArrayLike, gain: float, power: float = 0.8, level: float = 0.05
) -> Power:
    """How many queries show a mean gain, if further ones differ as those at hand do.

    ``differences`` are those of a measure between two systems, one for each query.

    >>> queries_needed([0.1, -0.1] * 20, 0.02).more
    164
    """
    values = np.asarray(differences, np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise DataError("expected a difference for each of two queries or more")
    for name, value, most in (("gain", gain, math.inf), ("power", power, 1), ("level", level, 1)):
        if not 0 < value < most:
            raise DataError(f"expected a number between 0 and {most}, found {value}", field=name)
    deviation = float(values.std(ddof=1))
    low, high = 1, 2
    while high < MOST_QUERIES and power_of(high, deviation, gain, level) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(middle, deviation, gain, level) < power:
            low = middle
        else:
            high = middle
    needed = None if high >= MOST_QUERIES else high
    now = power_of(len(values), deviation, gain, level)
    return Power(len(values), deviation, gain, level, now, power, needed)
