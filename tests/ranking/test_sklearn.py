"""Rankers and transformers inside scikit-learn: its checks, pipelines, searches, routing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn import __version__ as sklearn_version
from sklearn import config_context
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.metrics import evaluate
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.classification import ClassificationRanker, PolynomialRanker
from didyma.ranking.latent import LatentPerceptronRanker, LatentSVMRanker
from didyma.ranking.ranker import Ranker
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler, QueryStandardScaler
from didyma.ranking.svm import SVMRanker

RANKERS = [
    SVMRanker(),
    AdditiveSVMRanker(),
    ClassificationRanker(),
    LatentPerceptronRanker(epochs=5),
    LatentSVMRanker(),
]

TRANSFORMERS = [
    ScoreBinner(),
    ScoreBinner(sparse_output=False),
    QueryMinMaxScaler(),
    QueryPercentileScaler(),
    QueryStandardScaler(),
]

ALL_RELEVANT = "all its labels are 1 or more, so every row is relevant"
QUERY_WEIGHTS = "weights belong to queries: a repeated row changes its query's ranking"

FAIL_FOR_RANKERS = {
    "check_estimators_dtypes": ALL_RELEVANT,
    "check_fit2d_1feature": ALL_RELEVANT,
    "check_sample_weights_pandas_series": ALL_RELEVANT,
    "check_sample_weights_not_an_array": ALL_RELEVANT,
    "check_sample_weights_shape": ALL_RELEVANT,
    "check_sample_weights_not_overwritten": ALL_RELEVANT,
    "check_sample_weight_equivalence_on_dense_data": QUERY_WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": QUERY_WEIGHTS,
}

FAIL_FOR_QUERY_SCALERS = {
    "check_methods_subset_invariance": "a row is scaled by the other rows of its query",
}


def expected_failures(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, Ranker):
        return FAIL_FOR_RANKERS
    return {} if isinstance(estimator, ScoreBinner) else FAIL_FOR_QUERY_SCALERS


# Some checks have labels at random.
@pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")
@parametrize_with_checks(
    [*RANKERS, PolynomialRanker(), *TRANSFORMERS], expected_failed_checks=expected_failures
)
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


RNG = np.random.default_rng(5)
QID = RNG.permutation(np.repeat([f"q{i}" for i in range(30)], 8))
LEVEL = np.array([int(query[1:]) for query in QID])
Y = np.zeros(240, dtype=int)
Y[np.argsort(LEVEL, kind="stable").reshape(30, 8)[:, :2]] = 1  # two relevant rows a query
# The first feature tells relevant rows from others, but only within a query.
X = RNG.normal(size=(240, 3)) + 2.0 * Y[:, None] * [1, 0, 0] + 10.0 * LEVEL[:, None]


@pytest.fixture
def folds() -> Iterator[GroupKFold]:
    """Folds of whole queries, with metadata routing switched on."""
    with config_context(enable_metadata_routing=True):
        yield GroupKFold(3).set_split_request(groups="qid")


def name_of(ranker: Ranker) -> str:
    return type(ranker).__name__.lower()


rankers = pytest.mark.parametrize("ranker", RANKERS, ids=name_of)
scores_by_query = pytest.mark.skipif(
    tuple(map(int, sklearn_version.split(".")[:2])) < (1, 8),
    reason="before 1.8 scikit-learn's searches do not pass qid on to the scalers of a pipeline",
)


@rankers
@pytest.mark.usefixtures("folds")
def test_pipeline_routes_queries_to_every_step(ranker: Ranker) -> None:
    scaler, binner = QueryMinMaxScaler(), ScoreBinner(10)
    pipeline = make_pipeline(scaler, binner, ranker).fit(X, Y, qid=QID)
    by_hand = binner.transform(scaler.transform(X, qid=QID))
    scores = ranker.predict(by_hand)
    assert ranker.n_queries_ == 30
    np.testing.assert_array_equal(pipeline.predict(X, qid=QID), scores)
    expected = evaluate(scores, Y, Groups.from_qid(QID), "AP").mean("AP")
    assert pipeline.score(X, Y, qid=QID) == pytest.approx(expected)

    order = np.argsort(LEVEL, kind="stable")
    sizes = np.full(30, 8)
    assert pipeline.score(X[order], Y[order], group=sizes) == pytest.approx(expected, abs=0.02)
    pipeline.fit(X[order], Y[order], group=sizes)
    assert ranker.n_queries_ == 30


@rankers
def test_grid_search_over_queries(ranker: Ranker, folds: GroupKFold) -> None:
    search = GridSearchCV(ranker, {"C": [0.1, 10.0]}, cv=folds, error_score="raise")
    search.fit(X, Y, qid=QID)
    assert set(search.best_params_) == {"C"}
    assert search.best_estimator_.n_queries_ == 30
    scores = search.predict(X)
    expected = evaluate(scores, Y, Groups.from_qid(QID), "AP").mean("AP")
    assert search.score(X, Y, qid=QID) == pytest.approx(expected)
    # Each fold's score is the mean average precision of whole queries.
    train, test = next(folds.split(X, Y, QID))
    alone = search.best_estimator_.fit(X[train], Y[train], qid=QID[train])
    assert not set(QID[train]) & set(QID[test])
    assert search.cv_results_["split0_test_score"][search.best_index_] == pytest.approx(
        alone.score(X[test], Y[test], qid=QID[test])
    )


@rankers
@scores_by_query
def test_grid_search_over_a_pipeline(ranker: Ranker, folds: GroupKFold) -> None:
    pipeline = make_pipeline(QueryStandardScaler(), ScoreBinner(), ranker)
    grid = {f"{name_of(ranker)}__C": [1.0, 10.0], "scorebinner__n_thresholds": [5, 10]}
    search = GridSearchCV(pipeline, grid, cv=folds, error_score="raise").fit(X, Y, qid=QID)
    assert search.best_score_ > 0.7
    assert search.best_estimator_.predict(X, qid=QID).shape == (240,)
    with pytest.raises(DataError, match="needs qid or group"):
        search.predict(X)


@rankers
@scores_by_query
def test_cross_validation_over_queries(ranker: Ranker, folds: GroupKFold) -> None:
    pipeline = make_pipeline(QueryMinMaxScaler(), ScoreBinner(10), ranker)
    found = cross_validate(
        pipeline, X, Y, params={"qid": QID}, cv=folds, error_score="raise", return_indices=True
    )
    assert len(found["test_score"]) == 3
    for test in found["indices"]["test"]:
        assert np.all(np.unique(QID[test], return_counts=True)[1] == 8)
    # Scikit-learn hands no queries to `predict` here, which must not go unnoticed.
    with pytest.raises(DataError, match="needs qid or group"):
        cross_val_predict(pipeline, X, Y, params={"qid": QID}, cv=folds)
    scores = cross_val_predict(ranker, X, Y, params={"qid": QID}, cv=folds)
    expected = cross_validate(ranker, X, Y, params={"qid": QID}, cv=folds)["test_score"].mean()
    assert evaluate(scores, Y, Groups.from_qid(QID), "AP").mean("AP") == pytest.approx(expected)


@rankers
def test_weights_are_routed_on_request(ranker: Ranker, folds: GroupKFold) -> None:
    weighted = type(ranker)().set_fit_request(sample_weight=True)
    weighted.set_score_request(sample_weight=True)
    weight = np.where(LEVEL < 15, 1.0, 0.0)
    found = cross_validate(
        weighted,
        X,
        Y,
        params={"qid": QID, "sample_weight": weight},
        cv=folds,
        error_score="raise",
        return_estimator=True,
        return_indices=True,
    )
    fitted, test = found["estimator"][0], found["indices"]["test"][0]
    kept = test[weight[test] > 0]
    assert found["test_score"][0] == pytest.approx(fitted.score(X[kept], Y[kept], qid=QID[kept]))


@rankers
def test_pipeline_without_routing(ranker: Ranker) -> None:
    pipeline = make_pipeline(StandardScaler(), ranker)
    pipeline.fit(X, Y, **{f"{name_of(ranker)}__qid": QID})
    assert ranker.n_queries_ == 30
    assert pipeline.predict(X).shape == (240,)
    with pytest.raises(DataError, match="metadata routing"):
        pipeline.score(X, Y)


@rankers
def test_the_calls_of_pyterrier(ranker: Ranker) -> None:
    """As ``pt.ltr.apply_learned_model(ranker, form="ltr")`` fits and applies a ranker."""
    order = np.argsort(LEVEL, kind="stable")
    rows, grades = np.stack(list(X[order])), Y[order]
    counts = np.full(30, 8)
    ranker.fit(rows, grades, group=counts, eval_set=[(rows, grades)], eval_group=[counts])
    assert len(ranker.feature_importances_) == rows.shape[1]
    assert ranker.predict(rows).shape == (240,)


def test_a_halving_search_that_draws_rows_is_warned_of():
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    ways = {"n_samples": {}, "max_iter": {"resource": "max_iter", "max_resources": 40}}
    with config_context(enable_metadata_routing=True):
        for resource, way in ways.items():
            search = HalvingGridSearchCV(
                *(SVMRanker(), {"C": [1.0, 10.0]}), cv=GroupKFold(2), random_state=0, **way
            )
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                search.fit(X, Y, qid=QID, groups=QID)
            told = [w for w in seen if "draws rows, not queries" in str(w.message)]
            assert bool(told) == (resource == "n_samples")
