"""Ranking problems: sums, storage, threads and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.ranking import problem as ranking
from didyma.ranking.feature_maps import Positional, Truncated
from didyma.ranking.losses import NDCG, AveragePrecision, parse_loss
from didyma.ranking.problem import RankingProblem


def example(seed=0, n_queries=7, n_features=5):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(3, 9, n_queries)
    n = int(sizes.sum())
    X = rng.standard_normal((n, n_features)) * (rng.random((n, n_features)) < 0.7)
    y = (rng.random(n) < 0.4).astype(float)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    y[starts] = 1.0
    y[starts + 1] = 0.0
    return X, y, Groups.from_sizes(sizes, n), rng.standard_normal(n_features)


def test_the_whole_is_the_sum_of_its_parts():
    X, y, groups, w = example()
    weight = np.linspace(0.5, 2.0, len(groups))
    problem = RankingProblem(X, y, groups, AveragePrecision(), query_weight=weight)
    np.testing.assert_allclose(problem.weights, weight / weight.sum())
    cuts = [problem.cut(w, i) for i in range(problem.n_examples)]
    whole = problem.cut_all(w)
    total = sum(c * cut.direction for c, cut in zip(problem.weights, cuts))
    np.testing.assert_allclose(whole.direction, total, atol=1e-12)
    assert whole.loss == pytest.approx(sum(c * cut.loss for c, cut in zip(problem.weights, cuts)))
    np.testing.assert_allclose(problem.risks(w), [cut.at(w) for cut in cuts], atol=1e-12)
    coefficients, loss = problem.respond(problem.scores(w))
    np.testing.assert_allclose(problem.gather(coefficients), whole.direction, atol=1e-12)
    assert loss == pytest.approx(whole.loss)
    assert whole.at(w) == pytest.approx(problem.weights @ problem.risks(w))


def test_a_cut_is_a_lower_bound_everywhere():
    X, y, groups, w = example(1)
    problem = RankingProblem(X, y, groups, AveragePrecision())
    cut = problem.cut_all(w)
    rng = np.random.default_rng(2)
    for _ in range(50):
        other = rng.standard_normal(len(w)) * rng.choice([0.1, 1.0, 10.0])
        assert cut.at(other) <= problem.weights @ problem.risks(other) + 1e-10
    assert np.all(problem.risks(np.zeros(len(w))) >= 0)


@pytest.mark.parametrize("storage", ["float32", "csr", "csr float32"])
@pytest.mark.parametrize("grades", [None, "thresholds"])
def test_storage_does_not_matter(storage, grades):
    X, y, groups, w = example(3) if grades is None else graded(2)
    loss, options = (NDCG(), {"grades": grades}) if grades else (AveragePrecision(), {})
    X = X.astype(np.float32).astype(np.float64)
    other = X.astype(np.float32) if "float32" in storage else X
    other = sp.csr_array(other) if "csr" in storage else other
    dense, same = (
        RankingProblem(rows, y, groups, loss, **options).cut_all(w) for rows in (X, other)
    )
    np.testing.assert_allclose(same.direction, dense.direction, atol=1e-12)
    assert same.loss == pytest.approx(dense.loss)


def test_rows_of_a_query_need_not_be_together():
    X, y, groups, w = example(4)
    rng = np.random.default_rng(0)
    shuffle = rng.permutation(len(y))
    scattered = Groups.from_qid(groups.codes[shuffle])
    before = RankingProblem(X, y, groups, AveragePrecision()).cut_all(w)
    after = RankingProblem(X[shuffle], y[shuffle], scattered, AveragePrecision()).cut_all(w)
    np.testing.assert_allclose(after.direction, before.direction, atol=1e-12)
    assert after.loss == pytest.approx(before.loss)


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(ranking, "SHARD", 8)
    X, y, groups, w = example(5, n_queries=40)
    cuts = [
        RankingProblem(X, y, groups, AveragePrecision(), n_jobs=n_jobs).cut_all(w)
        for n_jobs in (1, 2, 4)
    ]
    for cut in cuts[1:]:
        assert np.array_equal(cut.direction, cuts[0].direction)
        assert cut.loss == cuts[0].loss


def test_what_was_asked_before_does_not_change_a_bit():
    """Orders are remembered between visits; ties must not remember them."""
    X, y, groups, w = example(8)
    X = np.round(X)
    asked, fresh = (RankingProblem(X, y, groups, AveragePrecision()) for _ in range(2))
    for other in (w, -w, 3.0 * w[::-1]):
        asked.cut_all(other)
    for at in (np.zeros(len(w)), w):
        cuts = [problem.cut_all(at) for problem in (asked, fresh)]
        assert np.array_equal(cuts[0].direction, cuts[1].direction)
        assert cuts[0].loss == cuts[1].loss


def test_queries_that_constrain_nothing_are_left_out():
    X = np.eye(7)
    y = np.array([1, 1, 0, 0, 1, 0, 1.0])
    groups = Groups.from_sizes([2, 2, 2, 1], 7)
    problem = RankingProblem(X, y, groups, AveragePrecision())
    assert (problem.n_examples, problem.n_skipped) == (1, 3)
    np.testing.assert_allclose(problem.weights, [1.0])
    assert np.flatnonzero(problem.cut_all(np.zeros(7)).direction).tolist() == [4, 5]


def test_the_threshold_of_relevance():
    X, y, groups, w = example(6)
    graded = np.where(y > 0, 2.0, np.arange(len(y)) % 2)
    loss = parse_loss("ap(rel=2)")
    same = RankingProblem(X, graded, groups, loss).cut_all(w)
    assert same.loss == pytest.approx(
        RankingProblem(X, y, groups, AveragePrecision()).cut_all(w).loss
    )


def graded(seed=0, n_queries=7, n_rows=8, n_grades=4):
    X, _, groups, w = example(seed, n_queries)
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_grades, len(X)).astype(float)
    return X, y, groups, w


def test_short_queries_take_the_joint_bound_and_long_ones_thresholds():
    for n, chosen in ((6, "joint"), (400, "thresholds")):
        y = (np.arange(n) % 3).astype(float)
        groups = Groups.from_sizes([n], n)
        assert RankingProblem(np.ones((n, 1)), y, groups, NDCG()).grades == chosen
        positional = RankingProblem(np.ones((n, 1)), y, groups, NDCG(), Positional("discount"))
        assert positional.grades == "joint"
        assert RankingProblem(np.ones((n, 1)), y, groups, AveragePrecision()).grades is None
        assert RankingProblem(np.ones((n, 1)), y % 2, groups, NDCG()).grades is None


def test_no_query_is_too_long_for_grades():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 1))
    y = rng.choice(5, size=len(X), p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(float)
    groups = Groups.from_sizes([len(X)], len(X))
    for loss in (NDCG(), NDCG(k=10)):
        (risk,) = RankingProblem(X, y, groups, loss).risks(np.array([0.5]))
        assert 0.0 < risk < 10.0


def test_too_many_grades_for_one_ranking_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr(ranking, "MOST_STATES", 100)
    X, y = np.ones((40, 1)), np.arange(40) % 4.0
    groups = Groups.from_sizes([40], 40)
    with pytest.raises(DataError, match="use grades='thresholds'"):
        RankingProblem(X, y, groups, NDCG(), grades="joint")
    with pytest.raises(DataError, match="use grades='thresholds'"):
        RankingProblem(X, y, groups, NDCG(), Truncated(), grades="joint")
    with pytest.raises(DataError, match="grades: expected one of 'auto', 'joint', 'thresholds'"):
        RankingProblem(X, y, groups, NDCG(), grades="each")


def test_thresholds_are_a_sum_of_binary_problems():
    """The bound, written with the weights of queries: one binary problem for each threshold."""
    X, y, groups, w = graded(1)
    y[groups.starts[:-1]] = 3.0  # every threshold of every query has rows on both sides
    y[groups.starts[:-1] + 1] = 0.0
    for loss in (NDCG(), NDCG(k=2)):
        problem = RankingProblem(X, y, groups, loss, grades="thresholds")
        weight, own = np.zeros((3, len(groups))), np.zeros((3, len(groups)))
        for q, rows in enumerate(np.split(np.arange(len(y)), groups.starts[1:-1])):
            k = min(loss.cutoff, len(rows))
            discount = 1.0 / np.log2(2.0 + np.arange(k))
            ideal = np.sort(np.exp2(y[rows]) - 1.0)[::-1][:k] @ discount
            for t in range(3):
                own[t, q] = discount[: np.sum(y[rows] > t)].sum()
                weight[t, q] = 2.0**t * own[t, q] / ideal
        np.testing.assert_allclose(weight.sum(axis=0), 1.0)
        factor = own / (weight * own).sum(axis=0)
        direction, value = np.zeros(len(w)), 0.0
        for t in range(3):
            stretched, above = factor[t][groups.codes, None] * X, (y > t).astype(float)
            binary = RankingProblem(stretched, above, groups, loss, query_weight=weight[t])
            cut = binary.cut_all(w)
            direction += weight[t].mean() * cut.direction  # whose weights add up to 1
            value += weight[t].mean() * cut.loss
        whole = problem.cut_all(w)
        np.testing.assert_allclose(whole.direction, direction, atol=1e-12)
        assert whole.loss == pytest.approx(value)


def unaligned(array):
    """A copy that begins in the middle of a number."""
    buffer = np.zeros(array.nbytes + 1, np.uint8)
    copy = buffer[1:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    assert not copy.flags.aligned
    return copy


def test_rows_may_begin_anywhere_in_memory():
    X, y, groups, w = example(6)
    sparse = sp.csr_array(X)
    shifted = sparse.copy()
    for part in ("data", "indices", "indptr"):
        setattr(shifted, part, unaligned(getattr(shifted, part)))
    for rows, same in ((X, unaligned(X)), (sparse, shifted)):
        first, second = (RankingProblem(Z, y, groups, NDCG()).cut_all(w) for Z in (rows, same))
        assert np.array_equal(first.direction, second.direction)
