"""An additive ranker: a step function of each feature, optimal for a measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from didyma.data import Groups, Matrix
from didyma.errors import DataError
from didyma.estimators.base import EvaluationSet, linear_scores
from didyma.estimators.svm import SVMRanker
from didyma.execution import threads
from didyma.features.bins import Bins
from didyma.learning.row_bcfw import RowBCFW
from didyma.learning.solution import Callback
from didyma.tasks.binned import Binned
from didyma.tasks.feature_maps import FeatureMap
from didyma.tasks.losses import RankingLoss

__all__ = ["AdditiveSVMRanker"]

Columns = Sequence[int | str]


class AdditiveSVMRanker(SVMRanker):
    """`SVMRanker` over bins: the score of a row is a sum of step functions of its features.

        score(x) = Σ_j T_j(x_j),   T_j piecewise constant, with a step of height w_jk at edge k

    It is the problem of `SVMRanker` over the indicators 1[x_j > edge], of which none is stored: a
    feature is one byte. ½‖w‖² penalises the squared steps, so that functions are smooth unless the
    data say otherwise, and flat where there are none.

    Parameters
    ----------
    loss, C, feature_map, grades, bound, solver, tol, max_iter, measure, patience, n_jobs
        Those of `SVMRanker`, and so are ``random_state`` and ``callback``. C = 1 suits bins of any
        features, whose scale does not matter here.
    bins : int
        Bins of a feature, 2 to 254.
    strategy : {"quantile", "even", "geometric", "unit"}
        Where edges are placed; see `ScoreBinner`.
    categorical : sequence of column names or indices
        Columns whose values are categories: each has a weight of its own.
    increasing, decreasing : sequence of column names or indices
        Columns whose step functions must never fall, or never rise.

    A missing value (NaN) is a bin of its own, with a weight that is learned; a category that was
    never seen adds nothing.

    Attributes
    ----------
    bins_ : Bins
        Edges and categories of each column.
    tables_ : array of shape (n_bins, n_columns)
        What each bin adds to a score; the last row is for missing values.
    feature_importances_ : array of shape (n_features,)
        Deviation of what each feature adds to the scores of the training rows.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [np.nan, 1.0]]
    >>> ranker = AdditiveSVMRanker(bins=4).fit(X, [0, 1, 0, 1], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [2, 1, 2, 1]
    """

    _allows_missing = True
    _layout: ClassVar[tuple[str, ...]] = (
        *("edges_", "nominal_", "signs_", "levels_", "pairs_", "mass_"),
    )
    _state = (*SVMRanker._state, *_layout)
    edges_: NDArray[np.float64]
    nominal_: NDArray[np.bool_]
    signs_: NDArray[np.int8]
    levels_: NDArray[np.uint8]
    pairs_: NDArray[np.int64]
    mass_: NDArray[np.float64]

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        C: float = 1.0,
        *,
        bins: int = 64,
        strategy: str = "quantile",
        categorical: Columns = (),
        increasing: Columns = (),
        decreasing: Columns = (),
        feature_map: str | FeatureMap = "pairwise",
        grades: str = "auto",
        bound: str = "auto",
        solver: str = "bcfw",
        tol: float = 1e-3,
        max_iter: int = 1000,
        measure: str = "AP",
        patience: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(
            loss,
            C,
            feature_map=feature_map,
            grades=grades,
            bound=bound,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            measure=measure,
            patience=patience,
            n_jobs=n_jobs,
            random_state=random_state,
            callback=callback,
        )
        self.bins = bins
        self.strategy = strategy
        self.categorical = categorical
        self.increasing = increasing
        self.decreasing = decreasing

    @property
    def bins_(self) -> Bins:
        """Edges and categories of each column."""
        return Bins(self.edges_, self.nominal_, self.signs_, self.levels_, self.pairs_)

    @property
    def tables_(self) -> NDArray[np.float64]:
        """What each bin of each column adds to a score, (n_bins, n_columns)."""
        return self.bins_.empty.tables(self.coef_)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Deviation of what each feature adds to the scores of the training rows."""
        return self._deviations()[: len(self.edges_)]

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score of each row; higher ranks first."""
        check_is_fitted(self)
        return linear_scores(self._binned(self._read_rows(X, reset=False)), self.coef_)

    def _binned(self, X: Matrix) -> Binned:
        return self.bins_.transform(X, threads(self.n_jobs))

    def _deviations(self) -> NDArray[np.float64]:
        tables = self.tables_
        return np.sqrt(np.maximum((self.mass_ * (tables - self._means()) ** 2).sum(axis=0), 0.0))

    def _means(self) -> NDArray[np.float64]:
        means: NDArray[np.float64] = (self.mass_ * self.tables_).sum(axis=0)
        return means

    def _design(
        self,
        X: Matrix,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None,
        evaluation: EvaluationSet | None,
    ) -> tuple[Any, EvaluationSet | None]:
        bins = Bins.of(X, self.bins, self.strategy, self._nominal(), self._signs())
        binned = bins.transform(X, threads(self.n_jobs))
        self._keep(bins, binned)
        if evaluation is not None:
            evaluation = replace(evaluation, X=self._binned(evaluation.X))
        return binned, evaluation

    def _keep(self, bins: Bins, binned: Binned) -> None:
        self.edges_, self.nominal_, self.signs_ = bins.edges, bins.nominal, bins.signs
        self.levels_, self.pairs_ = bins.levels, bins.pairs
        self.mass_ = binned.counts() / max(1, len(binned.bins))

    def _nominal(self) -> NDArray[np.bool_]:
        nominal = np.zeros(self.n_features_in_, bool)
        nominal[self._places("categorical")] = True
        return nominal

    def _signs(self) -> NDArray[np.int8]:
        signs = np.zeros(self.n_features_in_, np.int8)
        signs[self._places("increasing")] = 1
        falling = self._places("decreasing")
        if np.any(signs[falling]) or np.any(self._nominal()[signs != 0]):
            raise DataError(
                "expected columns that are neither categorical nor increasing", field="decreasing"
            )
        signs[falling] = -1
        if signs.any() and self.solver != "bcfw":
            raise DataError(
                f"monotone columns need solver='bcfw', found {self.solver!r}", field="solver"
            )
        return signs

    def _places(self, parameter: str) -> list[int]:
        """Indices of the columns that a parameter names."""
        names = list(getattr(self, "feature_names_in_", ()))
        found = []
        for column in getattr(self, parameter):
            if isinstance(column, str) and column in names:
                found.append(names.index(column))
            elif isinstance(column, (int, np.integer)) and 0 <= column < self.n_features_in_:
                found.append(int(column))
            else:
                raise DataError(
                    f"expected names of columns, or indices from 0 to {self.n_features_in_ - 1}, "
                    f"found {column!r}",
                    field=parameter,
                )
        return found

    def _solver(self) -> Any:
        solver = super()._solver()
        if self.solver != "bcfw":
            return solver
        return RowBCFW(tol=solver.tol, max_passes=solver.max_passes, seed=solver.seed)
