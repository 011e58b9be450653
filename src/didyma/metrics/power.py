"""How many queries a paired comparison needs, by the differences of those at hand."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from didyma.errors import DataError

MOST = 10**7  # queries that are looked at


@dataclass(frozen=True)
class Power:
    """What more queries would show.

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
    while high < MOST and power_of(high, deviation, gain, level) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(middle, deviation, gain, level) < power:
            low = middle
        else:
            high = middle
    needed = None if high >= MOST else high
    now = power_of(len(values), deviation, gain, level)
    return Power(len(values), deviation, gain, level, now, power, needed)
