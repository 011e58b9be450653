"""It must not hurt: what was learned is kept only if held-out queries say that it helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from didyma.rerank.choice import Trial

__all__ = ["Gate", "decide"]

LEVEL = 0.1  # of the test that a gain must pass


@dataclass(frozen=True)
class Gate:
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

    def state(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_state(cls, values: dict[str, Any]) -> Self:
        """The gate of these values."""
        return cls(**values)


def decide(
    trials: list[Trial], baselines: Mapping[str, NDArray[np.float64]], measure: str
) -> tuple[Trial | None, Gate]:
    """The trial that is kept, or None for the baseline, and why.

    ``trials`` are in the order in which they are preferred; ``baselines`` are values of the measure
    for each query under orders that need no training, of which the best counts.
    """
    name = max(baselines, key=lambda key: baselines[key].mean())
    base = baselines[name]
    for trial in trials:
        p = p_of_gain(trial.values, base)
        if p <= LEVEL:
            return trial, _gate(str(trial), name, measure, trial.values, base, p, passed=True)
    if not trials:
        return None, _gate(name, name, measure, base, base, 1.0, passed=False)
    first = trials[0]
    p = p_of_gain(first.values, base)
    return None, _gate(str(first), name, measure, first.values, base, p, passed=False)


def _gate(
    learned: str,
    baseline: str,
    measure: str,
    values: NDArray[np.float64],
    base: NDArray[np.float64],
    p: float,
    *,
    passed: bool,
) -> Gate:
    n = len(base)
    value, before = (float(own.mean()) if n else 0.0 for own in (values, base))
    queries = f"{n} held-out {'query' if n == 1 else 'queries'}"
    if learned == baseline:
        verdict = (
            "One query with relevant and irrelevant passages is too few to learn from: the order "
            f"is that of {baseline}."
        )
    else:
        found = (
            f"{measure} {value:.3f} against {before:.3f} of {baseline} on {queries} (p = {p:.2g})"
        )
        if passed:
            verdict = f"What was learned ({learned}) ranks: {found}."
        else:
            verdict = (
                f"No gain is certain, so the order is that of {baseline}. "
                f"The best that was learned ({learned}) had {found}."
            )
    kept = learned if passed else baseline
    return Gate(kept, baseline, measure, n, value, before, p, passed, verdict)


def p_of_gain(values: NDArray[np.float64], base: NDArray[np.float64]) -> float:
    """Chance of so great a mean gain if the two were interchangeable, query by query.

    >>> p_of_gain(np.array([0.5, 0.6, 0.9]), np.array([0.4, 0.5, 0.3])) < 0.2
    True
    """
    from didyma.metrics.significance import randomisation

    p = randomisation(values, base)
    return p / 2 if values.mean() > base.mean() else 1 - p / 2
