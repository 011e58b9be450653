"""SVMRanker as a user meets it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from didyma import AdditiveSVMRanker, LatentSVMRanker, SVMRanker, load
from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.metrics import evaluate
from didyma.ranking.fitters import START
from didyma.ranking.losses import NDCG, AveragePrecision, PrecisionAt, StepLoss
from didyma.ranking.problem import RankingProblem
from didyma.ranking.ramp import RampProblem
from tests.learning.problems import random_ranking


def judged(seed=0, n_queries=40, n_rows=15, n_features=6, noise=0.5, weights=None):
    """Queries whose relevance is nearly linear in the features."""
    rng = np.random.default_rng(seed)
    weights = np.array([2.0, -1.0, 0.5, 0.0, 0.0, 1.0]) if weights is None else weights
    X = rng.random((n_queries * n_rows, n_features))
    truth = X @ weights + noise * rng.standard_normal(len(X))
    qid = np.repeat(np.arange(n_queries), n_rows)
    y = np.zeros(len(X))
    for q in range(n_queries):
        own = np.flatnonzero(qid == q)
        y[own[np.argsort(-truth[own])[: 1 + q % 4]]] = 1.0
    return X, y, qid


def test_it_learns():
    X, y, qid = judged()
    X_test, y_test, qid_test = judged(seed=1)
    ranker = SVMRanker(C=100).fit(X, y, qid=qid)
    learned = ranker.score(X_test, y_test, qid=qid_test)
    groups = Groups.from_qid(qid_test)
    by_best_feature = evaluate(X_test[:, 0], y_test, groups, "AP").mean("AP")
    assert learned > by_best_feature + 0.02
    assert np.argmax(ranker.feature_importances_) == 0
    assert ranker.coef_[1] < 0 < ranker.coef_[0]


def test_the_objective_is_the_documented_one():
    X, y, qid = judged()
    ranker = SVMRanker(C=30, tol=1e-4).fit(X, y, qid=qid)
    problem = RankingProblem(X, y, Groups.from_qid(qid), AveragePrecision())
    risks = problem.risks(ranker.coef_)
    n = len(np.unique(qid))
    value = 0.5 * ranker.coef_ @ ranker.coef_ + 30 / n * risks.sum()
    assert ranker.result_.value == pytest.approx(value)
    assert ranker.result_.gap <= 1e-4 * value
    assert ranker.result_.converged
    assert ranker.result_.n_iter == ranker.n_iter_ == len(ranker.history_)


@pytest.mark.parametrize("solver", ["bcfw", "one-slack", "n-slack", "bundle"])
def test_all_solvers_give_the_same_ranker(solver):
    X, y, qid = judged()
    reference = SVMRanker(C=10, solver="one-slack", tol=1e-8).fit(X, y, qid=qid)
    ranker = SVMRanker(C=10, solver=solver, tol=1e-5).fit(X, y, qid=qid)
    assert ranker.result_.value == pytest.approx(reference.result_.value, rel=2e-5)
    np.testing.assert_allclose(ranker.coef_, reference.coef_, atol=0.02)


@pytest.mark.parametrize(
    "loss", ["ap", "roc", "rr", "ndcg", "ndcg@3", "precision@2", AveragePrecision(rel=1), NDCG(k=5)]
)
def test_every_loss(loss):
    X, y, qid = judged()
    assert SVMRanker(loss, C=50).fit(X, y, qid=qid).score(X, y, qid=qid) > 0.6


@pytest.mark.parametrize("feature_map", ["positional", "positional:discount", "truncated", "top@3"])
def test_every_feature_map(feature_map):
    X, y, qid = judged()
    ranker = SVMRanker(C=50, feature_map=feature_map).fit(X, y, qid=qid)
    assert ranker.result_.converged
    assert ranker.score(X, y, qid=qid) > 0.6


def test_grades():
    X, y, qid = judged()
    rng = np.random.default_rng(3)
    graded = np.where(y > 0, rng.integers(1, 4, len(y)), 0.0)
    for feature_map in ("pairwise", "positional:discount"):
        ranker = SVMRanker("ndcg", C=50, feature_map=feature_map).fit(X, graded, qid=qid)
        assert ranker.result_.converged
        assert ranker.score(X, y, qid=qid) > 0.6


def test_the_bound_over_grades_is_a_choice_and_in_the_result():
    X, y, qid = judged()
    graded = y + (np.arange(len(y)) % 3 == 0)
    results = {}
    for grades in ("auto", "joint", "thresholds"):
        ranker = SVMRanker("ndcg@5", C=50, grades=grades).fit(X, graded, qid=qid)
        assert ranker.score(X, y, qid=qid) > 0.6
        results[grades] = ranker.result_
        (other,) = SVMRanker("ndcg@5", grades=grades).path(X, graded, [50.0], qid=qid)
        assert other.result_.value == pytest.approx(ranker.result_.value, rel=2e-3)
    assert {name: results[name].grades for name in ("joint", "thresholds")} == {
        "joint": "joint",
        "thresholds": "thresholds",
    }
    assert results["auto"].value == results[results["auto"].grades].value
    assert SVMRanker("ndcg").fit(X, y, qid=qid).result_.grades is None
    with pytest.raises(DataError, match="grades: expected one of"):
        SVMRanker("ndcg", grades="many").fit(X, graded, qid=qid)


def test_a_loss_of_your_own():
    X, y, qid = judged()
    loss = StepLoss(positive=lambda i, j, P, N: 1.0 if i == 0 and j > 0 else 0.0)  # success@1
    ranker = SVMRanker(loss, C=50).fit(X, y, qid=qid)
    assert ranker.result_.converged
    assert evaluate(ranker.predict(X), y, Groups.from_qid(qid), "P@1").mean("P@1") > 0.7


@pytest.mark.parametrize(
    ("loss", "bound", "start"),
    [
        ("ap", "hinge", None),
        ("roc", "hinge", None),
        ("ndcg", "hinge", None),
        ("ndcg@3", "ramp", "ndcg"),
        ("precision@2", "ramp", "ap"),
        (StepLoss(positive=lambda i, j, P, N: 1.0 if i == 0 and j > 0 else 0.0), "ramp", "ap"),
    ],
)
def test_the_bound_that_suits_a_loss(loss, bound, start):
    X, y, qid = judged(n_queries=10)
    result = SVMRanker(loss, C=10).fit(X, y, qid=qid).result_
    assert (result.bound, result.start) == (bound, start)
    assert (result.rounds > 0) == (bound == "ramp")


@pytest.mark.parametrize("solver", ["bcfw", "one-slack", "n-slack", "bundle"])
def test_the_ramp_only_descends(solver):
    X, y, qid = judged(noise=1.0)
    ranker = SVMRanker("precision@2", C=100, solver=solver, tol=1e-3).fit(X, y, qid=qid)
    trace, result = ranker.objective_trace_, ranker.result_
    assert len(trace) == len(ranker.history_) == result.rounds + 1 == ranker.n_iter_ + 1
    assert np.all(np.diff(trace) <= 1e-12 * trace[0])
    assert trace[-1] == result.value < trace[0]
    assert result.converged
    assert 0.0 <= result.gap <= 1e-3 * result.value
    assert all(record["gap"] >= 0.0 for record in ranker.history_)
    start = SVMRanker("ap", C=100 * START, solver=solver, tol=1e-3).fit(X, y, qid=qid)
    problem = RampProblem(X, y, Groups.from_qid(qid), PrecisionAt(k=2))
    for coef, value in ((start.coef_, trace[0]), (ranker.coef_, trace[-1])):
        problem.complete(coef)
        risk = problem.risks(coef).mean()
        assert value == pytest.approx(0.5 * coef @ coef + 100 * risk, rel=1e-9)


def test_the_ramp_takes_weights_paths_and_every_storage():
    X, y, qid = judged(n_queries=20, noise=1.0)
    X = X.astype(np.float32).astype(np.float64)
    make = SVMRanker("precision@2", tol=1e-4)
    path = make.path(X, y, [100.0, 10.0], qid=qid)
    for ranker in path:
        alone = SVMRanker("precision@2", ranker.C, tol=1e-4).fit(X, y, qid=qid)
        assert ranker.objective_trace_[0] == pytest.approx(alone.objective_trace_[0], rel=1e-2)
        assert ranker.result_.value == pytest.approx(alone.result_.value, rel=0.05)
        assert ranker.result_.converged
    for storage in (sp.csr_array, np.float32):
        other = SVMRanker("precision@2", C=10, tol=1e-4).fit(storage(X), y, qid=qid)
        assert other.result_.value == pytest.approx(path[0].result_.value, rel=0.02)
    weight = np.where(qid < 10, 1.0, 0.0)
    half = SVMRanker("precision@2", C=10, tol=1e-4).fit(X, y, qid=qid, sample_weight=weight)
    first = X[qid < 10], y[qid < 10]
    alone = SVMRanker("precision@2", C=10, tol=1e-4).fit(*first, qid=qid[qid < 10])
    np.testing.assert_allclose(half.coef_, alone.coef_)


def test_rounds_of_the_ramp_are_watched():
    X, y, qid = judged(noise=1.0)
    X_dev, y_dev, qid_dev = judged(seed=1, noise=1.0)
    ranker = SVMRanker("precision@2", C=1000, measure="P@2", patience=2)
    ranker.fit(X, y, qid=qid, eval_set=(X_dev, y_dev), eval_qid=qid_dev)
    values = [record["P@2"] for record in ranker.history_]
    kept = evaluate(ranker.predict(X_dev), y_dev, Groups.from_qid(qid_dev), "P@2").mean("P@2")
    assert kept == pytest.approx(max(values))
    seen = []
    stop = SVMRanker("precision@2", callback=lambda progress: seen.append(progress) or True)
    stop.fit(X, y, qid=qid)
    assert len(seen) == 1
    assert stop.result_.status == "stopped"
    assert np.array_equal(stop.coef_, seen[0].w)


def test_interruption_of_the_ramp_keeps_what_was_learned():
    X, y, qid = judged(noise=1.0)

    def interrupt(progress):
        if progress.n_iter == 1:
            raise KeyboardInterrupt

    ranker = SVMRanker("precision@2", callback=interrupt).fit(X, y, qid=qid)
    assert ranker.result_.status == "interrupted"
    assert ranker.coef_.any()


def test_group_and_qid_agree_and_order_does_not_matter():
    X, y, qid = judged()
    by_qid = SVMRanker(tol=1e-6).fit(X, y, qid=qid)
    by_group = SVMRanker(tol=1e-6).fit(X, y, group=np.bincount(qid))
    np.testing.assert_allclose(by_group.coef_, by_qid.coef_)
    shuffle = np.random.default_rng(0).permutation(len(y))
    names = np.array([f"query {q}" for q in qid])
    shuffled = SVMRanker(tol=1e-6).fit(X[shuffle], y[shuffle], qid=names[shuffle])
    np.testing.assert_allclose(shuffled.coef_, by_qid.coef_, atol=0.05)
    assert shuffled.result_.value == pytest.approx(by_qid.result_.value, rel=1e-5)


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csr_matrix, sp.csc_array, np.float32])
def test_storage(storage):
    X, y, qid = judged()
    X = X.astype(np.float32).astype(np.float64)
    dense = SVMRanker(tol=1e-6).fit(X, y, qid=qid)
    other = SVMRanker(tol=1e-6).fit(storage(X), y, qid=qid)
    assert other.result_.value == pytest.approx(dense.result_.value, rel=2e-6)
    np.testing.assert_allclose(other.predict(storage(X)), dense.predict(X), atol=0.02)


def test_training_does_not_copy_or_change_its_input():
    X, y, qid = judged()
    before = X.copy(), y.copy(), qid.copy()
    for array in (X, y, qid):
        array.setflags(write=False)
    SVMRanker().fit(X, y, qid=qid)
    for array, old in zip((X, y, qid), before):
        assert np.array_equal(array, old)


def test_results_do_not_depend_on_threads_and_follow_the_seed():
    X, y, qid = judged()
    fits = [SVMRanker(n_jobs=n, random_state=5).fit(X, y, qid=qid).coef_ for n in (1, 2, None)]
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[0], fits[2])
    assert not np.array_equal(fits[0], SVMRanker(random_state=6).fit(X, y, qid=qid).coef_)


def test_weights_of_queries():
    """A query of weight two is a query that occurs twice."""
    X, y, qid = judged(n_queries=10)
    weight = np.where(qid == 3, 2.0, 1.0)
    weighted = SVMRanker(C=10, tol=1e-6).fit(X, y, qid=qid, sample_weight=weight)
    twice = np.concatenate([np.arange(len(y)), np.flatnonzero(qid == 3)])
    names = np.concatenate([qid, np.full(np.sum(qid == 3), 99)])
    repeated = SVMRanker(C=10, tol=1e-6).fit(X[twice], y[twice], qid=names)
    assert weighted.result_.value == pytest.approx(repeated.result_.value, rel=1e-5)
    ignored = SVMRanker(C=10).fit(X, y, qid=qid, sample_weight=np.where(qid == 3, 0.0, 1.0))
    assert ignored.result_.converged


def test_a_path_is_a_fit_for_each_C():
    X, y, qid = judged()
    Cs = [100.0, 0.1, 1.0, 10.0]
    path = SVMRanker(tol=1e-4).path(X, y, Cs, qid=qid, eval_set=(X, y), eval_qid=qid)
    assert [ranker.C for ranker in path] == sorted(Cs)
    for ranker in path:
        alone = SVMRanker(C=ranker.C, tol=1e-4).fit(X, y, qid=qid)
        assert ranker.result_.converged
        assert ranker.result_.value == pytest.approx(alone.result_.value, rel=2e-4)
        assert ranker.n_features_in_ == 6
        assert "AP" in ranker.history_[-1]
        assert 0 < ranker.score(X, y, qid=qid) <= 1


def test_watching_held_out_queries():
    X, y, qid = judged(noise=2.0)
    X_dev, y_dev, qid_dev = judged(seed=12, noise=2.0)

    def held_out(ranker):
        scores = ranker.predict(X_dev)
        return evaluate(scores, y_dev, qid=qid_dev, measures="nDCG@5").mean("nDCG@5")

    ranker = SVMRanker(C=1e4, measure="nDCG@5").fit(
        X, y, qid=qid, eval_set=(X_dev, y_dev), eval_qid=qid_dev
    )
    assert ranker.history_[-1]["nDCG@5"] == pytest.approx(held_out(ranker))
    early = SVMRanker(C=1e4, measure="nDCG@5", patience=1, tol=1e-4).fit(
        X, y, qid=qid, eval_set=[(X_dev, y_dev)], eval_qid=[qid_dev]
    )
    assert early.result_.status == "stopped"
    at_C = [record["nDCG@5"] for record in early.history_ if record["C"] == 1e4]
    assert held_out(early) == max(at_C)
    # Weights on the way to C do better here, but are those of another C than the one asked for.
    assert max(record["nDCG@5"] for record in early.history_) > max(at_C)


def test_the_first_of_several_sets_decides():
    X, y, qid = judged(noise=2.0)
    first, second = judged(seed=12, noise=2.0), judged(seed=13, noise=2.0)
    settings = {"C": 1e4, "patience": 1, "tol": 1e-4}
    alone = SVMRanker(**settings).fit(X, y, qid=qid, eval_set=first[:2], eval_qid=first[2])
    both = SVMRanker(**settings).fit(
        *(X, y, qid),
        eval_set=[first[:2], second[:2]],
        eval_qid=[first[2], second[2]],
        eval_names=["near", "far"],
    )
    np.testing.assert_array_equal(both.coef_, alone.coef_)
    assert [r["near AP"] for r in both.history_] == [r["AP"] for r in alone.history_]
    far = SVMRanker(C=1e4, tol=1e-4).fit(X, y, qid=qid, eval_set=second[:2], eval_qid=second[2])
    n_iter = both.n_iter_
    assert [r["far AP"] for r in both.history_] == [r["AP"] for r in far.history_[:n_iter]]


def test_callbacks_see_progress():
    X, y, qid = judged()
    seen = []
    SVMRanker(C=1000, callback=seen.append).fit(X, y, qid=qid)
    assert seen
    assert seen[-1].certified
    assert seen[-1].relative_gap <= 1e-3


def test_a_limit_warns():
    X, y, qid = judged(noise=2.0)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1\) with a relative gap"):
        ranker = SVMRanker(C=1e6, max_iter=1).fit(X, y, qid=qid)
    assert not ranker.result_.converged


def test_rounds_that_were_cut_short_have_not_converged():
    """Whatever a round gains: its convex problem was left with a gap."""
    X, y, qid = judged(noise=2.0)
    with pytest.warns(ConvergenceWarning, match=r"rounds \(max_iter=1\) with a relative gap"):
        ranker = SVMRanker("precision@2", C=1e4, max_iter=1).fit(X, y, qid=qid)
    assert ranker.result_.rounds < 100
    assert (ranker.result_.status, ranker.result_.converged) == ("limit", False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0}, "C: expected a positive number"),
        ({"C": np.inf}, "C: expected a positive number"),
        ({"loss": "map@3"}, "no cut-off"),
        ({"solver": "newton"}, "expected one of 'bcfw'"),
        ({"feature_map": "triples"}, "unknown feature map"),
        ({"bound": "tight"}, "bound: expected one of 'auto'"),
    ],
)
def test_bad_parameters(options, message):
    X, y, qid = judged(n_queries=5)
    with pytest.raises(DataError, match=message):
        SVMRanker(**options).fit(X, y, qid=qid)


def test_the_measure_follows_the_loss():
    X, y, qid = judged(n_queries=8)
    for loss, measure in (("ap", "AP"), ("ndcg@3", "nDCG(dcg='exp-log2')@3"), ("rr", "RR")):
        ranker = SVMRanker(loss).fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)
        assert measure in ranker.history_[-1]
        assert ranker.score(X, y, qid=qid) == ranker.history_[-1][measure]
    assert SVMRanker("ndcg@3", measure="P@1").judged_by() == "P@1"


def test_nothing_to_learn_from():
    X, y, qid = judged(n_queries=5)
    with pytest.raises(DataError, match="nothing to learn from"):
        SVMRanker().path(X, np.zeros_like(y), [1.0], qid=qid)


@pytest.mark.parametrize("loss", ["ap", NDCG(k=3, gain="linear")])
def test_save_and_load(tmp_path, loss):
    X, y, qid = judged()
    ranker = SVMRanker(loss, C=7, callback=lambda progress: None).fit(X, y, qid=qid)
    ranker.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert isinstance(again, SVMRanker)
    assert np.array_equal(again.predict(X), ranker.predict(X))
    assert again.C == 7
    assert str(again.loss) == str(ranker.loss)
    again.fit(X, y, qid=qid)
    assert np.array_equal(again.coef_, ranker.coef_)


def test_real_data(shared_data):
    from didyma import read

    train = read(shared_data / "mq2008" / "S1.txt")
    test = read(shared_data / "mq2008" / "S5.txt")
    with pytest.warns(UserWarning, match="queries have rows of one class only"):
        ranker = SVMRanker(C=100).fit(train.X, train.y, qid=train.qid)
    assert ranker.score(test.X, test.y, qid=test.qid) > 0.42


@pytest.mark.parametrize(("loss", "C"), [("ap", 100.0), ("precision@2", 300.0)])
def test_without_c_the_bound_decides(loss, C):
    X, y, qid = judged(n_queries=6)
    given = SVMRanker(loss, C=C).fit(X, y, qid=qid)
    np.testing.assert_array_equal(SVMRanker(loss).fit(X, y, qid=qid).coef_, given.coef_)


@pytest.mark.parametrize("solver", ["bcfw", "one-slack", "bundle", "n-slack"])
def test_a_start_changes_no_optimum(solver):
    X, y, groups = random_ranking(3, n_queries=30, n_rows=8)
    cold = SVMRanker(C=10.0, solver=solver, tol=1e-6).fit(X, y, qid=groups.codes)
    warm = SVMRanker(C=10.0, solver=solver, tol=1e-6).fit(
        X, y, qid=groups.codes, coef_init=cold.coef_
    )
    assert warm.result_.value == pytest.approx(cold.result_.value, rel=2e-6)
    assert warm.result_.passes <= cold.result_.passes


def test_the_ramp_descends_from_the_start_that_is_given():
    X, y, groups = random_ranking(3, n_queries=30, n_rows=8)
    cold = SVMRanker("precision@2").fit(X, y, qid=groups.codes)
    warm = SVMRanker("precision@2", warm_start=True)
    warm.fit(X, y, qid=groups.codes, coef_init=cold.coef_)
    assert warm.result_.start is None
    assert warm.objective_trace_[0] == pytest.approx(cold.result_.value)
    assert warm.result_.value <= cold.result_.value + 1e-9
    assert warm.fit(X, y, qid=groups.codes).objective_trace_[0] == pytest.approx(
        warm.objective_trace_[-1], rel=0.01
    )


@pytest.mark.parametrize("ranker", [SVMRanker(), AdditiveSVMRanker(C=1.0), LatentSVMRanker()])
def test_a_warm_start_of_other_columns_is_told(ranker):
    X, y, groups = random_ranking(3, n_queries=20, n_rows=8)
    ranker.set_params(warm_start=True).fit(X, y, qid=groups.codes)
    with pytest.raises(DataError, match=r"warm_start: the last fit has \d+ weights"):
        ranker.fit(X[:, :2], y, qid=groups.codes)


@pytest.mark.parametrize("measure", ["AP, RR", "foo"])
@pytest.mark.parametrize("ranker", [SVMRanker(C=1.0), AdditiveSVMRanker()])
def test_a_measure_that_is_none_is_told(ranker, measure):
    X, y, qid = judged(n_queries=8)
    ranker = clone(ranker).set_params(measure=measure)
    with pytest.raises(DataError, match="measure"):
        ranker.fit(X, y, qid=qid, eval_set=(X, y), eval_qid=qid)


@pytest.mark.parametrize(
    "start", [[1.0], [np.nan] * 3, [1e200] * 3, [1j] * 3, "abc", [[1.0], [1.0, 2.0], [1.0]]]
)
def test_a_start_of_another_shape_is_refused(start):
    X, y, groups = random_ranking(3)
    with pytest.raises(DataError, match="coef_init: expected 3 numbers, one for each weight"):
        SVMRanker().fit(X, y, qid=groups.codes, coef_init=start)
