"""Every ranking oracle against the enumeration of all rankings."""

from __future__ import annotations

import zlib
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.learning.problem import Cut
from didyma.ranking.feature_maps import Pairwise, Positional, TopMean, Truncated
from didyma.ranking.losses import (
    NDCG,
    AveragePrecision,
    PrecisionAt,
    ReciprocalRank,
    RocArea,
    StepLoss,
)
from didyma.ranking.problem import _choose_grades, hinge_oracle, oracle_of
from tests.reference import (
    best_interleaving,
    brute_force,
    brute_force_thresholds,
    coefficients,
    measure_loss,
)

LOSSES = [
    AveragePrecision(),
    ReciprocalRank(),
    PrecisionAt(k=2),
    PrecisionAt(k=10),
    NDCG(),
    NDCG(k=3),
    RocArea(),
]
MAPS = [Pairwise(), Positional(), Positional("discount"), Truncated(), TopMean(2)]


def most_violated(labels, loss, feature_map, scores, bound="joint"):
    """The oracle alone, called as the problem calls it: rows by descending label."""
    rows = np.argsort(-labels, kind="stable")
    grades, counts = np.unique(-labels, return_counts=True)
    gains = loss.gains(-grades.astype(float)) if isinstance(loss, NDCG) else np.array([1.0, 0.0])
    chosen = _choose_grades(bound, loss, feature_map, counts[None, :], gains)
    oracle = hinge_oracle(loss, feature_map, chosen, counts[None, :], gains)
    coef = np.empty(len(labels))
    value = oracle.answer(0, scores[rows], coef)
    direction = np.empty(len(labels))
    direction[rows] = coef
    return Cut(direction, value)


def check(labels, loss, feature_map, scores, name, k, gain=np.exp2):
    cut = most_violated(labels, loss, feature_map, scores)
    v = feature_map.weights_for(len(labels))
    best = brute_force(feature_map.name, name, labels, scores, v, k, gain)
    assert cut.at(scores) == pytest.approx(best, abs=1e-10)
    # The cut is the one of an actual ranking, not only of the right value.
    assert any_ranking_has(cut, labels, feature_map, name, k, v, gain)


def any_ranking_has(cut, labels, feature_map, name, k, v, gain):
    orders = list(permutations(range(len(labels))))
    gold = np.mean(
        [
            coefficients(feature_map.name, labels, order, v)
            for order in orders
            if np.all(np.diff(labels[list(order)]) <= 0)
        ],
        axis=0,
    )
    return any(
        abs(measure_loss(name, labels[list(order)], k, gain) - cut.loss) < 1e-9
        and np.allclose(coefficients(feature_map.name, labels, order, v) - gold, cut.direction)
        for order in orders
    )


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("feature_map", MAPS, ids=str)
def test_binary_oracles_equal_enumeration(loss, feature_map):
    rng = np.random.default_rng(zlib.crc32(f"{loss} {feature_map}".encode()))
    for _ in range(6):
        n = int(rng.integers(2, 6))
        labels = rng.permutation(np.arange(n) < rng.integers(1, n)).astype(int)
        scores = rng.choice([0.01, 0.3, 1.0, 3.0]) * rng.standard_normal(n)
        if rng.random() < 0.3:
            scores = np.round(scores)  # ties
        check(labels, loss, feature_map, scores, loss.name, getattr(loss, "k", None))


@pytest.mark.parametrize("loss", [NDCG(), NDCG(k=2), NDCG(k=3, gain="linear")], ids=str)
@pytest.mark.parametrize(
    "feature_map", [Pairwise(), Positional(), Positional("discount"), TopMean(2)], ids=str
)
def test_graded_oracles_equal_enumeration(loss, feature_map):
    rng = np.random.default_rng(7)
    gain = np.exp2 if loss.gain == "exponential" else np.asarray
    for labels in ([2, 1, 0, 1, 0], [0, 2, 2, 1], [3, 0, 1, 0, 2], [2, 0, 1]):
        for size in (0.05, 0.5, 3.0):
            scores = size * rng.standard_normal(len(labels))
            check(np.array(labels), loss, feature_map, scores, "ndcg", loss.k, gain)


@pytest.mark.parametrize("loss", [NDCG(), NDCG(k=2), NDCG(k=3, gain="linear")], ids=str)
@pytest.mark.parametrize(
    "feature_map", [Pairwise(), Positional(), Truncated(), TopMean(2)], ids=str
)
def test_thresholds_equal_enumeration_and_bound_the_loss(loss, feature_map):
    rng = np.random.default_rng(8)
    gain = np.exp2 if loss.gain == "exponential" else np.asarray
    for labels in ([2, 1, 0, 1, 0], [0, 2, 2, 1], [3, 0, 1, 0, 3], [4, 0, 2], [1, 3, 1]):
        for size in (0.0, 0.05, 0.5, 3.0):
            scores = size * rng.standard_normal(len(labels))
            y, v = np.array(labels), feature_map.weights_for(len(labels))
            cut = most_violated(y, loss, feature_map, scores, "thresholds")
            best = brute_force_thresholds(feature_map.name, y, scores, v, loss.k, gain)
            assert cut.at(scores) == pytest.approx(best, abs=1e-10)
            if isinstance(feature_map, Pairwise):
                sort = y[np.argsort(-scores)]
                assert cut.at(scores) >= measure_loss("ndcg", sort, loss.k, gain) - 1e-12


def test_increasing_rank_weights_are_refused():
    with pytest.raises(ValueError, match="non-increasing"):
        Positional((0.1, 0.5))


def test_negative_rank_weights_are_fine():
    rng = np.random.default_rng(3)
    feature_map = Positional((1.0, 0.2, -0.3, -2.0, -2.5))
    for _ in range(10):
        labels = rng.permutation([1, 1, 0, 0, 0])
        check(labels, AveragePrecision(), feature_map, rng.standard_normal(5), "ap", None)


@pytest.mark.parametrize("loss", [AveragePrecision(), ReciprocalRank(), NDCG(), RocArea()], ids=str)
def test_fast_oracle_equals_the_lattice(loss):
    rng = np.random.default_rng(11)
    sizes = rng.integers(1, (30, 60), (300, 2))
    fast, slow = (
        oracle_of(kind, loss, Pairwise(), False, sizes, np.array([1.0, 0.0]))
        for kind in ("independent", "lattice")
    )
    for query, n in enumerate(sizes.sum(axis=1)):
        scores = rng.choice([0.0, 0.1, 1.0, 5.0]) * rng.standard_normal(n)
        if rng.random() < 0.3:
            scores = np.round(scores)
        values = []
        for oracle in (fast, slow):
            coef = np.empty(n)
            values.append(oracle.answer(query, scores, coef) + coef @ scores)
        assert values[0] == pytest.approx(values[1], abs=1e-9)


def steps_of(loss, P, N):
    """Steps of positives and negatives by definition, already scaled."""
    k = loss.cutoff
    if isinstance(loss, StepLoss):
        return tuple(
            lambda i, j, step=step: step(i, j, P, N) if i + j < k else 0.0
            for step in (loss.positive, loss.negative)
        )
    if isinstance(loss, PrecisionAt):
        return lambda i, j: (i < k <= i + j) / k, lambda i, j: 0.0
    discount = [1.0 / np.log2(2.0 + rank) if rank < k else 0.0 for rank in range(P + N)]
    ideal = sum(discount[:P])
    return lambda i, j: (discount[i] - discount[i + j]) / ideal, lambda i, j: 0.0


def weights_of(feature_map, P, N):
    """Coefficients of positives and negatives by definition."""
    if isinstance(feature_map, Pairwise):
        return lambda i, j: (N - 2 * j) / (P * N), lambda i, j: (P - 2 * i) / (P * N)
    v = feature_map.weights_for(P + N)
    v[P if isinstance(feature_map, Truncated) else P + N :] = 0.0
    return (lambda i, j: v[i + j],) * 2


def values_by_oracle_and_lattice(loss, feature_map, P, N, scores):
    """Value of the oracle's ranking, and of the best one by a search of all (P + 1)(N + 1)."""
    oracle = oracle_of(
        "lattice", loss, feature_map, False, np.array([[P, N]]), np.array([1.0, 0.0])
    )
    coef = np.empty(P + N)
    value = oracle.answer(0, scores, coef) + coef @ scores
    cost_positive, cost_negative = steps_of(loss, P, N)
    weigh_positive, weigh_negative = weights_of(feature_map, P, N)
    sp, sn = np.sort(scores[:P])[::-1], np.sort(scores[P:])[::-1]

    def positive(i, j):
        return weigh_positive(i, j) * sp[i] + cost_positive(i, j) - cost_positive(i, 0)

    def negative(i, j):
        return weigh_negative(i, j) * sn[j] + cost_negative(i, j) - cost_negative(P, j)

    gold = sum(weigh_positive(i, 0) for i in range(P)) * sp.mean()
    gold += sum(weigh_negative(P, j) for j in range(N)) * sn.mean()
    return value, best_interleaving(sp, sn, positive, negative) - gold


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
@pytest.mark.parametrize("kind", [NDCG, PrecisionAt], ids=lambda kind: kind.name)
def test_cut_offs_equal_the_whole_lattice(kind, feature_map):
    rng = np.random.default_rng(zlib.crc32(f"{kind.name} {feature_map}".encode()))
    for _ in range(60):
        P, N = int(rng.integers(1, 9)), int(rng.integers(1, 12))
        loss = kind(k=int(rng.integers(1, P + N + 2)))
        scores = rng.choice([0.0, 0.1, 1.0, 5.0]) * rng.standard_normal(P + N)
        if rng.random() < 0.3:
            scores = np.round(scores)  # ties
        value, best = values_by_oracle_and_lattice(loss, feature_map, P, N, scores)
        assert value == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("k", [1, 3, 6, 20])
def test_a_loss_of_your_own_has_a_cut_off(k):
    """Behind rank k its steps count nothing, so the whole lattice of the same steps is the rule."""
    loss = StepLoss(
        positive=lambda i, j, P, N: j / (i + 1.0), negative=lambda i, j, P, N: 0.1 * i, k=k
    )
    rng = np.random.default_rng(k)
    for feature_map in (Pairwise(), TopMean(2)):
        for _ in range(10):
            P, N = int(rng.integers(1, 6)), int(rng.integers(1, 8))
            scores = rng.standard_normal(P + N)
            value, best = values_by_oracle_and_lattice(loss, feature_map, P, N, scores)
            assert value == pytest.approx(best, abs=1e-9)


def test_a_loss_of_your_own():
    # The rank of the last positive, as a share of the negatives that could stand above it.
    loss = StepLoss(positive=lambda i, j, P, N: j / N if i == P - 1 else 0.0)
    rng = np.random.default_rng(5)
    for _ in range(5):
        labels = rng.permutation([1, 1, 0, 0, 0])
        scores = 0.5 * rng.standard_normal(5)
        cut = most_violated(labels, loss, Pairwise(), scores)
        best = -np.inf
        gold = coefficients("pairwise", labels, tuple(np.argsort(-labels)), np.empty(0)) @ scores
        for order in permutations(range(5)):
            ranked = labels[list(order)]
            above = int((ranked[: np.flatnonzero(ranked)[-1]] == 0).sum())
            c = coefficients("pairwise", labels, order, np.empty(0))
            best = max(best, above / 3 + c @ scores - gold)
        assert cut.at(scores) == pytest.approx(best)


def test_a_loss_with_steps_of_negatives_and_an_offset():
    # Negatives in the first two ranks, counted on the negatives' side, plus a constant.
    loss = StepLoss(
        positive=lambda i, j, P, N: 0.25, negative=lambda i, j, P, N: 1.0 if i + j < 2 else 0.0
    )
    same = StepLoss(positive=lambda i, j, P, N: 1.0 if i < 2 <= i + j else 0.0)
    rng = np.random.default_rng(6)
    for _ in range(10):
        labels = rng.permutation([1, 1, 1, 0, 0, 0, 0])
        scores = rng.standard_normal(7)
        first, second = (most_violated(labels, each, Pairwise(), scores) for each in (loss, same))
        assert first.at(scores) == pytest.approx(second.at(scores))


def test_tables_of_a_loss_are_bounded():
    loss = StepLoss(positive=lambda i, j, P, N: float(j))
    with pytest.raises(DataError, match=r"1e\+08 states .* cut-off k"):
        loss.described(np.array([[10**4, 10**4]]))
    replace(loss, k=100).described(np.array([[10**4, 10**4]]))


def test_steps_of_a_loss_are_finite_numbers():
    for step in (lambda i, j, P, N: np.nan, lambda i, j, P, N: np.inf):
        with pytest.raises(DataError, match="finite"):
            StepLoss(negative=step).described(np.array([[1, 2]]))


def test_answers_do_not_depend_on_what_was_asked_before():
    rng = np.random.default_rng(12)
    sizes = rng.integers(1, 40, (20, 2))
    for loss, feature_map in ((AveragePrecision(), Pairwise()), (NDCG(k=5), Positional())):
        oracle, fresh = (
            hinge_oracle(loss, feature_map, None, sizes, np.array([1.0, 0.0])) for _ in range(2)
        )
        for query, n in enumerate(sizes.sum(axis=1)):
            scores, first, second = np.round(rng.standard_normal(n), 1), np.empty(n), np.empty(n)
            oracle.answer(query, rng.standard_normal(n), first)
            assert oracle.answer(query, scores, first) == fresh.answer(query, scores, second)
            assert np.array_equal(first, second)
