"""Measures of coreference: two clusterings of the same mentions compared.

A clustering is an array of labels, one for each mention; only which labels are equal matters. With
n mentions, gold clusters G and predicted clusters P:

    MUC     recall = Σ_G (|G| − number of predicted clusters that meet G) / Σ_G (|G| − 1)
    B³      recall = (1/n) Σ_{G,P} |G ∩ P|² / |G|
    CEAF    the best one-to-one matching of gold and predicted clusters, worth |G ∩ P| for each
            pair (CEAF_m) or 2|G ∩ P| / (|G| + |P|) (CEAF_e), over the sum of what every cluster is
            worth with itself

and precision is the same with the roles exchanged. Documents are pooled: numerators and
denominators are summed before they are divided, and 0/0 counts as 1.

References: Vilain et al. 1995 (MUC), Bagga & Baldwin 1998 (B³), Luo 2005 (CEAF).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma import DataError

Table = NDArray[np.int64]  # mentions of each gold (row) and predicted (column) cluster


@dataclass(frozen=True)
class Score:
    """Numerators and denominators of recall and precision; the sum of two pools documents."""

    recalled: float
    recallable: float
    precise: float
    predicted: float

    @property
    def recall(self) -> float:
        """What share of the gold clusters was found."""
        return self.recalled / self.recallable if self.recallable else 1.0

    @property
    def precision(self) -> float:
        """What share of the predicted clusters is right."""
        return self.precise / self.predicted if self.predicted else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision."""
        total = self.recall + self.precision
        return 2.0 * self.recall * self.precision / total if total else 0.0

    def __add__(self, other: Score) -> Score:
        return Score(
            self.recalled + other.recalled,
            self.recallable + other.recallable,
            self.precise + other.precise,
            self.predicted + other.predicted,
        )


def muc(gold: ArrayLike, predicted: ArrayLike) -> Score:
    """Links that would have to be added or removed (Vilain et al. 1995).

    >>> score = muc([0, 0, 0, 0], [0, 0, 1, 1])
    >>> round(score.recall, 3), score.precision
    (0.667, 1.0)
    """
    table = _table(gold, predicted)
    n, met = int(table.sum()), int(np.count_nonzero(table))
    return Score(n - met, n - table.shape[0], n - met, n - table.shape[1])


def mitre_loss(gold: ArrayLike, predicted: ArrayLike) -> float:
    """1 − F1 of `muc`.

    >>> mitre_loss([0, 0, 1, 1], [5, 5, 7, 7])
    0.0
    """
    return 1.0 - muc(gold, predicted).f1


def b_cubed(gold: ArrayLike, predicted: ArrayLike) -> Score:
    """Recall and precision of each mention's own cluster (Bagga & Baldwin 1998).

    >>> round(b_cubed([0, 0, 0, 1], [0, 0, 1, 1]).precision, 3)
    0.75
    """
    table = _table(gold, predicted)
    n, squares = float(table.sum()), table.astype(np.float64) ** 2
    recalled = float((squares.sum(axis=1) / table.sum(axis=1)).sum())
    precise = float((squares.sum(axis=0) / table.sum(axis=0)).sum())
    return Score(recalled, n, precise, n)


def ceaf_m(gold: ArrayLike, predicted: ArrayLike) -> Score:
    """Mentions shared by clusters under the best matching of them (Luo 2005).

    >>> ceaf_m([0, 0, 0, 1], [0, 0, 1, 1]).f1
    0.75
    """
    table = _table(gold, predicted)
    n, shared = float(table.sum()), _best_matching(table.astype(np.float64))
    return Score(shared, n, shared, n)


def ceaf_e(gold: ArrayLike, predicted: ArrayLike) -> Score:
    """Similarity of clusters under the best matching of them (Luo 2005).

    >>> ceaf_e([0, 0, 0, 1], [0, 0, 1, 1]).f1.__round__(3)
    0.733
    """
    table = _table(gold, predicted)
    sizes = table.sum(axis=1)[:, None] + table.sum(axis=0)[None, :]
    similarity = _best_matching(2.0 * table / sizes)
    return Score(similarity, table.shape[0], similarity, table.shape[1])


def pair_loss(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Share of the n(n−1)/2 pairs of mentions that are wrongly together or wrongly apart.

    >>> pair_loss([0, 0, 1], [0, 1, 1]).__round__(3)
    0.667
    """
    wrong, pairs = _wrong_pairs(gold, predicted)
    return wrong / pairs if pairs else 0.0


def conll(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Mean F1 of MUC, B³ and CEAF_e, the measure of the CoNLL-2012 shared task.

    >>> conll([0, 0, 1], [0, 0, 1])
    1.0
    """
    return float(np.mean([measure(gold, predicted).f1 for measure in (muc, b_cubed, ceaf_e)]))


SCORES: dict[str, Callable[[ArrayLike, ArrayLike], Score]] = {
    "muc": muc,
    "b_cubed": b_cubed,
    "ceaf_m": ceaf_m,
    "ceaf_e": ceaf_e,
}


def evaluate(golds: Sequence[ArrayLike], predictions: Sequence[ArrayLike]) -> dict[str, Any]:
    """All measures over documents, pooled; per document the losses are averaged too.

    Keys: ``muc``, ``b_cubed``, ``ceaf_m``, ``ceaf_e`` (each a `Score`), ``conll``, ``mitre_loss``
    and ``pair_loss`` (pooled), ``mean_mitre_loss`` and ``mean_pair_loss`` (means over documents).

    >>> round(evaluate([[0, 0, 1], [0, 0]], [[0, 1, 1], [0, 0]])["muc"].f1, 3)
    0.5
    """
    if len(golds) != len(predictions) or not golds:
        raise DataError(
            f"expected as many predictions as documents, and at least one, found "
            f"{len(predictions)} for {len(golds)}"
        )
    scores: dict[str, Any] = {}
    for name, measure in SCORES.items():
        total = Score(0.0, 0.0, 0.0, 0.0)
        for gold, predicted in zip(golds, predictions):
            total = total + measure(gold, predicted)
        scores[name] = total
    wrong = np.array([_wrong_pairs(*both) for both in zip(golds, predictions)], np.float64)
    scores["conll"] = float(np.mean([scores[name].f1 for name in ("muc", "b_cubed", "ceaf_e")]))
    scores["mitre_loss"] = 1.0 - scores["muc"].f1
    scores["pair_loss"] = float(wrong[:, 0].sum() / max(wrong[:, 1].sum(), 1.0))
    scores["mean_mitre_loss"] = float(np.mean([mitre_loss(*b) for b in zip(golds, predictions)]))
    scores["mean_pair_loss"] = float(np.mean([pair_loss(*b) for b in zip(golds, predictions)]))
    return scores


def _table(gold: ArrayLike, predicted: ArrayLike) -> Table:
    first, second = np.asarray(gold), np.asarray(predicted)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(
            "expected two clusterings of the same mentions, one label each, found shapes "
            f"{first.shape} and {second.shape}"
        )
    rows, row = np.unique(first, return_inverse=True)
    columns, column = np.unique(second, return_inverse=True)
    counts = np.bincount(row * len(columns) + column, minlength=len(rows) * len(columns))
    return counts.reshape(len(rows), len(columns))


def _best_matching(worth: NDArray[np.float64]) -> float:
    from scipy.optimize import linear_sum_assignment

    return float(worth[linear_sum_assignment(worth, maximize=True)].sum())


def _wrong_pairs(gold: ArrayLike, predicted: ArrayLike) -> tuple[float, float]:
    """Number of pairs that are wrong, and of all."""
    table = _table(gold, predicted)

    def pairs(sizes: NDArray[np.int64]) -> int:
        return int((sizes * (sizes - 1) // 2).sum())

    together = pairs(table.ravel())
    wrong = pairs(table.sum(axis=1)) + pairs(table.sum(axis=0)) - 2 * together
    return float(wrong), float(pairs(table.sum(keepdims=True).ravel()))
