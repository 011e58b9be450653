"""Latent ranking problems: sums, storage, completions under ties, CCCP and the perceptron."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.learning.cccp import CCCP
from didyma.learning.perceptron import Perceptron
from didyma.ranking import problem as ranking
from didyma.ranking.feature_maps import Pairwise, Positional, TopMean, Truncated
from didyma.ranking.latent_problem import LatentRankingProblem
from didyma.ranking.losses import NDCG, AveragePrecision, PrecisionAt, ReciprocalRank


def example(seed=0, n_queries=12, n_features=4, shift=1.0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 25, n_queries)
    n = int(sizes.sum())
    X = rng.standard_normal((n, n_features))
    y = (rng.random(n) < 0.3).astype(float)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    y[starts], y[starts + 1] = 1.0, 0.0
    X[y > 0, 0] += shift
    return X, y, Groups.from_sizes(sizes, n), rng.standard_normal(n_features)


def latent(data, loss=None, feature_map=None, **options):
    X, y, groups, _ = data
    loss, feature_map = loss or AveragePrecision(), feature_map or Truncated()
    return LatentRankingProblem(X, y, groups, loss, feature_map, **options)


def test_the_whole_is_the_sum_of_its_parts():
    data = example()
    w = data[3]
    problem = latent(data, query_weight=np.linspace(0.5, 2.0, 12))
    gold = problem.begin(np.random.default_rng(1))
    cuts = [problem.cut(w, i) for i in range(problem.n_examples)]
    whole = problem.cut_all(w)
    total = sum(c * cut.direction for c, cut in zip(problem.weights, cuts))
    np.testing.assert_allclose(whole.direction, total, atol=1e-12)
    np.testing.assert_allclose(problem.risks(w), [cut.at(w) for cut in cuts], atol=1e-12)
    coefficients, loss = problem.respond(problem.scores(w))
    np.testing.assert_allclose(problem.gather(coefficients), whole.direction, atol=1e-12)
    assert loss == pytest.approx(whole.loss)
    # Another completion shifts the cut by the change of the gold features.
    completed = problem.complete(w)
    np.testing.assert_allclose(
        problem.cut_all(w).direction, whole.direction + gold - completed, atol=1e-12
    )
    assert completed @ w > gold @ w


@pytest.mark.parametrize("storage", ["float32", "csr"])
@pytest.mark.parametrize("online", [True, False])
def test_storage_does_not_matter(storage, online):
    X, y, groups, w = example(3)
    X = X.astype(np.float32).astype(np.float64)
    other = X.astype(np.float32) if storage == "float32" else sp.csr_array(X)
    first, second = (latent((rows, y, groups, w), online=online) for rows in (X, other))
    if not online:
        np.testing.assert_allclose(first.complete(w), second.complete(w), atol=1e-12)
    for i in range(first.n_examples):
        np.testing.assert_allclose(
            first.cut(w, i).direction, second.cut(w, i).direction, atol=1e-12
        )


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(ranking, "SHARD", 8)
    data = example(5, n_queries=40)
    results = []
    for n_jobs in (1, 2, 4):
        problem = latent(data, n_jobs=n_jobs)
        results.append((problem.complete(data[3]), problem.cut_all(data[3]).direction))
    for result in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(result, results[0]))


def test_equal_scores_keep_their_order():
    X = np.eye(6)
    y = np.array([1.0, 1, 1, 0, 0, 0])
    problem = latent((X, y, Groups.from_sizes([6], 6), None), feature_map=Positional())
    first = problem.complete(np.array([1.0, 3, 2, 0, 0, 1]))
    np.testing.assert_allclose(first, 1.0 / np.array([3, 1, 2, 5, 6, 4]))
    rounded = [7 + 1e-15 * np.arange(6.0), np.array([7, 7 + 1e-12, 7 - 1e-12, 0, 1e-12, 0])]
    for w in (np.zeros(6), *rounded):  # equal, but for rounding
        np.testing.assert_array_equal(problem.complete(w), first)
    # Of three, two change places and the third, equal to one of these, stays behind it.
    changed = problem.complete(np.array([5.0, 1.0, 1.0 + 1e-12, 0, 0, 0]))
    np.testing.assert_allclose(changed, 1.0 / np.array([1, 2, 3, 5, 6, 4]))


def test_what_all_scores_have_in_common_ties_none():
    y = np.array([1.0, 1, 1, 0, 0, 0])
    groups, w = Groups.from_sizes([6], 6), np.array([1.0, 3, 2, 0, 0.5, 0.25])
    problem = latent((np.eye(6), y, groups, None), feature_map=Positional())
    expected = problem.complete(w)
    problem.complete(-w)
    np.testing.assert_array_equal(problem.complete(1e9 + w), expected)


def test_first_completions_follow_the_generator():
    data = example(2)
    problem = latent(data)
    draws = [problem.begin(np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    for place, positives in zip(
        np.split(problem._places, problem._starts[1:-1]), problem._counts[:, 0]
    ):
        assert sorted(place[:positives]) == list(range(positives))
        assert sorted(place) == list(range(len(place)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("loss", "feature_map"),
    [
        (AveragePrecision(), Truncated()),
        (AveragePrecision(), Positional()),
        (PrecisionAt(k=3), TopMean(3)),
        (ReciprocalRank(), Positional("discount")),
    ],
    ids=str,
)
def test_cccp_never_increases_the_objective(loss, feature_map, seed):
    data = example(seed, shift=1.5)
    problem = latent(data, loss, feature_map)
    trace = []
    CCCP(tol=1e-5).solve(
        problem, 30.0, start=np.eye(4)[0], callback=lambda progress: trace.append(progress.value)
    )
    assert len(trace) > 1
    assert np.all(np.diff(trace) <= 1e-8 * trace[0])
    assert trace[-1] < 30.0 * problem.weights @ problem.risks(np.zeros(4))


@pytest.mark.parametrize(
    ("options", "increases"),
    [({}, False), ({"all_positions": True}, True), ({"inference": "greedy"}, True)],
    ids=["consistent", "all positions", "greedy"],
)
def test_only_exact_and_consistent_inference_keeps_the_promise(options, increases):
    """Judged by the objective itself, of which inexact inference sees a lower bound."""
    found = 0
    for seed in range(6):
        data = example(seed, shift=1.5)
        exact, seen, values = latent(data), [], []

        def judge(progress, exact=exact, seen=seen, values=values):
            exact.complete(progress.w)
            risk = exact.weights @ exact.risks(progress.w)
            values.append(0.5 * progress.w @ progress.w + 100.0 * risk)
            seen.append(progress.value)

        CCCP(tol=1e-5, from_start=True).solve(
            latent(data, **options), 100.0, start=np.eye(4)[0], callback=judge
        )
        assert np.all(np.array(seen) <= np.array(values) * (1 + 1e-9))
        found += bool(np.any(np.diff(values) > 1e-6 * values[0]))
    assert (found > 0) == increases


def perceptron(X, y, groups, epochs, seed, C):
    """The paper's algorithm in plain Python, with exact inference by all interleavings."""
    from itertools import combinations

    rng = np.random.default_rng(seed)
    order = np.arange(len(groups))
    w, total, steps = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0
    for _ in range(epochs):
        rng.shuffle(order)
        for q in order:
            rows = groups.rows[groups.starts[q] : groups.starts[q + 1]]
            x, label = X[rows], y[rows]
            s = x @ w
            positives = sorted(np.flatnonzero(label > 0), key=lambda r: -s[r])
            negatives = sorted(np.flatnonzero(label == 0), key=lambda r: -s[r])
            v = 1.0 / np.arange(1, len(rows) + 1)
            best = (-np.inf, 0.0, [])
            for places in combinations(range(len(rows)), len(positives)):
                up, down = iter(positives), iter(negatives)
                ranked = [next(up) if t in places else next(down) for t in range(len(rows))]
                loss = 1 - np.mean([(i + 1) / (t + 1) for i, t in enumerate(places)])
                best = max(best, (C * loss + v @ s[ranked], loss, ranked), key=lambda b: b[0])
            if best[1] > 1e-12:
                w = w + v @ x[positives + negatives] - v @ x[best[2]]
            total += w
            steps += 1
    return w, total / steps


def test_the_perceptron_is_the_papers():
    rng = np.random.default_rng(0)
    sizes = [5, 6, 4, 7, 5]
    n = sum(sizes)
    X = rng.standard_normal((n, 3))
    y = np.concatenate([(np.arange(size) < 2).astype(float) for size in sizes])
    groups = Groups.from_sizes(sizes, n)
    problem = latent((X, y, groups, None), feature_map=Positional(), online=True, loss_scale=5.0)
    found = Perceptron(6, random_state=4).solve(problem)
    last, mean = perceptron(X, y, groups, 6, 4, 5.0)
    np.testing.assert_allclose(found.state.w, last, atol=1e-10)
    # Ours is the mean of the weights before each step or after it, up to one step in the count.
    assert np.linalg.norm(found.w - mean) <= np.linalg.norm(last) / (6 * 5) + 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_map": Pairwise()}, "nothing latent"),
        ({"inference": "guess"}, "'exact', 'greedy', 'sort', found 'guess'"),
        ({"inference": "greedy", "loss": ReciprocalRank()}, "average precision only"),
        ({"all_positions": True, "feature_map": Positional()}, "truncated map only"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(DataError, match=message):
        latent(example(), **options)


def test_grades_are_refused_where_they_would_be_lost():
    X, y, groups, w = example()
    latent((X, y, groups, w), NDCG())
    with pytest.raises(DataError, match="two grades only"):
        latent((X, y + (np.arange(len(y)) % 2) * y, groups, w), NDCG())
