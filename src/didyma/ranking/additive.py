"""An additive ranker: step functions of features and of a few pairs, optimal for a measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Lists, group_rows
from didyma.data.matrix import Matrix
from didyma.errors import DataError
from didyma.execution import on_threads
from didyma.learning.row_bcfw import RowBCFW
from didyma.model import Saved
from didyma.protocol import check_is_fitted
from didyma.ranking.binned import Binned, step_scores
from didyma.ranking.bins import LEVELS, SAMPLE, Bins
from didyma.ranking.fitters import Fitter
from didyma.ranking.interactions import rank_pairs
from didyma.ranking.svm import SVMRanker
from didyma.values import is_whole

__all__ = ["AdditiveSVMRanker"]

Columns = Sequence[int | str]

FOLDS = 3
NUMBERS = (0, 4, 8, 16, 32)  # of pairs, from which "auto" chooses
LOOSE = 0.01  # relative gap at which it is clear which pairs are promising


@dataclass(eq=False, repr=False)
class AdditiveSVMRanker(SVMRanker):
    """`SVMRanker` over bins: the score of a row is a sum of step functions of its features.

        score(x) = Σ_j T_j(x_j),   T_j piecewise constant, with a step of height w_jk at edge k

    It is the problem of `SVMRanker` over the indicators 1[x_j > edge], of which none is stored: a
    feature is one byte. ½‖w‖² penalises the squared steps, so that functions are smooth unless the
    data say otherwise, and flat where there are none.

    Parameters
    ----------
    bins : int in [2, 254]
        Bins of a feature.
    strategy : {"quantile", "even", "geometric", "unit"}
        Where steps may be; see `ScoreBinner`.
    categorical : sequence of column names or indices
        Features whose values are categories: names, or indices as in the data. Each category has a
        weight of its own.
    increasing : sequence of column names or indices
        Features whose functions must not fall.
    decreasing : sequence of column names or indices
        Features whose functions must not rise.
    interactions : int or "auto"
        Pairs of features with a table of their own; "auto" cross-validates. Tables have 8 × 8
        cells. The pairs are those for which the subgradient of the risk, once features alone have
        been fitted at C, shows most beyond a sum over both. "auto" takes the least number that is
        within a standard error of the best, and so none unless they clearly pay.

    The other parameters are those of `SVMRanker`. C is 1 if not given, 100 with the ramp bound:
    that suits bins of any features, whose scale does not matter here.

    A missing value (NaN) is a bin of its own, with a weight that is learned; a category that was
    never seen adds nothing.

    Attributes
    ----------
    bins_ : Bins
        Edges and categories of each column.
    tables_ : array of shape (n_bins, n_columns)
        What each bin adds to a score; the last row is for missing values.
    pairs_ : array of shape (n_pairs, 2)
        Indices of the columns that interact, whose tables follow those of the columns.
    feature_importances_ : array of shape (n_features,)
        Deviation of what each feature adds to the scores of the training rows.
    pair_importances_ : array of shape (n_pairs,)
        The same for pairs.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [np.nan, 1.0]]
    >>> ranker = AdditiveSVMRanker(bins=4).fit(X, [0, 1, 0, 1], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [2, 1, 2, 1]
    """

    _: KW_ONLY
    bins: int = 64
    strategy: str = "quantile"
    categorical: Columns = ()
    increasing: Columns = ()
    decreasing: Columns = ()
    interactions: int | str = 0

    _allows_missing = True
    _hinge_C = 1.0
    _layout: ClassVar[tuple[str, ...]] = (
        *("edges_", "nominal_", "signs_", "levels_", "pairs_", "mass_"),
    )
    coef_: Annotated[NDArray[np.float64], Saved("weights")] = field(init=False)
    edges_: Annotated[NDArray[np.float64], Saved("n_features", "edges")] = field(init=False)
    nominal_: Annotated[NDArray[np.bool_], Saved("n_features")] = field(init=False)
    signs_: Annotated[NDArray[np.int8], Saved("n_features")] = field(init=False)
    levels_: Annotated[NDArray[np.uint8], Saved("n_features", "cells")] = field(init=False)
    pairs_: Annotated[NDArray[np.int64], Saved("pairs", 2)] = field(init=False)
    mass_: Annotated[NDArray[np.float64], Saved("cells", "columns")] = field(init=False)

    @property
    def bins_(self) -> Bins:
        """Edges and categories of each column."""
        return Bins(self.edges_, self.nominal_, self.signs_, self.levels_, self.pairs_)

    @property
    def tables_(self) -> NDArray[np.float64]:
        """What each bin of each column adds to a score, (n_bins, n_columns)."""
        return self.bins_.empty.tables(self.coef_)

    @property
    def means_(self) -> NDArray[np.float64]:
        """What each column adds to the score of a training row on average, (n_columns,)."""
        means: NDArray[np.float64] = (self.mass_ * self.tables_).sum(axis=0)
        return means

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Deviation of what each feature adds to the scores of the training rows."""
        return self._deviations()[: len(self.edges_)]

    @property
    def pair_importances_(self) -> NDArray[np.float64]:
        """Deviation of what each pair adds to the scores of the training rows."""
        return self._deviations()[len(self.edges_) :]

    def _predict(self, X: Any) -> NDArray[np.float64]:
        return self._score_rows(self._read_rows(X, reset=False))

    def _score_rows(self, X: Matrix) -> NDArray[np.float64]:
        return step_scores(self._binned(X).bins, self.tables_)

    def changed_orders(self, X: Any, qid: ArrayLike | None = None) -> NDArray[np.float64]:
        """The share of queries whose order would change without each column, (n_columns,)."""
        check_is_fitted(self)
        binned = self._binned(self._read_rows(X, reset=False))
        groups = group_rows(len(binned.bins), qid)
        scores, tables = binned @ self.coef_, self.tables_
        order = np.lexsort((-scores, groups.codes))
        share = np.empty(binned.bins.shape[1])
        for j, bins in enumerate(binned.bins.T):
            other = np.lexsort((-(scores - tables[bins, j]), groups.codes))
            share[j] = len(np.unique(groups.codes[order[order != other]])) / len(groups)
        return share

    def _check_state(self) -> None:
        (n, edges), (cells, columns) = self.edges_.shape, self.mass_.shape
        sizes = edges + 1, n + len(self.pairs_), edges * columns
        if (cells, columns, len(self.coef_)) != sizes:
            raise ValueError(f"mass_ is {cells}×{columns}, but there are {edges} edges")
        if len(self.pairs_) and not 0 <= self.pairs_.min() <= self.pairs_.max() < n:
            raise ValueError(f"expected pairs of {n} columns")
        if self.levels_.max(initial=0) > LEVELS:
            raise ValueError(f"expected levels up to {LEVELS}")

    def _binned(self, X: Matrix) -> Binned:
        return self.bins_.transform(X, on_threads(self.n_jobs))

    def _deviations(self) -> NDArray[np.float64]:
        tables = self.tables_
        return np.sqrt((self.mass_ * (tables - self.means_) ** 2).sum(axis=0))

    def _design(self, train: Lists, evaluation: Lists | None) -> tuple[Lists, Lists | None]:
        n_pairs = self._interactions()
        bins = Bins.of(
            *(train.X, self.bins, self.strategy, self._nominal(), self._signs()),
            crossable=n_pairs != 0,
        )
        binned = bins.transform(train.X, on_threads(self.n_jobs))
        if n_pairs:
            bins = bins.levelled(binned.bins)
            design = train.with_items(binned)
            if n_pairs == "auto":
                n_pairs = self._choose_number(bins, design)
            bins = bins.crossed(self._pairs(bins, design)[:n_pairs])
            binned = bins.added(binned)
        self._remember(bins)
        self.mass_ = binned.counts() / max(1, len(binned.bins))
        return train.with_items(binned), self._design_evaluation(evaluation)

    def _design_evaluation(self, evaluation: Lists | None) -> Lists | None:
        return None if evaluation is None else evaluation.with_items(self._binned(evaluation.X))

    def _design_shards(
        self, workers: Any, evaluation: Lists | None
    ) -> tuple[int, Any, Lists | None]:
        """Edges are read off a sample of the rows of all shards, in proportion to their number."""
        from didyma.ranking.cluster import bin_counts, categories, sample_of

        if self._interactions() != 0:
            raise DataError("are not looked for on a cluster: expected 0", field="interactions")
        nominal, signs = self._nominal(), self._signs()
        if signs.any() and self._bound() == "ramp":
            raise DataError("monotone columns need bound='hinge' on a cluster", field="bound")
        values = categories(workers, nominal)
        sample = sample_of(workers, SAMPLE)
        bins = Bins.of(sample, self.bins, self.strategy, nominal, signs, categories=values)
        self._remember(bins)
        self.mass_ = bin_counts(workers, bins)
        feasible = bins.empty.feasible if signs.any() else None
        return bins.empty.shape[1], feasible, self._design_evaluation(evaluation)

    def _design_rows(self, X: Matrix) -> Binned:
        return self._binned(X)

    def _interactions(self) -> Any:
        n_pairs: Any = self.interactions
        if n_pairs != "auto" and not (is_whole(n_pairs) and n_pairs >= 0):
            raise DataError(
                f"expected a number of pairs or 'auto', found {n_pairs!r}", field="interactions"
            )
        return n_pairs

    def _pairs(self, bins: Bins, design: Lists) -> NDArray[np.int64]:
        """Pairs of columns, the most promising first, at the weights of columns alone.

        Monotone columns are not crossed, as a pair could break their promise.
        """
        fitter = self._fitter(partial(self._problem, design))
        w = self._weights(fitter, max(self.tol, LOOSE))
        coefficients, _ = fitter.problem.respond(fitter.problem.scores(w))
        levels = bins.coarse(cast("Binned", design.X).bins)
        return rank_pairs(levels, coefficients, bins.signs == 0, on_threads(self.n_jobs))[0]

    def _weights(self, fitter: Fitter, tol: float) -> NDArray[np.float64]:
        """The weights at C; what is learned on the way is not watched."""
        solver = replace(self._solver(), tol=tol)
        solution, result = fitter.solve(solver, self.weight(), lambda _: None)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        w: NDArray[np.float64] = solution.w
        return w

    def _choose_number(self, bins: Bins, design: Lists) -> int:
        """The least number of pairs whose measure is within a standard error of the best."""
        from didyma.metrics import Evaluator

        fold = np.random.default_rng(0).permutation(len(design.groups)) % FOLDS
        values = []  # of each fold, (numbers, queries)
        for held_out in range(FOLDS):
            is_test = (fold == held_out)[design.groups.codes]
            train, test = design.select(~is_test), design.select(is_test)
            if not np.any(self._trainable(train)):
                continue
            pairs = self._pairs(bins, train)
            evaluator = Evaluator(test.y, test.groups, self.measure)
            (measure,) = evaluator.measures
            rows = []
            for number in NUMBERS:
                crossed = bins.crossed(pairs[:number])
                train_rows, test_rows = (crossed.added(cast("Binned", p.X)) for p in (train, test))
                fitter = self._fitter(partial(self._problem, train.with_items(train_rows)))
                scores = test_rows @ self._weights(fitter, self.tol)
                rows.append(evaluator(scores)[measure])
            values.append(np.array(rows))
        return NUMBERS[_within_an_error(np.concatenate(values, axis=1))] if values else 0

    def _remember(self, bins: Bins) -> None:
        self.edges_, self.nominal_, self.signs_ = bins.edges, bins.nominal, bins.signs
        self.levels_, self.pairs_ = bins.levels, bins.pairs

    def _nominal(self) -> NDArray[np.bool_]:
        nominal = np.zeros(self.n_features_in_, np.bool_)
        nominal[self._indices("categorical")] = True
        return nominal

    def _signs(self) -> NDArray[np.int8]:
        signs = np.zeros(self.n_features_in_, np.int8)
        signs[self._indices("increasing")] = 1
        falling = self._indices("decreasing")
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

    def _indices(self, parameter: str) -> list[int]:
        """Indices of the columns that a parameter names."""
        names = list(getattr(self, "feature_names_in_", ()))
        indices = []
        for column in getattr(self, parameter):
            if isinstance(column, str) and column in names:
                indices.append(names.index(column))
            elif is_whole(column) and 0 <= column < self.n_features_in_:
                indices.append(int(column))
            else:
                raise DataError(
                    f"expected names of columns, or indices from 0 to {self.n_features_in_ - 1}, "
                    f"found {column!r}",
                    field=parameter,
                )
        return indices

    def _solver(self) -> Any:
        solver = super()._solver()
        if self.solver != "bcfw":
            return solver
        return RowBCFW(
            tol=solver.tol, max_passes=solver.max_passes, random_state=solver.random_state
        )


def _within_an_error(values: NDArray[np.float64]) -> int:
    """The first row of values (settings × queries) that is within a standard error of the best.

    The error is that of the paired differences from the best row.

    >>> _within_an_error(np.array([[0.1, 0.5, 0.2], [0.2, 0.5, 0.1], [0.8, 0.9, 1.0]]))
    2
    """
    best = values[int(np.argmax(values.mean(axis=1)))]
    behind = best - values
    error = behind.std(axis=1, ddof=1) / np.sqrt(values.shape[1]) if values.shape[1] > 1 else 0.0
    return int(np.argmax(behind.mean(axis=1) <= error))
