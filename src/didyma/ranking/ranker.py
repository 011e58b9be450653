"""What all rankers share: how they read their input, ranks, score, scikit-learn's ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.categories import (
    Vocabularies,
    category_columns,
    check_frame,
    is_frame,
    refuse_texts,
)
from didyma.data.groups import group_rows
from didyma.data.lists import Lists, high_level, judgements
from didyma.data.matrix import Columns, Matrix, as_csr, is_sparse
from didyma.errors import DataError
from didyma.execution import on_cluster
from didyma.learning.monitor import EvalSets, Learner, Monitor
from didyma.learning.scoring import linear_scores
from didyma.learning.solution import Callback, Result, Solution, check_C, check_start
from didyma.model import Savable, Saved
from didyma.protocol import Estimator, check_is_fitted, validate_data
from didyma.ranking.losses import NDCG, ItemwiseLoss, parse_loss
from didyma.ranking.problem import trainable_queries
from didyma.ranking.training_input import (
    all_moderate,
    check_numbers,
    count_trainable,
    warn_of_halving,
    weights_of_queries,
)

LabelledRows: TypeAlias = "tuple[ArrayLike, ArrayLike]"


class Ranker(Learner, Savable, Estimator):
    """Scores rows so that sorting those of one query by score ranks them.

    A subclass implements `_fit` and `_predict`. Everywhere, ``qid`` gives the query of each row (of
    any type, in any order) or ``group`` the sizes of consecutive queries; without either, all rows
    are one query. A row is relevant if its grade ``y`` is at least 1. ``qid`` and ``group`` are
    requested from scikit-learn's metadata routing. ``n_queries_`` counts the queries that were
    learned from.
    """

    __metadata_request__fit: ClassVar = {"qid": True, "group": True}
    __metadata_request__score: ClassVar = {"qid": True, "group": True, "docid": True}

    _allows_missing: ClassVar[bool] = False  # NaN in rows
    _remedy: ClassVar[str] = "label rows from {level:g} on with 1 and others with 0"
    _takes_categories: bool = False  # columns of a data frame that are categories
    _categories: tuple[int, ...] = ()  # the places of those, in training

    n_queries_: Annotated[int, Saved()]
    categories_in_: Vocabularies | None = None  # of columns of texts; see `Columns`

    @on_cluster("didyma.ranking.cluster:fit_on_cluster")
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        eval_set: LabelledRows | Sequence[LabelledRows] | None = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        sample_weight: ArrayLike | None = None,
        coef_init: ArrayLike | None = None,
        eval_names: Sequence[str] | None = None,
    ) -> Self:
        """Learn from judged rows.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_rows, n_features), or Lists
            Rows of float32 or float64 in C order, or CSR, are used in place. `Lists` bring
            their y and qid, and what their columns are: `predict` then checks it. A Dask array or
            data frame, with ``y`` and ``qid``, or `Shards`: the rows stay on the workers of the
            active Dask client, and rankers that learn by sums over them are fitted there.
        y : array of shape (n_rows,)
            Grades. Negative ones (junk in TREC judgements, or labels of -1) count as 0.
        qid, group
            The query of each row, or the size of each query.
        eval_set : (X, y), Lists, or a list of these
            Rows to evaluate on during training, by rankers that train in iterations; of several
            sets the first one decides when to stop.
        eval_qid, eval_group
            Their queries: an array, or a list that holds one for each set.
        sample_weight : array of shape (n_rows,)
            A query counts as often as the mean weight of its rows says: a weight of 2 is the same
            as the query given twice.
        coef_init : array, optional
            Weights to begin at, in the shape of ``coef_``, where a ranker learns from a start. The
            ramp bound and latent rankers descend from there, which saves most of their time where
            the weights are those of a similar ranker. What is convex has the same optimum from any
            start, within its tolerance: solvers by cuts get there sooner, "bcfw" hardly.
        eval_names : sequence of str, optional
            Names of the sets in ``history_``: "valid_0", "valid_1" and so on if there are several.
        """
        self._check_parameters()
        warn_of_halving()
        self._begin_at(coef_init)
        train = self._read_training(X, y, qid, group, sample_weight)
        evaluation = self._read_evaluation(eval_set, eval_qid, eval_group, eval_names)
        self._fit(train, evaluation)
        self._check_learned(train)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if getattr(self, "C", None) is not None:
            check_C(self.C)  # type: ignore[attr-defined]
        if (measure := getattr(self, "measure", None)) is not None:
            from didyma.metrics import parse

            try:
                parse(measure)
            except DataError as error:
                raise DataError(error.problem, field="measure") from None

    def _begin_at(self, coef_init: ArrayLike | None) -> None:
        """Take over weights to begin at."""
        if coef_init is not None:
            raise DataError(f"{type(self).__name__} begins at no weights", field="coef_init")

    @on_cluster("didyma.cluster.prediction:predict_on_cluster")
    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score of each row; higher ranks first.

        Those of a Dask array or data frame are computed when Dask is asked to.
        """
        check_is_fitted(self)
        return self._predict(X)

    def _predict(self, X: Any) -> NDArray[np.float64]:
        """Score of each row."""
        raise NotImplementedError

    def rank(
        self, X: Any, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """Rank of each row within its query, from 1; ties as `didyma.metrics.ranking` says."""
        from didyma.metrics.ranking import order, tie_break

        scores = self.predict(X)
        _, qid = judgements(X, None, qid, group)
        groups = group_rows(len(scores), qid, group)
        ranks = np.empty(len(scores), dtype=np.int64)
        place = np.arange(len(scores)) - np.repeat(groups.starts[:-1], groups.sizes)
        ranks[order(scores, groups, tie_break(groups))] = place + 1
        return ranks

    @on_cluster("didyma.cluster.prediction:score_on_cluster")
    def score(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        docid: ArrayLike | None = None,
    ) -> float:
        """Mean over the queries, weighted as in `fit`, of the measure that it is `judged_by`.

        Rows with equal scores are ranked by ``docid``, as everywhere (`didyma.metrics.ranking`).
        ``X`` may be on a cluster, as in `fit`.
        A ranker that was fitted on several queries must be told those of ``X``: silence most likely
        means that a search or a pipeline lost them.
        """
        from didyma.metrics import evaluate, parse
        from didyma.metrics.evaluation import warn_if_all_relevant

        measure = parse(self.judged_by())
        scores = self.predict(X)
        if docid is None and isinstance(X, Lists):
            docid = X.docid
        y, qid = judgements(X, y, qid, group)
        if qid is None and group is None and self.n_queries_ > 1:
            raise DataError(
                f"the ranker was fitted on {self.n_queries_} queries, so its score needs qid or "
                "group too; inside scikit-learn's tools enable metadata routing"
            )
        groups = group_rows(len(scores), qid, group)
        evaluation = evaluate(scores, y, groups, measure, docid=docid)
        warn_if_all_relevant([measure], np.asarray(y, dtype=np.float64))
        if sample_weight is None:
            return evaluation.mean(measure)
        values, weight = evaluation[measure], weights_of_queries(sample_weight, groups)
        defined = ~np.isnan(values)
        return float(np.average(values[defined], weights=weight[defined]))

    def judged_by(self) -> str:
        """The measure on held-out queries: ``measure`` if given, else that of the loss, or AP."""
        return getattr(self, "measure", None) or "AP"

    def _fit(self, train: Lists, evaluation: EvalSets) -> None:
        """Learn from lists that have been checked, with a weight for each query or none."""
        raise NotImplementedError

    def _fit_shards(
        self, workers: Any, weights: NDArray[np.float64], n_jobs: int, evaluation: EvalSets
    ) -> None:
        """Learn from rows that workers have read; see `didyma.ranking.cluster`."""
        raise DataError(
            f"{type(self).__name__} does not learn on a cluster: give it rows", field="X"
        )

    def _trainable(self, lists: Lists) -> NDArray[np.bool_]:
        """Which queries there is something to learn from."""
        return lists.mixed

    def _read_rows(self, X: Any, *, reset: bool, check: bool = True, **judged: Any) -> Any:
        """Rows as arrays whose columns are those of training, and ``y`` if it is given.

        Without ``check`` the numbers in X are not looked at.
        """
        finite = check and ("allow-nan" if self._allows_missing else True)
        if is_frame(X):
            check_frame(X)
        columns = X.features.coded if isinstance(X, Lists) else category_columns(X)
        X = self._read_categories(X, columns, reset)
        data = None
        if isinstance(X, Lists):
            data = X if reset else Columns.of(self).arrange(X)
        elif is_sparse(X):
            X = as_csr(X)
        rows, named = (X, True) if data is None else (data.X, False)
        try:
            read = validate_data(
                self, rows, reset=reset, finite=finite, sparse=True, named=named, **judged
            )
        except (TypeError, ValueError) as error:  # scikit-learn's, whose words say what is wrong
            if is_frame(X):
                names = X.columns if reset else getattr(self, "feature_names_in_", X.columns)
                if [*X.columns] == [*names]:
                    refuse_texts(X)
            elif isinstance(error, TypeError):
                raise
            elif finite and isinstance(rows, np.ndarray) and rows.ndim == 2:
                names = getattr(self, "feature_names_in_", None)
                missing = self._allows_missing
                check_numbers(rows, names, missing=missing, largest=np.inf)
            raise DataError(" ".join(str(error).split())) from None
        if reset and data is None:
            self.zero_based_in_ = None
        elif reset and data is not None:
            data.features.remember(self)
        return read

    def _read_categories(self, X: Any, columns: dict[int, Any], reset: bool) -> Any:
        """The rows, unless they have columns of categories, which would be taken for quantities."""
        for name in columns.values():
            raise DataError(
                f"{type(self).__name__} takes no categories: use AdditiveSVMRanker, or encode them "
                "one-hot",
                field=f"column {name!r}",
            )
        return X

    def _read_judged(
        self, X: Any, y: ArrayLike | None, *, reset: bool, check: bool = True
    ) -> tuple[Matrix, NDArray[np.float64]]:
        rows, grades = self._read_rows(X, reset=reset, check=check, y=y)
        if grades.dtype.kind not in "biuf":
            raise DataError(f"expected numbers, found {grades.dtype}", field="y")
        grades = grades.astype(np.float64, copy=False)
        return _as_matrix(rows), np.maximum(grades, 0.0) if np.any(grades < 0) else grades

    def _read_training(
        self,
        X: Any,
        y: Any,
        qid: Any,
        group: Any,
        sample_weight: ArrayLike | None,
        *,
        reset: bool = True,
    ) -> Lists:
        """The lists to learn from, which set ``n_queries_``; without ``reset``, of known columns.

        Warns of queries that are skipped, and refuses if that leaves none.
        """
        y, qid = judgements(X, y, qid, group)
        rows, grades = self._read_numbers(X, y, reset=reset)
        groups = group_rows(len(grades), qid, group)
        weights = None if sample_weight is None else weights_of_queries(sample_weight, groups)
        train = Lists(rows, grades, groups.codes, grouping=groups, weights=weights)
        trainable = self._trainable(train)
        if not trainable.any():
            raise self._nothing_to_learn(grades)
        self.n_queries_ = count_trainable(trainable, weights)
        return train

    def _nothing_to_learn(self, grades: NDArray[np.float64]) -> DataError:
        """Why there is nothing to learn from these grades, and what to do."""
        levels, rel = np.unique(grades), self._least_relevant()
        problem = "every query has rows of one grade only"
        if len(levels) == 1:
            problem = f"all labels are {levels[0]:g}, one class only"
        elif rel is not None and not levels[0] < rel <= levels[-1]:
            which = "all rows are" if levels[0] >= rel else "no row is"
            level = high_level(grades)
            return DataError(
                f"labels are {levels[0]:g} to {levels[-1]:g}, so that {which} relevant "
                f"(y >= {rel:g}) and there is nothing to learn from; "
                + self._remedy.format(level=level),
                field="y",
            )
        elif rel is not None:
            problem = f"no query has a row that is relevant (y >= {rel:g}) and one that is not"
        return DataError(f"{problem}, so that there is nothing to learn from", field="y")

    def _read_numbers(
        self, X: Any, y: ArrayLike, *, reset: bool = True
    ) -> tuple[Matrix, NDArray[np.float64]]:
        rows, grades = self._read_judged(X, y, reset=reset, check=False)
        if not all_moderate(rows):  # one look tells; only then look for what is wrong
            names = getattr(self, "feature_names_in_", None)
            check_numbers(rows, names, missing=self._allows_missing)
        return rows, grades

    def _read_evaluation(
        self, eval_set: Any, eval_qid: Any, eval_group: Any, eval_names: Any
    ) -> EvalSets:
        if eval_set is None:
            if any(part is not None for part in (eval_qid, eval_group, eval_names)):
                raise DataError("eval_qid, eval_group and eval_names need eval_set")
            return {}
        sets = eval_set if isinstance(eval_set, list) else [eval_set]
        if not sets:
            raise DataError("expected a set at least, found none", field="eval_set")
        names = _names_of(sets, eval_names)
        queries = [_for_each(len(sets), eval_qid, "eval_qid")]
        queries.append(_for_each(len(sets), eval_group, "eval_group"))
        evaluation = {
            name: self._read_held_out(*held_out) for name, *held_out in zip(names, sets, *queries)
        }
        if getattr(self, "patience", None) is not None:  # the first set decides when to stop
            from didyma.metrics import parse
            from didyma.metrics.evaluation import check_decisive

            first = evaluation[names[0]]
            try:
                check_decisive(parse(self.judged_by()), first.y, first.groups)
            except DataError as error:
                raise DataError(error.problem, field="eval_set") from None
        return evaluation

    def _read_held_out(self, held_out: Any, qid: Any, group: Any) -> Lists:
        if isinstance(held_out, Lists):
            _, qid = judgements(held_out, None, qid, group)
            held_out = (held_out, held_out.y)
        if not (isinstance(held_out, tuple) and len(held_out) == 2):
            raise DataError("expected (X, y), Lists, or a list of these", field="eval_set")
        rows, grades = self._read_judged(*held_out, reset=False)
        if qid is None and group is None and self.n_queries_ > 1:
            problem = "expected the queries of eval_set, as those of training are known"
            raise DataError(problem, field="eval_qid")
        return Lists(rows, grades, grouping=group_rows(len(grades), qid, group))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_missing
        return tags


class LinearRanker(Ranker):
    """A ranker whose score is a weighted sum of features, x · ``coef_``."""

    coef_: Annotated[NDArray[np.float64], Saved("n_features")]
    _first: ArrayLike | None = None  # weights to begin at

    def _predict(self, X: Any) -> NDArray[np.float64]:
        """X @ coef_, in double precision."""
        rows = _as_matrix(self._read_rows(X, reset=False))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._score_rows(rows)
        if not np.isfinite(scores).all():
            row = int(np.argmin(np.isfinite(scores)))
            raise DataError(f"the features in row {row} are too large to score", field="X")
        return scores

    def _score_rows(self, X: Matrix) -> NDArray[np.float64]:
        return linear_scores(X, self.coef_)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Magnitude of each feature's weight; the sign, and so the direction, is in `coef_`."""
        return np.abs(self.coef_)


@dataclass(eq=False, repr=False)
class StartedRanker(LinearRanker):
    """A linear ranker that descends a loss from weights: given ones, with ``warm_start`` its own.

    `SVMRanker` explains the parameters.
    """

    loss: Any = "ap"
    _: KW_ONLY
    measure: str | None = None
    random_state: Any = 0
    warm_start: bool = False
    callback: Callback | None = None

    result_: Result = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    n_iter_: int = field(init=False)

    _transient: ClassVar[tuple[str, ...]] = ("callback",)
    _remedy = (
        'loss="ap(rel={level:g})" takes rows from {level:g} on as relevant, loss="ndcg" learns '
        "from the grades themselves"
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._loss()

    def judged_by(self) -> str:
        """See `Ranker`."""
        return self.measure or self._loss().measure

    def _loss(self) -> ItemwiseLoss:
        return parse_loss(self.loss)

    def _least_relevant(self) -> float | None:
        loss = self._loss()
        return None if isinstance(loss, NDCG) else loss.rel

    def _trainable(self, lists: Lists) -> NDArray[np.bool_]:
        return trainable_queries(lists.y, lists.groups, self._loss())

    def _keep(self, solution: Solution, result: Result, monitor: Monitor, *, best: bool) -> None:
        """Remember weights, those of the ``best`` iteration on held-out lists or of the last."""
        self.coef_ = monitor.chosen(solution.w) if best else solution.w
        self.result_, self.n_iter_, self.history_ = result, result.n_iter, monitor.history

    def _begin_at(self, coef_init: ArrayLike | None) -> None:
        self._first = coef_init

    def _beginning(self, n_weights: int) -> NDArray[np.float64] | None:
        """The weights to begin at, once."""
        first, self._first = self._first, None
        if first is not None:
            return check_start(first, n_weights)
        last = getattr(self, "coef_", None) if self.warm_start else None
        if last is not None and len(last) != n_weights:
            raise DataError(
                f"the last fit has {len(last)} weights and this one {n_weights}: fit a clone",
                field="warm_start",
            )
        return last


def _as_matrix(rows: Any) -> Matrix:
    return as_csr(rows) if is_sparse(rows) else rows


def _for_each(n_sets: int, values: Any, field: str) -> list[Any]:
    """One array for each evaluation set, of a list of them; of one set, it may be the array."""
    if values is None:
        return [None] * n_sets
    listed = isinstance(values, (list, tuple)) and any(np.ndim(part) == 1 for part in values)
    each = list(values) if listed else [values]
    if len(each) != n_sets:
        raise DataError(f"expected a list of {n_sets} arrays, one for each set", field=field)
    return each


def _names_of(sets: list[Any], names: Sequence[str] | None) -> list[str]:
    """Names of evaluation sets; a single one needs none."""
    if names is None:
        return [""] if len(sets) == 1 else [f"valid_{place}" for place in range(len(sets))]
    texts = [] if isinstance(names, str) or not isinstance(names, Sequence) else [*map(str, names)]
    if not len({*texts}) == len(texts) == len(sets):
        expected = f"expected {len(sets)} different names"
        raise DataError(f"{expected}, found {names!r}", field="eval_names")
    return texts
