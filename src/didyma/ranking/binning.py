"""Indicator features: a linear model of them is a step function of each score."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.matrix import Matrix
from didyma.errors import check_choice
from didyma.model import Saved
from didyma.protocol import Transformer, check_is_fitted, validate_data

if TYPE_CHECKING:
    import scipy.sparse as sp

STRATEGIES = ("quantile", "even", "geometric", "unit")


@dataclass(eq=False, repr=False)
class ScoreBinner(Transformer):
    """Turn each score f into indicators 1[f > k], one for each threshold k ∈ K_f.

    A linear model wᵀφ of these features is a piecewise constant function of each score, with a
    step of height w_k at k (Yue et al. 2007, section 4.2). With K = ``n_thresholds``, strategy

    - ``"quantile"`` places the thresholds at the j/(K+1) quantiles of the training scores, of which
      one that many rows share counts no more than the rows between two thresholds; halfway
      between any two where they are few,
    - ``"even"`` at min + (max − min)·j/(K+1), between the extremes of the training scores,
    - ``"geometric"`` at min·(max/min)^(j/(K+1)), between the extremes of the positive training
      scores (evenly where none is positive), for scores of many magnitudes,
    - ``"unit"`` at j/(K+1) whatever the scores, for those that are already scaled to [0, 1],

    j = 1..K. Equal thresholds are kept once, so a score with few values gives fewer features. NaN
    stands for a score that is missing, which is above no threshold.

    Attributes
    ----------
    thresholds_ : array of shape (n_features_out,)
        The threshold of each indicator, ascending within each score.
    column_ : array of shape (n_features_out,)
        The input column that each indicator looks at.

    >>> binner = ScoreBinner(n_thresholds=3, strategy="even", sparse_output=False)
    >>> binner.fit_transform([[0.0], [4.0], [1.0], [2.5]]).tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    >>> binner.get_feature_names_out(["bm25"]).tolist()
    ['bm25>1', 'bm25>2', 'bm25>3']
    """

    n_thresholds: int = 50
    strategy: str = "quantile"
    sparse_output: bool = True

    thresholds_: Annotated[NDArray[Any], Saved("thresholds")] = field(init=False)
    column_: Annotated[NDArray[np.int64], Saved("thresholds")] = field(init=False)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Choose the thresholds of each column of ``X``."""
        self._check_parameters()
        check_choice(self.strategy, STRATEGIES, "strategy")
        scores = self._read(X, reset=True)
        chosen = [np.unique(self._thresholds(f).astype(scores.dtype)) for f in scores.T]
        self.thresholds_ = np.concatenate(chosen)
        self.column_ = np.repeat(np.arange(len(chosen)), [len(k) for k in chosen])
        return self

    def _thresholds(self, scores: NDArray[Any]) -> NDArray[Any]:
        levels = np.arange(1, self.n_thresholds + 1) / (self.n_thresholds + 1)
        if self.strategy == "unit":
            return levels
        present = scores[~np.isnan(scores)]
        if not len(present):  # one threshold that nothing exceeds
            return np.array([np.inf])
        if self.strategy == "quantile":
            return _quantiles(present, levels)
        low, high = present.min(), present.max()
        if self.strategy == "geometric" and high > 0:
            return np.geomspace(present[present > 0].min(), high, self.n_thresholds + 2)[1:-1]
        return low + (high - low) * levels

    def transform(self, X: ArrayLike) -> Matrix:
        """The indicators of each row; shape (n_rows, n_features_out), CSR or dense."""
        check_is_fitted(self)
        scores = self._read(X, reset=False)
        return self._sparse(scores) if self.sparse_output else self._dense(scores)

    def _dense(self, scores: NDArray[Any]) -> NDArray[Any]:
        indicators = np.empty((len(scores), len(self.thresholds_)), dtype=scores.dtype)
        for column, thresholds in self._columns():
            np.greater(
                scores[:, column, None],
                self.thresholds_[thresholds],
                out=indicators[:, thresholds],
            )
        return indicators

    def _sparse(self, scores: NDArray[Any]) -> sp.csr_array:
        import scipy.sparse as sp

        # Thresholds ascend, so a score that exceeds `count` of them exceeds the first `count`.
        count = np.empty(scores.shape, dtype=np.int64)
        first = np.empty(scores.shape[1], dtype=np.int64)
        for column, thresholds in self._columns():
            first[column] = thresholds.start
            count[:, column] = np.searchsorted(self.thresholds_[thresholds], scores[:, column])
        count[np.isnan(scores)] = 0
        ends = np.cumsum(count)
        total = int(ends[-1])
        index = np.dtype(np.int32 if total <= np.iinfo(np.int32).max else np.int64)
        shift = np.tile(first, len(scores)) - ends + count.ravel()
        indices: NDArray[Any] = np.arange(total, dtype=index)
        indices += np.repeat(shift.astype(index), count.ravel())
        rows = np.concatenate([[0], ends[scores.shape[1] - 1 :: scores.shape[1]]]).astype(index)
        ones = np.ones(total, dtype=scores.dtype)
        return sp.csr_array((ones, indices, rows), shape=(len(scores), len(self.thresholds_)))

    def _columns(self) -> list[tuple[int, slice]]:
        """Each input column and the slice of the output that belongs to it."""
        ends = np.searchsorted(self.column_, np.arange(self.n_features_in_ + 1)).tolist()
        return [(column, slice(*ends)) for column, ends in enumerate(pairwise(ends))]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """A name such as ``bm25>12.5`` for each indicator."""
        names = super().get_feature_names_out(input_features)
        return np.array(
            [
                f"{names[column]}>{threshold}"
                for column, thresholds in self._columns()
                for threshold in _texts(self.thresholds_[thresholds])
            ],
            dtype=object,
        )

    def _read(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        return validate_data(self, X, reset=reset, finite="allow-nan")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _quantiles(scores: NDArray[Any], levels: NDArray[np.float64]) -> NDArray[Any]:
    """Quantiles of scores, of which one that many rows share counts as the rows of one bin.

    By its share of all rows it would leave as many bins empty, and few for the other scores.
    """
    values, counts = np.unique(scores, return_counts=True)
    n_bins = len(levels) + 1
    if len(values) <= n_bins:
        low, high = (values, values) if len(values) == 1 else (values[:-1], values[1:])
        middle = low / 2 + high / 2
        return np.where(middle < high, middle, low)
    heaviest = np.sort(counts)[::-1][:n_bins]
    lighter = counts.sum() - np.cumsum(heaviest) + heaviest  # rows of this score and lighter ones
    shares = lighter / np.arange(n_bins, 0, -1)
    most = int(np.ceil(shares[np.argmax(heaviest <= shares)]))
    ordered = np.repeat(values, np.minimum(counts, most))  # and interpolated
    return np.interp(levels * (len(ordered) - 1), np.arange(len(ordered)), ordered)


def _texts(thresholds: NDArray[Any]) -> list[str]:
    """The shortest numbers, of three digits or more, that tell the thresholds apart."""
    for digits in range(3, 17):
        texts = [f"{threshold:.{digits}g}" for threshold in thresholds.tolist()]
        if len(set(texts)) == len(texts):
            return texts
    return list(map(repr, thresholds.tolist()))
