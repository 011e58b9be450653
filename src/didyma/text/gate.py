"""It must not hurt: what was learned is kept only if held-out queries say that it helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from didyma.model import Serialisable

if TYPE_CHECKING:
    from didyma.text.selection import Trial

__all__ = ["Gate", "decide", "surest"]


@dataclass(frozen=True)
class Gate(Serialisable):
    """What held-out queries say about a reranker and the order that it would change.

    Attributes
    ----------
    kept : str
        What ranks.
    baseline : str
        The order that it was compared with: that of the first stage, or of BM25.
    measure : str
    n_queries : int
        That have a better and a worse passage.
    value, baseline_value : float
        Means of the measure; for what was learned, by models that had not seen the query.
    p_value : float
        Chance of so great a gain where there is none.
    passed : bool
        Whether what was learned is kept.
    verdict : str
        All of this in words.
    """

    kept: str
    baseline: str
    measure: str
    n_queries: int
    value: float
    baseline_value: float
    p_value: float
    passed: bool
    verdict: str

    @property
    def gain(self) -> float:
        """What reranking adds to the measure."""
        return self.value - self.baseline_value

    def __str__(self) -> str:
        return self.verdict


def surest(trials: Sequence[Trial], base: NDArray[np.float64]) -> Trial | None:
    """The trial that should rank, if any should.

    It is the one with the greatest mean gain over held-out queries. Where that could be chance, as
    with few queries, it is the one that helps most surely: as a rule a mix with the old order.
    ``base`` are values of the measure before reranking.
    """

    def best(errors: float) -> Trial | None:
        return max(trials, key=lambda own: surely(own.values, base, errors), default=None)

    found = best(0.0)
    return found if found is None or surely(found.values, base) > 0 else best(1.0)


def surely(values: NDArray[np.float64], base: NDArray[np.float64], errors: float = 1.0) -> float:
    """Mean gain less so many standard errors."""
    gain = values - base
    return float(gain.mean() - errors * gain.std(ddof=1) / np.sqrt(len(gain)))


def decide(
    best: Trial | None,
    baseline: str,
    base: NDArray[np.float64],
    measure: str,
    untried: Sequence[Any] = (),
) -> Gate:
    """Whether a trial is kept, which it is if its gain is greater than its standard error."""
    values = base if best is None else best.values
    n, value, before = len(base), float(values.mean()), float(base.mean())
    p, passed = (
        (1.0, False) if best is None else (p_of_gain(values, base), surely(values, base) > 0)
    )
    if best is None:
        queries = "One query is" if n == 1 else f"{n} queries are"
        verdict = f"{queries} too few to learn from, so the order is that of {baseline}."
    else:
        found = (
            f"{measure} {value:.3f} against {before:.3f} of {baseline} on {n} held-out queries "
            f"(p = {p:.2g})"
        )
        verdict = (
            f"What was learned ranks ({best}): {found}."
            if passed
            else f"No gain is certain, so the order is that of {baseline}. What was learned "
            f"({best}) had {found}."
        )
    if untried:
        verdict += f" Not tried, as the time was up: {', '.join(map(str, untried))}."
    kept = str(best) if passed else baseline
    return Gate(kept, baseline, measure, n, value, before, p, passed, verdict)


def p_of_gain(values: NDArray[np.float64], base: NDArray[np.float64]) -> float:
    """Chance of so great a mean gain if the two were interchangeable, query by query.

    >>> p_of_gain(np.array([0.5, 0.6, 0.9]), np.array([0.4, 0.5, 0.3])) < 0.2
    True
    """
    from didyma.metrics.significance import randomisation

    p = randomisation(values, base)
    return p / 2 if values.mean() > base.mean() else 1 - p / 2
