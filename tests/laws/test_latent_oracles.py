"""Latent rankings against the enumeration of all rankings: inference, completion, cuts."""

from __future__ import annotations

import zlib
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.data.groups import Groups
from didyma.ranking.feature_maps import Positional, TopMean, Truncated
from didyma.ranking.latent_problem import LatentRankingProblem
from didyma.ranking.losses import (
    NDCG,
    AveragePrecision,
    PrecisionAt,
    ReciprocalRank,
    RocArea,
    StepLoss,
)
from tests.reference import coefficients, measure_loss

LOSSES = [AveragePrecision(), ReciprocalRank(), PrecisionAt(k=2), NDCG(k=3), RocArea()]
MAPS = [Positional(), Positional("discount"), Positional((1.0, 0.2, -0.5, -2.0, -2.0)), Truncated()]
MAPS.append(TopMean(2))


def single(labels, loss, feature_map, **options):
    """One query whose weights are its scores: the directions of its cuts are coefficients."""
    n = len(labels)
    groups = Groups.from_sizes([n], n)
    return LatentRankingProblem(
        np.eye(n), labels.astype(float), groups, loss, feature_map, **options
    )


def rankings(labels, loss, feature_map):
    """(coefficients, loss, whether perfect) of every ranking."""
    v = feature_map.weights_for(len(labels))
    for order in permutations(range(len(labels))):
        ranked = labels[list(order)]
        value = measure_loss(loss.name, ranked, getattr(loss, "k", None))
        perfect = bool(np.all(np.diff(ranked) <= 0))
        yield coefficients(feature_map.name, labels, order, v), value, perfect


def instance(rng, least=2, most=6):
    n = int(rng.integers(least, most))
    labels = rng.permutation(np.arange(n) < rng.integers(1, n)).astype(int)
    scores = rng.choice([0.0, 0.01, 0.3, 1.0, 3.0]) * rng.standard_normal(n)
    return labels, np.round(scores) if rng.random() < 0.3 else scores


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("feature_map", MAPS, ids=str)
def test_exact_inference_and_completion_equal_enumeration(loss, feature_map):
    rng = np.random.default_rng(zlib.crc32(f"{loss} {feature_map}".encode()))
    for _ in range(6):
        labels, scores = instance(rng)
        scale = float(rng.choice([0.5, 1.0, 20.0]))
        problem = single(labels, loss, feature_map, online=True, loss_scale=scale)
        cut = problem.cut(scores, 0)
        every = list(rankings(labels, loss, feature_map))
        best = max(scale * value + c @ scores for c, value, _ in every)
        gold = max(c @ scores for c, _, perfect in every if perfect)
        assert scale * cut.loss + cut.direction @ scores == pytest.approx(best - gold, abs=1e-10)
        # It is the difference of two rankings that exist, the second one of them perfect.
        assert any(
            abs(value - cut.loss) < 1e-9 and np.allclose(c - other, cut.direction)
            for c, value, _ in every
            for other, _, perfect in every
            if perfect
        )


def test_a_loss_of_your_own_counts_from_a_perfect_ranking():
    """Neither step is zero along a perfect ranking, whose loss is zero nevertheless."""

    def positive(i, j, P, N):
        return 0.25 * (i + 1) + 0.1 * j

    def negative(i, j, P, N):
        return 0.3 * (j + 1) + 0.2 * (P - i)

    def total(ranked):
        P, N = int(ranked.sum()), int((1 - ranked).sum())
        above = np.cumsum(ranked) - ranked
        states = zip(above, np.arange(P + N) - above, ranked)
        return sum((positive if y else negative)(i, j, P, N) for i, j, y in states)

    rng = np.random.default_rng(9)
    loss = StepLoss(positive=positive, negative=negative)
    v = Positional().weights_for(5)
    for n_relevant in (1, 2, 3, 4):
        labels = rng.permutation(np.arange(5) < n_relevant).astype(int)
        for scores in (0.3 * rng.standard_normal(5), 100.0 * labels + np.arange(5.0)):
            cut = single(labels, loss, Positional(), online=True).cut(scores, 0)
            ideal = total(np.sort(labels)[::-1])
            every = [(labels[list(order)], order) for order in permutations(range(5))]
            gold = max(
                coefficients("positional", labels, order, v) @ scores
                for ranked, order in every
                if np.all(np.diff(ranked) <= 0)
            )
            best = max(
                total(ranked) - ideal + coefficients("positional", labels, order, v) @ scores
                for ranked, order in every
            )
            assert cut.at(scores) == pytest.approx(best - gold, abs=1e-10)
        assert cut.loss == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("feature_map", MAPS, ids=str)
def test_a_completion_stays_until_the_next(feature_map):
    rng = np.random.default_rng(3)
    loss = AveragePrecision()
    for _ in range(15):
        labels, scores = instance(rng)
        other = rng.standard_normal(len(labels))
        problem = single(labels, loss, feature_map)
        gold = problem.complete(other)
        every = list(rankings(labels, loss, feature_map))
        best = max(c @ other for c, _, perfect in every if perfect)
        assert gold @ other == pytest.approx(best, abs=1e-12)
        assert any(perfect and np.allclose(c, gold) for c, _, perfect in every)
        cut = problem.cut(scores, 0)
        expected = max(value + c @ scores for c, value, _ in every) - gold @ scores
        assert cut.at(scores) == pytest.approx(expected, abs=1e-10)
        assert problem.risks(scores)[0] == pytest.approx(expected, abs=1e-10)


def test_the_published_mismatch():
    """Inference over all ranks, of which the features count the first P only."""
    rng = np.random.default_rng(4)
    loss, differs = AveragePrecision(), 0
    for _ in range(30):
        labels, scores = instance(rng, 4)
        problem = single(labels, loss, Truncated(), all_positions=True)
        gold = problem.complete(scores)
        cut = problem.cut(scores, 0)
        pairs = zip(rankings(labels, loss, Positional()), rankings(labels, loss, Truncated()))
        every = [(value + c @ scores, short, value) for (c, value, _), (short, _, _) in pairs]
        best = max(value for value, _, _ in every)
        assert any(
            best - value < 1e-9
            and abs(own - cut.loss) < 1e-9
            and np.allclose(short, cut.direction + gold)
            for value, short, own in every
        )
        consistent = single(labels, loss, Truncated())
        consistent.complete(scores)
        assert cut.at(scores) <= consistent.cut(scores, 0).at(scores) + 1e-10
        differs += cut.at(scores) < consistent.cut(scores, 0).at(scores) - 1e-6
    assert differs > 0


def greedy(labels, scores, v, C):
    """Equations 6 and 7 of Haponchyk & Moschitti, item by item; returns the order, top first."""
    P = int(labels.sum())
    positives = sorted(np.flatnonzero(labels == 1), key=lambda r: scores[r])
    negatives = sorted(np.flatnonzero(labels == 0), key=lambda r: scores[r])
    order, share = [], 0.0
    for rank in range(len(labels), 0, -1):
        take_positive = bool(positives)
        if positives and negatives:
            value = v[rank - 1] * scores[positives[0]]
            take_positive = value <= v[rank - 1] * scores[negatives[0]] + C * share
        if take_positive:
            share += 1.0 / (P * rank)
        order.append((positives if take_positive else negatives).pop(0))
    return order[::-1]


@pytest.mark.parametrize("feature_map", [Positional(), Truncated()], ids=str)
def test_greedy_inference_is_the_papers(feature_map):
    rng = np.random.default_rng(5)
    loss, worse = AveragePrecision(), 0
    for _ in range(60):
        labels, scores = instance(rng, 2, 12)
        C = float(rng.choice([0.3, 1.0, 10.0]))
        options = {"online": True, "loss_scale": C}
        cut = single(labels, loss, feature_map, inference="greedy", **options).cut(scores, 0)
        v = feature_map.weights_for(len(labels))
        seen = (
            np.where(np.arange(len(v)) < labels.sum(), v, 0)
            if feature_map.name == "truncated"
            else v
        )
        order = greedy(labels, scores, seen, C)
        assert cut.loss == pytest.approx(measure_loss("ap", labels[order]), abs=1e-12)
        gold = sorted(range(len(labels)), key=lambda r: (-labels[r], -scores[r]))
        value = [coefficients(feature_map.name, labels, o, v) @ scores for o in (order, gold)]
        assert cut.direction @ scores == pytest.approx(value[0] - value[1], abs=1e-12)
        exact = single(labels, loss, feature_map, **options).cut(scores, 0)
        found, best = (C * each.loss + each.direction @ scores for each in (cut, exact))
        assert found <= best + 1e-10
        worse += found < best - 1e-6
    assert worse > 10


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_sorting_and_its_pessimism(rows):
    labels = np.array([int(label) for label, _ in rows])
    labels[:2] = [0, 1]
    scores = np.array([float(score) for _, score in rows])
    cut = single(labels, AveragePrecision(), Positional(), inference="sort", online=True).cut(
        scores, 0
    )
    order = sorted(range(len(labels)), key=lambda r: (-scores[r], labels[r]))
    assert cut.loss == pytest.approx(measure_loss("ap", labels[order]), abs=1e-12)
    assert cut.direction @ scores >= -1e-12


@pytest.mark.parametrize("inference", ["exact", "greedy", "sort"])
def test_zero_weights_get_the_worst_ranking(inference):
    labels = np.array([1, 0, 1, 0, 0])
    problem = single(labels, AveragePrecision(), Positional(), inference=inference, online=True)
    expected = measure_loss("ap", np.array([0, 0, 0, 1, 1]))
    assert problem.cut(np.zeros(5), 0).loss == pytest.approx(expected)


def test_greedy_inference_with_one_positive_is_sorting():
    rng = np.random.default_rng(6)
    for _ in range(20):
        labels = np.zeros(8, dtype=int)
        labels[rng.integers(8)] = 1
        scores = rng.standard_normal(8)
        found = [
            single(
                labels, AveragePrecision(), Positional(), inference=how, online=True, loss_scale=9
            )
            for how in ("greedy", "sort")
        ]
        first, second = (problem.cut(scores, 0) for problem in found)
        np.testing.assert_array_equal(first.direction, second.direction)
