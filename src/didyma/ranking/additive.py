"""An additive ranker: step functions of features and of a few pairs, optimal for a measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import product
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.categories import NUMBERS_FOUND, UNSEEN, is_frame, number_frame, or_none
from didyma.data.groups import group_rows
from didyma.data.lists import Lists
from didyma.data.matrix import Columns, Matrix
from didyma.errors import DataError, check_choice
from didyma.execution import on_threads
from didyma.learning.monitor import EvalSets
from didyma.learning.row_bcfw import RowBCFW
from didyma.learning.solution import check_C
from didyma.model import Saved
from didyma.protocol import check_is_fitted
from didyma.ranking.binning import STRATEGIES
from didyma.ranking.bins import (
    LEVELS,
    LINES,
    SAMPLE,
    Binned,
    Bins,
    categories_of,
    check_number_of_bins,
    shrinkage,
    step_scores,
)
from didyma.ranking.feature_maps import Pairwise, parse_feature_map
from didyma.ranking.fitters import Fitter, HingeFitter
from didyma.ranking.held_out import cross_validate, first_near_best, held_out_values
from didyma.ranking.interactions import rank_pairs
from didyma.ranking.problem import RankingProblem
from didyma.ranking.ramp import uncut
from didyma.ranking.svm import SVMRanker
from didyma.values import is_whole

ColumnNames = Sequence[int | str]
Vector = NDArray[np.float64]

NUMBERS = (0, 4, 16)  # of pairs, from which "auto" chooses
CS = (1.0, 4.0, 16.0)  # from which cross-validation chooses ...
USUAL_C = 4.0  # ... unless queries are few, or on a cluster
RAMP_FACTOR = 10.0  # of C with the ramp bound: more takes long, and gains nothing
NONE = "none"  # in the place of a line
LOOSE = 0.01  # relative gap at which it is clear which settings, or pairs, are promising
MOST_COLUMNS = 512  # of which "auto" looks for pairs, whose number is their square


@dataclass(eq=False, repr=False)
class AdditiveSVMRanker(SVMRanker):
    """`SVMRanker` over bins: the score of a row is a sum of step functions of its features.

        score(x) = Σ_j T_j(x_j),   T_j(m) = a_j q_m + ρ/√K Σ_{l ≤ m} w_jl

    T_j is a line, and K steps around it, at the edges of the feature's bins m. It is the problem of
    `SVMRanker` over both, of which nothing is stored: a feature is one byte. ½‖a‖² + ½‖w‖² shrinks
    functions to lines, unless the data say otherwise, and lines to nothing.

    Parameters
    ----------
    bins : int in [2, 254]
        Bins of a feature. From 16 on their number matters little.
    strategy : {"quantile", "even", "geometric", "unit"}
        Where steps may be; see `ScoreBinner`.
    line : {"quantile", "normal", "none"}, optional
        What q is: the share of training rows below a bin, or the normal variable of that quantile,
        for features whose extremes count. "none" leaves steps alone, in units of 1 for ρ/√K, so
        that a good C is some hundred times smaller.
    roughness : float >= 0
        How far functions may stray from their lines: ρ. 0 leaves lines.
    categorical : sequence of column names or indices
        Features whose values are categories: names, or indices as in the data. Each category has a
        weight of its own. So does each of a column of categories in a data frame (pandas, Polars),
        which need not be named here. Categories are numbers or, in data frames and tables, texts.
    increasing : sequence of column names or indices
        Features whose functions must not fall.
    decreasing : sequence of column names or indices
        Features whose functions must not rise.
    interactions : int or "auto"
        Pairs of features with a table of their own. Tables have 8 × 8 cells, which shrink to the
        product of both lines. The pairs are those for which the subgradient of the risk, once
        features alone have been fitted, shows most beyond a sum over both. "auto" cross-validates
        0, 4 and 16, and takes the least number that the best is not clearly ahead of, by three
        standard errors, and so none unless they pay. It ends when a third of the queries shows no
        gain, and does not look where features are more than 512, nor on a cluster. With
        ``warm_start`` it keeps the pairs of the last fit.

    The other parameters are those of `SVMRanker`. Of C and ``line`` what is not given is chosen by
    threefold cross-validation over the queries, with which a fit costs as much as four to six; C is
    1, 4 or 16, ten times that with the ramp bound. The scale of features does not matter.

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
    C_, line_ : float, str
        What was given or chosen.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [np.nan, 1.0]]
    >>> ranker = AdditiveSVMRanker(bins=4).fit(X, [0, 1, 0, 1], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [2, 1, 2, 1]
    """

    _: KW_ONLY
    bins: int = 32
    strategy: str = "quantile"
    line: str | None = None
    roughness: float = 0.5
    categorical: ColumnNames = ()
    increasing: ColumnNames = ()
    decreasing: ColumnNames = ()
    interactions: int | str = "auto"

    _allows_missing = True
    _takes_categories = True
    _layout: ClassVar[tuple[str, ...]] = (
        *("edges_", "nominal_", "signs_", "levels_", "pairs_", "mass_", "C_", "line_"),
        "_categories",
    )
    C_: float = field(init=False)
    line_: str = field(init=False)
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
        return np.asarray((self.mass_ * self.tables_).sum(axis=0))

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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.strategy, STRATEGIES, "strategy")
        check_number_of_bins(self.bins)
        self._lines()
        self._interactions()

    def _check_state(self) -> None:
        (n, edges), (cells, columns) = self.edges_.shape, self.mass_.shape
        sizes = edges + 1, n + len(self.pairs_), edges * columns
        if (cells, columns, len(self.coef_)) != sizes:
            raise ValueError(f"mass_ is {cells}×{columns}, but there are {edges} edges")
        if len(self.pairs_) and not 0 <= self.pairs_.min() <= self.pairs_.max() < n:
            raise ValueError(f"expected pairs of {n} columns")
        if self.levels_.max(initial=0) > LEVELS:
            raise ValueError(f"expected levels up to {LEVELS}")
        for j, texts in enumerate(self.categories_in_ or ()):
            codes = self.edges_[j][np.isfinite(self.edges_[j])]
            if texts is not None and not np.isin(codes, np.arange(len(texts))).all():
                raise ValueError(f"expected codes of {len(texts)} texts in column {j}")
        self._categories = tuple(np.flatnonzero(self.nominal_).tolist())

    def _binned(self, X: Matrix) -> Binned:
        return self.bins_.transform(X, on_threads(self.n_jobs))

    def _deviations(self) -> NDArray[np.float64]:
        return np.sqrt((self.mass_ * (self.tables_ - self.means_) ** 2).sum(axis=0))

    def _design(self, train: Lists, evaluation: EvalSets) -> tuple[Lists, EvalSets]:
        texts = Columns.of(self).coded
        values = {place: categories_of(train.X, place) for place in texts}
        bins = Bins.of(
            *(train.X, self.bins, self.strategy, self._nominal(), self._signs()),
            categories={place: codes[codes != UNSEEN] for place, codes in values.items()},
            names=getattr(self, "feature_names_in_", None),
        )
        binned = bins.transform(train.X, on_threads(self.n_jobs))
        former = self.pairs_ if self.warm_start and hasattr(self, "coef_") else None
        self._remember(bins, binned)
        design = train.with_items(binned)
        self.C_, self.line_ = self._settings(design)
        crossed = self._crossed(bins, design, former)
        if len(crossed.pairs):
            binned = crossed.added(binned)
            self._remember(crossed, binned)
        return train.with_items(self._shrunk(binned)), self._design_evaluation(evaluation)

    def _design_evaluation(self, evaluation: EvalSets) -> EvalSets:
        return {
            name: lists.with_items(self._design_rows(lists.X)) for name, lists in evaluation.items()
        }

    def _design_rows(self, X: Matrix) -> Binned:
        return self._shrunk(self._binned(X))

    def _shrunk(self, binned: Any) -> Binned:
        """The same rows, whose weights are slopes and steps around a line, if there is one."""
        return replace(binned, **self._shape(self.line_))

    def _shape(self, line: str) -> dict[str, Vector]:
        """Units and rises of `Binned` that make it so."""
        if line == NONE:
            return {}
        units, rises = shrinkage(self.bins_, self.mass_, self.roughness, line)
        return {"units": units, "rises": rises}

    def _solve(self, fitter: Fitter, evaluation: EvalSets) -> None:
        super()._solve(fitter, evaluation)
        plain = self.bins_.empty
        self.coef_ = plain.feasible(plain.weights(self._shrunk(plain).tables(self.coef_)))

    def _beginning(self, n_weights: int) -> Vector | None:
        """The weights to begin at, as slopes and steps around them."""
        plain = self.bins_.empty
        first = super()._beginning(plain.shape[1])
        return None if first is None else self._shrunk(plain).weights(plain.tables(first))

    def _clone_with(self, C: float) -> Self:
        ranker = super()._clone_with(C)
        ranker.C_ = C
        return ranker

    def weight(self) -> float:
        """C, as given or as `fit` has chosen it."""
        chosen: float = getattr(self, "C_", USUAL_C * self._factor())
        return chosen if self.C is None else check_C(self.C)

    def _settings(self, design: Lists) -> tuple[float, str]:
        """C and the line; what is not given is cross-validated, without the cut-off of a loss."""
        factor = self._factor()
        lines, Cs = self._lines(), CS if self.C is None else (check_C(self.C) / factor,)
        values, shapes = None, [self._shape(line) for line in lines]

        def fit(train: Lists, test: Lists) -> Iterator[Vector]:
            for shape in shapes:
                rows, held_out = (replace(cast("Any", part.X), **shape) for part in (train, test))
                fitter = self._convex(train.with_items(rows))
                yield from (held_out @ self._weights(fitter, C) for C in Cs)

        if len(settings := list(product(lines, Cs))) > 1:
            values = cross_validate(design, self._usable(design), self.judged_by(), fit)
        usual = lines[0], USUAL_C if self.C is None else Cs[0]
        line, C = usual if values is None else settings[int(np.argmax(values))]
        return C * factor, line

    def _usable(self, design: Lists) -> NDArray[np.bool_]:
        """Which queries settings are judged by: there is something to learn from, and a weight."""
        trainable = self._trainable(design)
        return trainable if design.weights is None else trainable & (design.weights > 0)

    def _lines(self) -> tuple[str, ...]:
        if self.line is not None:
            check_choice(self.line, (*LINES, NONE), "line")
            return (self.line,)
        return tuple(LINES)

    def _factor(self) -> float:
        """How much larger C is with the bound than with the hinge."""
        return RAMP_FACTOR if self._bound() == "ramp" else 1.0

    def _convex(self, design: Lists) -> Fitter:
        """What fits these rows by the hinge: of the loss, or where the bound is the ramp, uncut."""
        loss, feature_map = self._loss(), parse_feature_map(self.feature_map)
        if self._bound() == "ramp":
            loss, feature_map = uncut(loss), Pairwise()
        return HingeFitter(self._problem(design, RankingProblem, loss, feature_map))

    def _weights(self, fitter: Fitter, C: float | None = None) -> Vector:
        """The weights at C, to a loose tolerance; what is learned on the way is not watched."""
        C = self.C_ / self._factor() if C is None else C
        solver = replace(self._solver(), tol=max(self.tol, LOOSE))
        solution, result = fitter.solve(solver, C, lambda _: None)
        if result.status == "interrupted":
            raise KeyboardInterrupt
        return solution.w

    def _design_shards(self, workers: Any, evaluation: EvalSets) -> tuple[int, Any, EvalSets]:
        """Edges are read off a sample of the rows of all shards, in proportion to their number."""
        from didyma.ranking.cluster import bin_counts, categories, sample_of

        if self._interactions() not in (0, "auto"):
            problem = "are not looked for on a cluster: expected 0 or 'auto'"
            raise DataError(problem, field="interactions")
        self._categories = ()  # workers refuse them
        nominal, signs = self._nominal(), self._signs()
        values = categories(workers, nominal)
        sample = sample_of(workers, SAMPLE)
        bins = Bins.of(
            *(sample, self.bins, self.strategy, nominal, signs),
            categories=values,
            names=getattr(self, "feature_names_in_", None),
        )
        self._remember(bins, bins.empty)
        self.mass_ = bin_counts(workers, bins)
        self.C_ = USUAL_C * self._factor() if self.C is None else check_C(self.C)
        self.line_ = self._lines()[0]
        design = self._shrunk(bins.empty)
        return design.shape[1], design.weight_signs, self._design_evaluation(evaluation)

    def _interactions(self) -> Any:
        n_pairs: Any = self.interactions
        if n_pairs != "auto" and not (is_whole(n_pairs) and n_pairs >= 0):
            raise DataError(
                f"expected a number of pairs or 'auto', found {n_pairs!r}", field="interactions"
            )
        return n_pairs

    def _crossed(self, bins: Bins, design: Lists, former: NDArray[np.int64] | None) -> Bins:
        """The bins with pairs of columns: those of a former fit that goes on, if as many."""
        n_pairs, binned = self._interactions(), cast("Any", design.X)
        if n_pairs == 0 or np.count_nonzero(bins.signs == 0) < 2:
            return bins
        levelled = bins.levelled(binned.counts())
        if former is not None and n_pairs in ("auto", len(former)):
            return levelled.crossed(former[(former < len(bins.edges)).all(axis=1)])
        if n_pairs == "auto":
            few = len(bins.edges) <= MOST_COLUMNS
            n_pairs = self._choose_number(levelled, design) if few else 0
        if n_pairs == 0:
            return bins
        plain = self._fitter_of(design)
        pairs = self._promising(levelled, binned, plain, self._weights(plain))
        return levelled.crossed(pairs[:n_pairs])

    def _choose_number(self, bins: Bins, design: Lists) -> int:
        """The least number of pairs that the best one is not clearly ahead of.

        No further third of the queries is held out once no number is ahead by one standard error.
        """

        def fit(train: Lists, test: Lists) -> Iterator[Vector]:
            plain = self._fitter_of(train)
            w = self._weights(plain)
            yield self._shrunk(test.X) @ w
            pairs = self._promising(bins, train.X, plain, w)
            for number in NUMBERS[1:]:
                crossed = bins.crossed(pairs[:number])
                rows, held_out = crossed.added(train.X), crossed.added(test.X)
                self._remember(crossed, rows)
                fitter = self._fitter_of(train.with_items(rows))
                yield self._shrunk(held_out) @ self._weights(fitter)
            self._remember(bins, design.X)

        number = 0
        folds: list[tuple[Vector, Vector]] = []
        for fold in held_out_values(design, self._usable(design), self.judged_by(), fit):
            folds.append(fold)
            values, weights = (np.concatenate(parts, axis=-1) for parts in zip(*folds))
            if first_near_best(values, weights, 1.0) == 0:
                return 0
            number = NUMBERS[first_near_best(values, weights)]
        return number

    def _fitter_of(self, design: Lists) -> Fitter:
        """What fits binned rows, as functions around lines, by the hinge."""
        return self._convex(design.with_items(self._shrunk(design.X)))

    def _promising(self, bins: Bins, binned: Any, plain: Fitter, w: Vector) -> NDArray[np.int64]:
        """All pairs of columns, the most promising first at the weights of columns alone.

        Monotone columns are not crossed, as a pair could break their promise.
        """
        coefficients, _ = plain.problem.respond(plain.problem.scores(w))
        levels = bins.coarse(binned.bins)
        return rank_pairs(levels, coefficients, bins.signs == 0, on_threads(self.n_jobs))[0]

    def _remember(self, bins: Bins, binned: Any) -> None:
        self.edges_, self.nominal_, self.signs_ = bins.edges, bins.nominal, bins.signs
        self.levels_, self.pairs_ = bins.levels, bins.pairs
        self.mass_ = binned.counts() / max(1, len(binned.bins))

    def _nominal(self) -> NDArray[np.bool_]:
        nominal = np.zeros(self.n_features_in_, np.bool_)
        nominal[[*self._indices("categorical"), *self._categories]] = True
        return nominal

    def _read_categories(self, X: Any, columns: dict[int, Any], reset: bool) -> Any:
        """Columns of categories are nominal; of texts the rows get codes, which `Bins` takes."""
        for name in columns.values() if not self._takes_categories else ():
            problem = "categories are not learned on a cluster: encode them one-hot"
            raise DataError(problem, field=f"column {name!r}")
        if reset:
            self._categories = tuple(columns)
        if isinstance(X, Lists):  # which have codes
            return X
        names = list(X.columns) if is_frame(X) else []
        if reset:
            self.categories_in_ = None
            places = sorted({*columns, *self._indices("categorical", names)}) if names else []
            X, vocabulary_of = number_frame(X, [names[place] for place in places])
            self.categories_in_ = or_none(map(vocabulary_of.get, names))
            return X
        trained = Columns.of(self)
        for name, texts in zip(trained.labels, trained.categories or ()):
            if texts is not None and not names:
                raise DataError(NUMBERS_FOUND, field=f"column {name!r}")
        known = dict(zip(trained.names or names, trained.categories or ()))
        is_nominal = dict(zip(trained.names or names, self._nominal().tolist()))
        for name in columns.values():
            if is_nominal.get(name) is False:
                problem = "held numbers in training, not categories"
                raise DataError(problem, field=f"column {name!r}")
        return number_frame(X, [name for name in names if is_nominal.get(name)], known)[0]

    def _signs(self) -> NDArray[np.int8]:
        signs, nominal = np.zeros(self.n_features_in_, np.int8), self._nominal()
        for parameter, sign in (("increasing", 1), ("decreasing", -1)):
            places = self._indices(parameter)
            if np.any(nominal[places]) or np.any(signs[places]):
                raise DataError(
                    "expected columns that are not categorical, nor both increasing and decreasing",
                    field=parameter,
                )
            signs[places] = sign
        if signs.any() and not self._solver().takes_signs:
            raise DataError(
                f"monotone columns need solver='bcfw' or 'one-slack', found {self.solver!r}",
                field="solver",
            )
        return signs

    def _indices(self, parameter: str, columns: Sequence[Any] | None = None) -> list[int]:
        """Indices of the columns that a parameter names, of these or of those of training."""
        names = list(getattr(self, "feature_names_in_", ()) if columns is None else columns)
        count = self.n_features_in_ if columns is None else len(names)
        indices = []
        for column in getattr(self, parameter):
            if isinstance(column, str) and column in names:
                indices.append(names.index(column))
            elif is_whole(column) and 0 <= column < count:
                indices.append(int(column))
            else:
                raise DataError(
                    f"expected names of columns, or indices from 0 to {count - 1}, "
                    f"found {column!r}",
                    field=parameter,
                )
        return indices

    def _solver(self) -> Any:
        solver = super()._solver()
        return RowBCFW(**vars(solver)) if self.solver == "bcfw" else solver
