"""Every ranking oracle against the enumeration of all rankings."""

from __future__ import annotations

import zlib
from itertools import permutations

import numpy as np
import pytest

from didyma.kernels.losses import discount
from didyma.learning.problem import Cut
from didyma.tasks.feature_maps import Pairwise, Positional, TopMean, Truncated
from didyma.tasks.losses import (
    NDCG,
    AveragePrecision,
    PrecisionAt,
    ReciprocalRank,
    RocArea,
    StepLoss,
)
from didyma.tasks.ranking import _choose_grades, _kind, oracle_for
from tests.reference import (
    best_interleaving,
    brute_force,
    brute_force_thresholds,
    coefficients,
    measure_loss,
)
from tests.uncompiled import combinations

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
    n = len(labels)
    chosen = _choose_grades(bound, loss, feature_map, counts[None, :], gains)
    oracle, _ = oracle_for(loss, feature_map, _kind(loss, feature_map, chosen, n))
    coef = np.empty(n)
    v = feature_map.weights_for(n)
    order = np.argsort(-scores[rows], kind="stable").astype(np.int32)
    value = oracle(scores[rows], order, counts, v, gains, loss.cutoff, coef)
    direction = np.empty(n)
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


@pytest.mark.parametrize(("loss", "feature_map"), combinations(LOSSES, MAPS), ids=str)
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


def test_discounts_go_on_behind_their_table():
    for rank in (1, 2, 1023, 1024, 1025, 1026, 2000):
        assert discount(rank - 1) == pytest.approx(1.0 / np.log2(1.0 + rank), rel=1e-15)


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
    fast, _ = oracle_for(loss, Pairwise(), "independent")
    slow, _ = oracle_for(loss, Pairwise(), "lattice")
    nothing = np.empty(0)
    for _ in range(300):
        P, N = int(rng.integers(1, 30)), int(rng.integers(1, 60))
        scores = rng.choice([0.0, 0.1, 1.0, 5.0]) * rng.standard_normal(P + N)
        if rng.random() < 0.3:
            scores = np.round(scores)
        values = []
        for oracle in (fast, slow):
            coef = np.empty(P + N)
            order = np.argsort(-scores, kind="stable").astype(np.int32)
            counts = np.array([P, N])
            loss_value = oracle(scores, order, counts, nothing, nothing, loss.cutoff, coef)
            values.append(loss_value + coef @ scores)
        assert values[0] == pytest.approx(values[1], abs=1e-9)


def values_by_oracle_and_lattice(loss, feature_map, P, N, scores):
    """Value of the oracle's ranking, and of the best one by a search of all (P + 1)(N + 1)."""
    v, k, counts = feature_map.weights_for(P + N), loss.cutoff, np.array([P, N])
    oracle, _ = oracle_for(loss, feature_map, "lattice")
    coef = np.empty(P + N)
    order = np.argsort(-scores, kind="stable").astype(np.int32)
    value = oracle(scores, order, counts, v, np.array([1.0, 0.0]), k, coef) + coef @ scores
    steps = {"negative": lambda i, j, P, N, k: 0.0, **loss.steps, **feature_map.weighers}
    unit = steps["scale"](P, N, k)
    sp, sn = np.sort(scores[:P])[::-1], np.sort(scores[P:])[::-1]

    def positive(i, j):
        worth = unit * (steps["positive"](i, j, P, N, k) - steps["positive"](i, 0, P, N, k))
        return steps["weigh_positive"](i, j, P, N, v) * sp[i] + worth

    def negative(i, j):
        worth = unit * (steps["negative"](i, j, P, N, k) - steps["negative"](P, j, P, N, k))
        return steps["weigh_negative"](i, j, P, N, v) * sn[j] + worth

    gold = sum(steps["weigh_positive"](i, 0, P, N, v) for i in range(P)) * sp.mean()
    gold += sum(steps["weigh_negative"](P, j, P, N, v) for j in range(N)) * sn.mean()
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
