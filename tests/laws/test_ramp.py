"""The ramp bound against the enumeration of all rankings, and what every descent on it obeys."""

from __future__ import annotations

import zlib
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.data.groups import Groups
from didyma.learning import NSlack, OneSlack, ProximalBundle
from didyma.learning.bcfw import BCFW
from didyma.learning.cccp import CCCP
from didyma.learning.problem import clipped
from didyma.learning.row_bcfw import RowBCFW
from didyma.ranking.bins import Bins
from didyma.ranking.feature_maps import Pairwise, Positional, TopMean, Truncated
from didyma.ranking.losses import NDCG, AveragePrecision, PrecisionAt, StepLoss
from didyma.ranking.problem import RankingProblem
from didyma.ranking.ramp import RampProblem
from tests.learning.problems import optimum_over, random_ranking
from tests.reference import coefficients, measure_loss, written_out

OWN = StepLoss(positive=lambda i, j, P, N: 1.0 if i == 0 and j > 0 else 0.0)  # 1 − success@1
CASES = [
    (PrecisionAt(k=2), Pairwise()),
    (PrecisionAt(k=2), Positional("discount")),
    (PrecisionAt(k=2), Truncated()),
    (PrecisionAt(k=2), TopMean(2)),
    (NDCG(k=3), Pairwise()),
    (NDCG(k=3), TopMean(2)),
    (AveragePrecision(), Pairwise()),
    (OWN, Pairwise()),
]


def loss_of(loss, ranked):
    if loss is OWN:
        return float(ranked[0] == 0)
    return measure_loss(loss.name, ranked, getattr(loss, "k", None))


def by_enumeration(loss, feature_map, labels, scores):
    """Ramp, hinge, the losses of the rankings by score, and the mean coefficients of these."""
    n = len(labels)
    v = feature_map.weights_for(n)
    augmented, plain, losses, gold, vectors = [], [], [], [], []
    for order in permutations(range(n)):
        ranked = labels[list(order)]
        vectors.append(coefficients(feature_map.name, labels, order, v))
        losses.append(loss_of(loss, ranked))
        plain.append(vectors[-1] @ scores)
        augmented.append(losses[-1] + plain[-1])
        if np.all(np.diff(ranked) <= 0):
            gold.append(vectors[-1])
    best = np.array([np.all(np.diff(scores[list(o)]) <= 0) for o in permutations(range(n))])
    assert np.all(np.array(plain)[best] >= max(plain) - 1e-12)
    perfect = np.mean(gold, axis=0)
    predicted = np.array(vectors)[best].mean(axis=0) - perfect
    ramp, hinge = max(augmented) - max(plain), max(augmented) - perfect @ scores
    return ramp, hinge, np.array(losses)[best], predicted


def values(kind, loss, feature_map, labels, scores):
    """The bound of one query by the library, and the predicted coefficients of its rows."""
    groups = Groups.from_sizes([len(labels)], len(labels))
    problem = kind(scores[:, None], labels.astype(float), groups, loss, feature_map, n_jobs=1)
    if kind is RampProblem:
        problem.complete(np.ones(1))
    coefficient, value = problem.respond(scores)
    return value + coefficient @ scores, problem


def draw(rng, grades=2):
    n = int(rng.integers(2, 6))
    labels = rng.integers(0, grades, n)
    labels[:2] = rng.permutation([0, grades - 1])
    scores = rng.choice([0.01, 0.3, 1.0, 3.0]) * rng.standard_normal(n)
    kind = rng.random()
    if kind < 0.1:
        scores = np.zeros(n)
    elif kind < 0.4:
        scores = np.round(scores)  # ties
    return rng.permutation(labels), scores


@pytest.mark.parametrize(("loss", "feature_map"), CASES, ids=str)
def test_the_ramp_equals_enumeration(loss, feature_map):
    rng = np.random.default_rng(zlib.crc32(f"{loss.name} {feature_map}".encode()))
    graded = isinstance(loss, NDCG)
    for trial in range(12):
        labels, scores = draw(rng, 4 if graded and trial % 2 else 2)
        ramp, hinge, losses, predicted = by_enumeration(loss, feature_map, labels, scores)
        found, problem = values(RampProblem, loss, feature_map, labels, scores)
        assert found == pytest.approx(ramp, abs=1e-10)
        assert losses.max() - 1e-10 <= found <= hinge + 1e-10
        own = np.empty(len(labels))
        own[problem._rows] = problem._predicted
        assert problem.grades in (None, "joint")
        np.testing.assert_allclose(own, predicted, atol=1e-12)
        assert problem.golds()[0] == pytest.approx([predicted @ scores], abs=1e-10)


def test_thresholds_have_a_ramp_each():
    """Σ_t λ_t ramp_t: each threshold as a binary query of its own, by the same ranking."""
    rng = np.random.default_rng(5)
    loss, binary = NDCG(k=3), NDCG(k=3, gain="linear")
    for _ in range(12):
        labels, scores = draw(rng, 4)
        groups = Groups.from_sizes([len(labels)], len(labels))
        problem = RampProblem(
            *(scores[:, None], labels.astype(float), groups, loss),
            grades="thresholds",
            n_jobs=1,
        )
        problem.complete(np.ones(1))
        weighted, value = problem.respond(scores)
        found = value + weighted @ scores
        thresholds = []
        for low, high in pairwise(np.unique(labels)):
            positive = (labels >= high).astype(int)
            own = np.sum(1.0 / np.log2(2.0 + np.arange(min(3, positive.sum()))))
            thresholds.append((positive, (2.0**high - 2.0**low) * own, own))
        mean = np.average([own for *_, own in thresholds], weights=[w for _, w, _ in thresholds])
        ramps = sum(
            weight * by_enumeration(binary, Pairwise(), positive, own / mean * scores)[0]
            for positive, weight, own in thresholds
        )
        ideal = (2.0 ** np.sort(labels)[::-1][:3] - 1) @ (
            1.0 / np.log2(2.0 + np.arange(min(3, len(labels))))
        )
        assert found == pytest.approx(ramps / ideal, abs=1e-10)
        ranked = labels[np.argsort(-scores, kind="stable")]
        assert measure_loss("ndcg", ranked, 3) <= found + 1e-10


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    case=st.sampled_from(CASES[:2] + CASES[4:5]),
    size=st.sampled_from([0.0, 0.01, 1.0, 100.0]),
)
def test_the_ramp_lies_between_the_loss_and_the_hinge(seed, case, size):
    rng = np.random.default_rng(seed)
    loss, feature_map = case
    n = int(rng.integers(2, 40))
    labels = (rng.random(n) < 0.3).astype(int)
    labels[:2] = [0, 1]
    scores = size * rng.standard_normal(n)
    ramp, _ = values(RampProblem, loss, feature_map, labels, scores)
    hinge, _ = values(RankingProblem, loss, feature_map, labels, scores)
    predicted = loss_of(loss, labels[np.argsort(-scores, kind="stable")])
    assert predicted - 1e-9 <= ramp <= hinge + 1e-9


INNER = {
    "bcfw": BCFW(),
    "one-slack": OneSlack(),
    "n-slack": NSlack(),
    "bundle": ProximalBundle(),
    "row-bcfw": RowBCFW(),
}


def stored_for(inner, X):
    """X as a solver takes it, which may be binned, and the matrix that this stands for."""
    if not isinstance(inner, RowBCFW):
        return X, X
    binned = Bins.of(X, 4).transform(X)
    return binned, written_out(binned)


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
def test_each_round_is_certified_and_none_loses(inner):
    """Against an independent solution of each round's convex problem, over all rankings."""
    loss, tol = PrecisionAt(k=1), 1e-4
    for seed, C in ((0, 3.0), (1, 30.0), (2, 30.0)):
        X, y, groups = random_ranking(seed, n_queries=6, noise=2.0)
        stored, X = stored_for(inner, X)
        start = OneSlack().solve(RankingProblem(X, y, groups, AveragePrecision()), C).w
        rounds = []
        problem = RampProblem(stored, y, groups, loss)
        solution = CCCP(tol=tol, inner=inner, from_start=True).solve(
            problem, C, start=start, callback=lambda progress, to=rounds: to.append(progress)
        )
        assert solution.result.status == "converged"
        np.testing.assert_array_equal(rounds[0].w, start)
        again = RampProblem(X, y, groups, loss)
        for before, after in pairwise(rounds):
            assert after.value <= before.value * (1 + 1e-12)
            assert after.certified
            again.complete(before.w)
            best = optimum_over(X, y, groups, C, "precision", 1, again.golds())
            assert after.dual <= best + 1e-6 * C
            assert best <= after.convex + 1e-6 * C
            again.complete(after.w)
            value = 0.5 * after.w @ after.w + C * again.risks(after.w).mean()
            assert after.value == pytest.approx(value)
        assert rounds[-1].gap <= tol * rounds[-1].value + 1e-12


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    C=st.sampled_from([0.1, 10.0, 1000.0]),
    inner=st.sampled_from([BCFW(), OneSlack(), RowBCFW()]),
    noise=st.sampled_from([0.1, 3.0]),
)
def test_descent_is_monotone_from_anywhere(seed, C, inner, noise):
    X, y, groups = random_ranking(seed, n_queries=5, noise=noise)
    stored, X = stored_for(inner, X)
    start = np.random.default_rng(seed).standard_normal(X.shape[1])
    trace = []
    CCCP(inner=inner, from_start=True).solve(
        RampProblem(stored, y, groups, PrecisionAt(k=1)),
        C,
        start=start,
        callback=lambda progress: trace.append(progress.value),
    )
    assert np.all(np.diff(trace) <= 1e-12 * np.abs(trace[:-1]))


def test_kept_planes_bound_the_next_round_and_save_passes():
    X, y, groups = random_ranking(3, n_queries=30, n_rows=8, n_features=4, noise=2.0)
    start = BCFW().solve(RankingProblem(X, y, groups, AveragePrecision()), 100.0).w
    found = {
        reuse: CCCP(inner=BCFW(), reuse=reuse).solve(
            RampProblem(X, y, groups, PrecisionAt(k=2)), 100.0, start=start
        )
        for reuse in (True, False)
    }
    assert found[True].result.passes < 0.8 * found[False].result.passes
    problem = RampProblem(X, y, groups, PrecisionAt(k=2))
    problem.complete(start)
    former = problem.golds()
    dual = BCFW().solve(problem, 100.0).state
    problem.complete(-start)
    dual.shift(former - problem.golds())
    for w in (start, -start, dual.w, np.random.default_rng(0).standard_normal(4)):
        planes = dual.b + dual.g @ w
        for i, risk in enumerate(problem.risks(w)):
            assert planes[i, : dual.size[i]].max() <= risk + 1e-9
    mean = np.einsum("ik,ikf->if", dual.alpha, dual.g)
    np.testing.assert_allclose(dual.w, -dual.scales @ mean, atol=1e-9)
    np.testing.assert_allclose(dual.gram, dual.g @ dual.g.transpose(0, 2, 1), atol=1e-12)


def test_kept_planes_of_rows_bound_the_next_round_and_lead_to_its_optimum():
    """For free and for monotone columns; what a run has returned stays as it is."""
    X, y, groups = random_ranking(3, n_queries=30, n_rows=8, n_features=4, noise=2.0)
    rng = np.random.default_rng(0)
    for signs in (None, np.array([1, 0, -1, 0], np.int8)):
        binned = Bins.of(X, 8, signs=signs).transform(X)
        Z = written_out(binned)
        problem = RampProblem(binned, y, groups, PrecisionAt(k=2))
        one, other = rng.standard_normal((2, Z.shape[1]))
        problem.complete(one)
        first = RowBCFW(tol=1e-5).solve(problem, 10.0)
        former = problem.gold_rows()
        dual = deepcopy(first.state)
        problem.complete(other)
        dual.shift(former - problem.gold_rows())
        for w in (one, other, dual.w):
            risks = problem.risks(w)
            for i, rows in enumerate(np.split(groups.rows, groups.starts[1:-1])):
                planes = dual.losses[i] + (Z[rows] @ w) @ dual.planes[rows]
                assert planes.max() <= risks[i] + 1e-9
        mean = (dual.alpha[groups.codes] * dual.planes).sum(axis=1)
        np.testing.assert_allclose(dual.v, -(10.0 / 30) * Z.T @ mean, atol=1e-9)
        np.testing.assert_allclose(dual.table, binned.tables(dual.w).ravel())
        np.testing.assert_array_equal(clipped(first.w, problem.weight_signs), first.w)
        found = [
            RowBCFW(tol=1e-5).solve(problem, 10.0, start=start)
            for start in (replace(first, state=dual), None)
        ]
        shifted, cold = (solution.result for solution in found)
        assert shifted.converged
        assert shifted.value == pytest.approx(cold.value, rel=2e-5)
        assert max(shifted.dual, cold.dual) <= min(shifted.value, cold.value)


def test_kept_planes_of_rows_save_passes():
    """Of the second round, over some problems."""
    cold, kept, C = 0.0, 0.0, 1.0
    for seed in range(5):
        X, y, groups = random_ranking(seed, n_queries=30, n_rows=8, n_features=4, noise=2.0)
        binned = Bins.of(X, 8).transform(X)
        problem = RampProblem(binned, y, groups, PrecisionAt(k=2))
        start = RowBCFW().solve(RankingProblem(binned, y, groups, AveragePrecision()), C)
        problem.complete(start.w)
        first = RowBCFW().solve(problem, C)
        former = problem.gold_rows()
        problem.complete(first.w)
        first.state.shift(former - problem.gold_rows())
        cold += RowBCFW().solve(problem, C).result.passes
        kept += RowBCFW().solve(problem, C, start=first).result.passes
    assert kept < 0.8 * cold
