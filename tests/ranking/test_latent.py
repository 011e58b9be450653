"""Latent rankers: what they learn, keep, report, refuse and repeat."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from didyma import model
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.learning.solution import Progress
from didyma.metrics import evaluate
from didyma.model.fields import fields_of
from didyma.ranking.latent import LatentPerceptronRanker, LatentSVMRanker, _classify


def judged(seed: int, n_queries: int = 25, shift: float = 1.2) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), 10)
    y = np.zeros(len(qid))
    for query in range(n_queries):
        y[10 * query + rng.choice(10, rng.integers(1, 4), replace=False)] = 1.0
    X = rng.normal(size=(len(qid), 4)) + shift * y[:, None] * [1.0, -0.5, 0.0, 0.0]
    return X, y, qid


X, Y, QID = judged(0)
DEV_X, DEV_Y, DEV_QID = judged(1)
DEV = {"eval_set": (DEV_X, DEV_Y), "eval_qid": DEV_QID}
GROUPS = Groups.from_qid(QID)

LATENT = [
    LatentPerceptronRanker(epochs=10),
    LatentPerceptronRanker(None, epochs=10),
    LatentPerceptronRanker(inference="greedy", epochs=10, weights="discount"),
    LatentPerceptronRanker("rr", 3.0, epochs=10, weights=(1.0, 0.5, 0.1)),
    LatentSVMRanker(),
    LatentSVMRanker(inference="greedy", positions="all"),
    LatentSVMRanker("precision@3"),
    LatentSVMRanker("roc", feature_map="positional:discount", start="random"),
]


def name_of(ranker: Any) -> str:
    return repr(ranker).replace("\n", "").replace(" ", "")


rankers = pytest.mark.parametrize("ranker", LATENT, ids=name_of)


@rankers
def test_they_learn(ranker: Any) -> None:
    ranker.fit(X, Y, qid=QID)
    learned, by_chance = (
        evaluate(scores, DEV_Y, Groups.from_qid(DEV_QID), "AP").mean("AP")
        for scores in (ranker.predict(DEV_X), np.zeros(len(DEV_Y)))
    )
    assert learned > by_chance + 0.15
    assert ranker.coef_[0] > 0 > ranker.coef_[1]


@rankers
def test_runs_repeat_exactly(ranker: Any) -> None:
    first = ranker.fit(X, Y, qid=QID).coef_
    np.testing.assert_array_equal(ranker.fit(X, Y, qid=QID).coef_, first)


@rankers
def test_models_come_back_from_their_files(ranker: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    ranker.fit(X, Y, qid=QID, **DEV).save(path)
    loaded = type(ranker).load(path)
    np.testing.assert_array_equal(loaded.predict(DEV_X), ranker.predict(DEV_X))
    for attribute in fields_of(type(ranker)):
        np.testing.assert_array_equal(getattr(loaded, attribute), getattr(ranker, attribute))
    given = {k: v for k, v in ranker.get_params().items() if k != "callback"}
    assert {k: v for k, v in loaded.get_params().items() if k != "callback"} == given
    assert "callback" not in model.describe(path)["parameters"]


@rankers
def test_storage_changes_next_to_nothing(ranker: Any) -> None:
    dense = ranker.fit(X, Y, qid=QID).coef_
    sparse = ranker.fit(sp.csr_array(X), Y, qid=QID).coef_
    np.testing.assert_allclose(sparse, dense, atol=1e-6 * np.abs(dense).max(), rtol=1e-2)


@rankers
def test_a_callback_sees_each_iteration_and_may_stop(ranker: Any) -> None:
    seen: list[Progress] = []

    def callback(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 2

    stopped = type(ranker)(**{**ranker.get_params(), "callback": callback}).fit(X, Y, qid=QID)
    assert [progress.n_iter for progress in seen] == list(range(1, len(seen) + 1))
    assert len(seen) <= 2
    assert stopped.n_iter_ == len(stopped.history_) == len(seen)
    np.testing.assert_array_equal(stopped.coef_, seen[-1].w)


def test_the_best_epoch_on_dev_is_kept() -> None:
    weights = []
    ranker = LatentPerceptronRanker(
        epochs=15, measure="nDCG@5", callback=lambda progress: weights.append(progress.w.copy())
    )
    ranker.fit(X, Y, qid=QID, **DEV)
    curve = [record["nDCG@5"] for record in ranker.history_]
    assert len(curve) == 15
    assert ranker.best_epoch_ == 1 + int(np.argmax(curve)) < 15
    np.testing.assert_array_equal(ranker.coef_, weights[ranker.best_epoch_ - 1])
    scores = ranker.predict(DEV_X)
    value = evaluate(scores, DEV_Y, Groups.from_qid(DEV_QID), "nDCG@5").mean("nDCG@5")
    assert value == pytest.approx(max(curve))
    assert LatentPerceptronRanker(epochs=7).fit(X, Y, qid=QID).best_epoch_ == 7


def test_the_order_of_visits_follows_the_seed() -> None:
    first, second = (
        LatentPerceptronRanker(epochs=3, random_state=seed).fit(X, Y, qid=QID).coef_
        for seed in (0, 1)
    )
    assert not np.array_equal(first, second)


def test_separable_queries_end_the_updates() -> None:
    rows, grades, queries = judged(3, shift=40.0)
    ranker = LatentPerceptronRanker(None, epochs=30).fit(rows, grades, qid=queries)
    assert ranker.history_[-1]["value"] == 0.0
    assert ranker.score(rows, grades, qid=queries) == 1.0


@pytest.mark.parametrize("start", ["classifier", "random"])
@pytest.mark.parametrize("loss", ["ap", "precision@3", "rr"])
def test_the_objective_never_increases(loss: str, start: str) -> None:
    ranker = LatentSVMRanker(loss, tol=1e-5, start=start).fit(X, Y, qid=QID)
    assert len(ranker.objective_trace_) == ranker.n_iter_ == len(ranker.history_)
    assert np.all(np.diff(ranker.objective_trace_) <= 1e-9 * ranker.objective_trace_[0])
    assert ranker.objective_trace_[-1] == ranker.result_.value
    assert np.any(ranker.start_coef_) == (start == "classifier")


@pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")
def test_zero_traps_the_classifier_less_often() -> None:
    """Where relevance is hard to tell; with either start CCCP may still end there."""
    trapped = {"random": 0, "classifier": 0}
    for seed in range(5):
        rows, grades, queries = judged(seed, shift=0.8)
        for start in trapped:
            ranker = LatentSVMRanker("precision@3", start=start).fit(rows, grades, qid=queries)
            trapped[start] += bool(np.linalg.norm(ranker.coef_) < 1e-4)
    assert trapped["classifier"] < trapped["random"]


def test_the_classifier_weighs_every_query_the_same() -> None:
    # The long query says that the feature is bad, two short ones that it is good.
    rows = np.concatenate([np.tile([[1.0], [0.0]], (50, 1)), [[0.0], [1.0]], [[0.0], [1.0]]])
    grades = np.concatenate([np.tile([0.0, 1.0], 50), [0.0, 1.0], [0.0, 1.0]])
    groups = Groups.from_sizes([100, 2, 2], 104)
    weights = np.array([9.0, 1.0, 1.0])
    assert _classify(Lists(rows, grades, grouping=groups), {}, 1.0)[0] > 0
    assert _classify(Lists(rows, grades, grouping=groups, weights=weights), {}, 1.0)[0] < 0


def test_restarts_and_ties_keep_the_best_and_say_so() -> None:
    options = {"C": 30.0, "start": "random", "random_state": 2}
    first = LatentSVMRanker(**options, ties=0).fit(X, Y, qid=QID).result_
    for n_restarts, ties in ((1, 4), (4, 0)):
        ranker = LatentSVMRanker(**options, n_restarts=n_restarts, ties=ties).fit(X, Y, qid=QID)
        result = ranker.result_
        assert result.value <= first.value
        assert result.value == min(result.values) == ranker.objective_trace_[-1]
        assert (len(result.values), result.kept) == (n_restarts, np.argmin(result.values))
        assert np.all(np.diff(ranker.objective_trace_) <= 0.0)
    with pytest.raises(DataError, match="n_restarts: expected a whole number from 1 on, found 0"):
        LatentSVMRanker(n_restarts=0).fit(X, Y, qid=QID)


def test_patience_keeps_the_best_round() -> None:
    ranker = LatentSVMRanker(C=1000.0, patience=1, tol=1e-9).fit(X, Y, qid=QID, **DEV)
    curve = [record["AP"] for record in ranker.history_]
    value = ranker.score(DEV_X, DEV_Y, qid=DEV_QID)
    assert value == pytest.approx(max(curve))


def test_the_threshold_of_relevance() -> None:
    graded = 2 * Y + (np.arange(len(Y)) % 3 == 0) * (1 - Y)
    for estimator in (LatentPerceptronRanker(epochs=3), LatentSVMRanker()):
        plain = estimator.fit(X, Y, qid=QID).coef_
        estimator.set_params(loss="ap(rel=2)")
        np.testing.assert_allclose(estimator.fit(X, graded, qid=QID).coef_, plain)


def test_one_warning_when_rounds_run_out() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=1 rounds") as caught:
        LatentSVMRanker(max_iter=1, tol=1e-9).fit(X, Y, qid=QID)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (LatentPerceptronRanker(C=0.0), "C: expected a positive number"),
        (LatentPerceptronRanker(C=np.inf), "C: expected a positive number"),
        (LatentPerceptronRanker(epochs=0), "epochs: expected a whole number from 1 on"),
        (LatentPerceptronRanker(inference="sort"), "'exact' or 'greedy', found 'sort'"),
        (LatentPerceptronRanker(weights=(0.1, 0.5)), "non-increasing"),
        (LatentPerceptronRanker("rr", inference="greedy"), "average precision only"),
        (LatentSVMRanker("nonsense"), "unknown loss"),
        (LatentSVMRanker(positions="some"), "'relevant' or 'all', found 'some'"),
        (LatentSVMRanker(start="zero"), "'classifier' or 'random', found 'zero'"),
        (LatentSVMRanker(feature_map="pairwise"), "nothing latent"),
        (LatentSVMRanker("precision@3", positions="all"), "truncated map only"),
    ],
    ids=str,
)
def test_wrong_parameters(ranker: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ranker.fit(X, Y, qid=QID)


def test_calls_of_partial_fit_go_on_where_the_last_one_ended(tmp_path):
    ranker = LatentPerceptronRanker(random_state=0)
    for rows in (slice(None, 120), slice(120, None)):
        ranker.partial_fit(X[rows], Y[rows], qid=QID[rows])
    once = LatentPerceptronRanker(epochs=1, random_state=0).fit(X[:120], Y[:120], qid=QID[:120])
    assert (ranker.best_epoch_, ranker.n_queries_) == (2, 25)
    assert not np.array_equal(ranker.coef_, once.coef_)
    once.save(tmp_path / "once.safetensors")
    loaded = LatentPerceptronRanker.load(tmp_path / "once.safetensors")
    loaded.partial_fit(X[120:], Y[120:], qid=QID[120:])
    assert loaded.best_epoch_ == 2
    with pytest.raises(DataError, match="features"):
        ranker.partial_fit(X[:, :2], Y, qid=QID)


def test_one_call_of_partial_fit_is_one_epoch():
    called = LatentPerceptronRanker().partial_fit(X, Y, qid=QID)
    fitted = LatentPerceptronRanker(epochs=1).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(called.coef_, fitted.coef_)


def test_queries_that_come_one_by_one_end_where_an_epoch_ends():
    rows = {q: q == QID for q in np.unique(QID)[:3]}
    some = np.any(list(rows.values()), axis=0)
    fitted = LatentPerceptronRanker(epochs=1).fit(X[some], Y[some], qid=QID[some])
    ends = []
    for order in permutations(rows):
        ranker = LatentPerceptronRanker()
        for q in order:
            ranker.partial_fit(X[rows[q]], Y[rows[q]])
        ends.append(np.allclose(ranker.coef_, fitted.coef_, rtol=1e-12))
    assert sum(ends) == 1


@pytest.mark.parametrize("kind", [LatentPerceptronRanker, LatentSVMRanker])
def test_a_warm_start_begins_at_the_last_weights(kind):
    first = kind().fit(X, Y, qid=QID)
    given = kind().fit(X, Y, qid=QID, coef_init=first.coef_)
    again = kind(warm_start=True).fit(X, Y, qid=QID).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(given.coef_, again.coef_)
    with pytest.raises(DataError, match="coef_init: expected 4 numbers"):
        kind().fit(X, Y, qid=QID, coef_init=[1.0])
