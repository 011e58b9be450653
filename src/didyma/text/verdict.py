"""Whether what was learned ranks: only if it is better than the baseline on held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from didyma.model import Saved, Serialisable
from didyma.text.opponents import Opponent

if TYPE_CHECKING:
    from didyma.text.selection import Trial


@dataclass(frozen=True)
class Verdict(Serialisable):
    """The comparison of a trial with the baseline, on held-out queries.

    Attributes
    ----------
    kept : str
        What ranks.
    baseline : str
        The order that it was compared with: the best of the opponents.
    measure : str
    n_queries : int
        That have a better and a worse passage.
    value, baseline_value : float
        Means of the measure; for what was learned, by models that had not seen the query.
    p_value : float
        Of the two-tailed Wilcoxon signed-rank test over queries, as reports have it.
    passed : bool
        Whether what was learned is kept.
    verdict : str
        All of this in words.
    opponents : tuple of Opponent
        Every order that needs no training, with its mean of the measure on the same queries: first
        stages, signals, BM25, meaning, the sum of z-scores and reciprocal rank fusion.

    Both sides are chosen on the queries that they are compared on, the best opponent among some,
    the best trial among many, so that either figure is a little too high; that a gain must exceed
    its standard error is the allowance for it.
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
    opponents: Annotated[tuple[Opponent, ...], Saved(default=())] = ()

    @property
    def baseline_order(self) -> Opponent:
        """The baseline as a sum of columns."""
        named = {order.name: order for order in self.opponents}
        return named.get(self.baseline) or Opponent.single(self.baseline)

    @property
    def gain(self) -> float:
        """What reranking adds to the measure."""
        return self.value - self.baseline_value

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        opponents = {order.name: order.value for order in self.opponents}
        return {**asdict(replace(self, opponents=())), "opponents": opponents}


def select(trials: Sequence[Trial], base: NDArray[np.float64]) -> Trial | None:
    """The best trial by mean gain over held-out queries, or by mean − standard error.

    The latter counts where the greatest gain is below its standard error, as with few queries: as
    a rule a blend with the baseline wins then. ``base`` are values of the measure before reranking.
    """

    def best(errors: float) -> Trial | None:
        return max(trials, key=lambda trial: lower_bound(trial.values, base, errors), default=None)

    trial = best(0.0)
    return trial if trial is None or lower_bound(trial.values, base) > 0 else best(1.0)


def lower_bound(
    values: NDArray[np.float64], base: NDArray[np.float64], errors: float = 1.0
) -> float:
    """Mean gain less so many standard errors."""
    gain = values - base
    return float(gain.mean() - errors * gain.std(ddof=1) / np.sqrt(len(gain)))


def decide(
    best: Trial | None,
    baseline: str,
    base: NDArray[np.float64],
    measure: str,
    untried: Sequence[Any] = (),
    opponents: Sequence[Opponent] = (),
) -> Verdict:
    """Whether a trial is kept, which it is if its gain is greater than its standard error."""
    from didyma.metrics.significance import wilcoxon

    values = base if best is None else best.values
    n, value, before = len(base), float(values.mean()), float(base.mean())
    p = 1.0 if best is None else wilcoxon(values, base)
    passed = best is not None and lower_bound(values, base) > 0
    if best is None:
        queries = "One query is" if n == 1 else f"{n} queries are"
        verdict = f"{queries} too few to learn from, so the order is that of {baseline}."
    else:
        free = f", the best of {len(opponents)} orders that need no training,"
        figures = (
            f"{measure} {value:.3f} against {before:.3f} of {baseline}"
            f"{free * (len(opponents) > 1)} on {n} held-out queries (p = {p:.2g})"
        )
        verdict = (
            f"What was learned ranks ({best}): {figures}."
            if passed
            else f"No gain is certain, so the order is that of {baseline}. What was learned "
            f"({best}) had {figures}."
        )
    if untried:
        verdict += f" Not tried, as the time was up: {', '.join(map(str, untried))}."
    kept = str(best) if passed else baseline
    return Verdict(
        *(kept, baseline, measure, n, value, before, p, passed, verdict), tuple(opponents)
    )
