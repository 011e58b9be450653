"""Orders that need no training, and the verdict on what was learned, compared with the best.

Such orders are those of each first stage, each signal, BM25, meaning, and their fusions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.matrix import Columns
from didyma.model import Model, Saved, Serialisable
from didyma.ranking.svm import SVMRanker
from didyma.text.features.meaning import MEANING
from didyma.text.features.part import IN_LIST, RRF, FirstStage
from didyma.text.features.signals import SIGNAL, NumberSignal

LEXICAL = ("stem_bm25", "bm25")
Z_SUM, RECIPROCAL_RANKS = "z-sum", "RRF"


class Opponent(NamedTuple):
    """An order that a user has for free: a sum of columns by their weights.

    ``value`` is the mean of the measure over held-out queries.

    >>> order = Opponent("z-sum", ("stem_bm25 in list", "meaning in list"), (1.0, 1.0))
    >>> order.scores(np.array([[1.0, 5.0, 2.0]]), ("stem_bm25 in list", "x", "meaning in list"))
    array([3.])
    """

    name: str
    columns: tuple[str, ...]
    weights: tuple[float, ...]
    value: float = 0.0

    @classmethod
    def single(cls, column: str, weight: float = 1.0) -> Self:
        """The order by one column."""
        return cls(column, (column,), (weight,))

    def scores(self, X: NDArray[np.float64], names: Sequence[str]) -> NDArray[np.float64]:
        """The score of each row of features."""
        places = [names.index(column) for column in self.columns]
        scores: NDArray[np.float64] = X[:, places] @ np.array(self.weights)
        return scores

    def model(self, n_queries: int) -> Model:
        """The order as a linear ranker."""
        ranker = SVMRanker()
        ranker.coef_, ranker.n_queries_ = np.array(self.weights), n_queries
        Columns(len(self.columns), self.columns).remember(ranker)
        return Model.of(ranker)


def retrieval_columns(
    names: Collection[str], signals: Sequence[NumberSignal] = ()
) -> list[tuple[str, str]]:
    """Columns by which documents are retrieved, each with the name of its signal, or "".

    They are what fusion adds up: scores of first stages, stemmed BM25, and meaning.
    """
    first = [(SIGNAL + signal.name, signal.name) for signal in signals if signal.is_first_stage]
    columns = [(FirstStage().names[0], ""), *first, (LEXICAL[0], ""), (MEANING, "")]
    return [pair for pair in columns if pair[0] in names]


def opponents(
    names: Collection[str],
    signals: Sequence[NumberSignal] = (),
    decreasing: Collection[str] = (),
) -> list[Opponent]:
    """Every order that can be made of these columns without training.

    Signals rank from the greatest to the least, but for those that are ``decreasing``.

    >>> [one.name for one in opponents(["first_score", "stem_bm25", "bm25"])]
    ['first_score', 'stem_bm25', 'bm25', 'z-sum', 'RRF']
    """

    def weight(signal: str) -> float:
        return -1.0 if signal in decreasing else 1.0

    retrieved = retrieval_columns(names, signals)
    others = [(SIGNAL + signal.name, signal.name) for signal in signals]
    orders = dict([*retrieved, *others, *((column, "") for column in LEXICAL)])
    singles = [
        Opponent.single(column, weight(signal))
        for column, signal in orders.items()
        if column in names
    ]
    if len(retrieved) < 2:
        return singles
    columns, of_signals = zip(*retrieved)
    weights = tuple(map(weight, of_signals))
    fused = [
        Opponent(name, tuple(column + suffix for column in columns), weights)
        for name, suffix in ((Z_SUM, IN_LIST), (RECIPROCAL_RANKS, RRF))
    ]
    return [*singles, *fused]


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


def lower_bound(
    values: NDArray[np.float64], base: NDArray[np.float64], errors: float = 1.0
) -> float:
    """Mean gain less so many standard errors."""
    gain = values - base
    return float(gain.mean() - errors * gain.std(ddof=1) / np.sqrt(len(gain)))
