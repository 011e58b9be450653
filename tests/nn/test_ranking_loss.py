"""The hinge of a ranking measure against all rankings, finite differences and SVMRanker."""

from __future__ import annotations

import zlib
from itertools import permutations

import numpy as np
import pytest
import torch
from torch import nn

from didyma.data.groups import group_rows
from didyma.errors import DataError
from didyma.metrics import evaluate
from didyma.nn.ranking_loss import RankingLoss
from didyma.ranking.losses import StepLoss, parse_loss
from didyma.ranking.svm import SVMRanker
from tests.reference import brute_force, brute_force_thresholds, coefficients, measure_loss

# Every loss and every map; tests/laws has all combinations of them, as oracles.
HINGES = [
    *((loss, "pairwise", False) for loss in ("ap", "rr", "precision@2", "ndcg@3", "roc")),
    *(("ap", name, False) for name in ("positional", "truncated", "top@2")),
    *((loss, "positional", True) for loss in ("ap", "ndcg")),
    ("ap", "truncated", True),
]


def judged(rng, sizes, grades=2):
    """Scores, grades and sizes of queries that have at least two different grades each."""
    labels = []
    for size in sizes:
        own = rng.integers(0, grades, size)
        own[:2] = rng.permutation([0, grades - 1])
        labels.append(rng.permutation(own))
    scores = rng.choice([0.1, 1.0, 3.0]) * rng.standard_normal(sum(sizes))
    return scores, np.concatenate(labels), np.asarray(sizes)


def latent_brute_force(feature_map, name, labels, scores, v, k):
    """Against the best ranking with all relevant rows first."""
    gold, all_values = [], []
    for order in permutations(range(len(labels))):
        ranked = labels[list(order)]
        value = coefficients(feature_map, labels, order, v) @ scores
        all_values.append(measure_loss(name, ranked, k) + value)
        if np.all(np.diff(ranked) <= 0):
            gold.append(value)
    return max(all_values) - max(gold)


def expected(hinge, scores, labels, sizes):
    """The value of each query by enumeration."""
    found = []
    for rows in np.split(np.arange(len(labels)), np.cumsum(sizes)[:-1]):
        own, n = labels[rows], len(rows)
        if len(np.unique(own)) == 1:
            found.append(0.0)
            continue
        by_force = latent_brute_force if hinge.latent else brute_force
        v = hinge.feature_map.weights_for(n)
        k = getattr(hinge.loss, "k", None)
        found.append(by_force(hinge.feature_map.name, hinge.loss.name, own, scores[rows], v, k))
    return np.array(found)


@pytest.mark.parametrize(("loss", "feature_map", "latent"), HINGES)
def test_it_is_the_maximum_over_all_rankings(loss, feature_map, latent):
    rng = np.random.default_rng(zlib.crc32(f"{loss} {feature_map}".encode()))
    hinge = RankingLoss(loss, feature_map, latent=latent)
    for sizes in ([5], [2, 5, 4]) * 2:
        scores, labels, _ = judged(rng, sizes)
        found = hinge(torch.from_numpy(scores), torch.from_numpy(labels), group=sizes)
        best = expected(hinge, scores, labels, sizes).mean()
        assert found.item() == pytest.approx(best, abs=1e-9)


def test_grades_of_more_than_two_levels():
    rng = np.random.default_rng(1)
    hinge = RankingLoss("ndcg@3", grades="joint")
    scores, labels, sizes = judged(rng, [5, 4], grades=4)
    found = hinge(torch.from_numpy(scores), labels, group=sizes)
    assert found.item() == pytest.approx(expected(hinge, scores, labels, sizes).mean())
    thresholds = RankingLoss("ndcg@3")(torch.from_numpy(scores), labels, group=sizes)
    ends = np.cumsum(sizes)[:-1]
    best = [
        brute_force_thresholds("pairwise", own, s, np.empty(0), 3)
        for own, s in zip(np.split(labels, ends), np.split(scores, ends))
    ]
    assert thresholds.item() == pytest.approx(np.mean(best))


@pytest.mark.parametrize(("loss", "feature_map", "latent"), HINGES)
def test_the_gradient_is_that_of_finite_differences(loss, feature_map, latent):
    rng = np.random.default_rng(zlib.crc32(loss.encode()))
    hinge = RankingLoss(loss, feature_map, latent=latent)
    scores, labels, sizes = judged(rng, [6, 3, 9])
    s = torch.from_numpy(scores).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: hinge(s, labels, group=sizes), s, eps=1e-7, atol=1e-6)


def test_the_loss_bounds_the_loss_of_sorting_by_the_scores():
    rng = np.random.default_rng(3)
    hinge = RankingLoss("ap", reduction="none")
    for _ in range(20):
        scores, labels, sizes = judged(rng, [7, 12, 30])
        bound = hinge(torch.from_numpy(scores), labels, group=sizes).numpy()
        groups = group_rows(len(labels), None, sizes)
        assert np.all(bound >= 1 - evaluate(scores, labels, groups, "AP")["AP"] - 1e-12)


@pytest.mark.parametrize(
    ("loss", "feature_map"), [("precision@2", "pairwise"), ("ap", "truncated"), ("ndcg@3", "top@2")]
)
def test_the_ramp_is_the_hinge_against_the_ranking_by_score(loss, feature_map):
    rng = np.random.default_rng(zlib.crc32(f"{loss} {feature_map}".encode()))
    ramp = RankingLoss(loss, feature_map, bound="ramp", reduction="none")
    k = getattr(ramp.loss, "k", None)
    for sizes in ([5], [2, 5, 4]):
        scores, labels, _ = judged(rng, sizes)
        s = torch.from_numpy(scores).requires_grad_()
        found = ramp(s, labels, group=sizes)
        assert torch.autograd.gradcheck(
            lambda s, sizes=sizes, labels=labels: ramp(s, labels, group=sizes),
            s,
            eps=1e-7,
            atol=1e-6,
        )
        for value, rows in zip(found, np.split(np.arange(len(labels)), np.cumsum(sizes)[:-1])):
            own, n = labels[rows], len(rows)
            v = ramp.feature_map.weights_for(n)
            plain, augmented = [], []
            for order in permutations(range(n)):
                plain.append(coefficients(ramp.feature_map.name, own, order, v) @ scores[rows])
                augmented.append(measure_loss(ramp.loss.name, own[list(order)], k) + plain[-1])
            assert value.item() == pytest.approx(max(augmented) - max(plain), abs=1e-9)


def test_reductions_agree_and_skip_queries_of_one_class():
    rng = np.random.default_rng(0)
    scores, labels, _ = judged(rng, [4, 6])
    s = torch.from_numpy(np.concatenate([scores, rng.standard_normal(5)])).requires_grad_()
    y, group = torch.tensor([*labels, 1, 1, 0, 0, 0]), [4, 6, 2, 3]
    hinge = RankingLoss(reduction="none")
    each = hinge(s, y, group=group)
    by_force = expected(hinge, s.detach().numpy(), y.numpy(), group)
    np.testing.assert_allclose(each.detach(), by_force, atol=1e-9)
    assert (each[:2] > 0).all()
    assert each[2:].tolist() == [0, 0]
    weights = torch.tensor([0.5, -2.0, 7.0, 7.0], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(each @ weights, s)
    assert gradient[10:].abs().max() == 0
    for reduction, factor in (("sum", 1.0), ("mean", 0.5)):
        value = RankingLoss(reduction=reduction)(s, y, group=group)
        assert value.item() == pytest.approx(factor * each.sum().item())
        (own,) = torch.autograd.grad(value, s)
        np.testing.assert_allclose(own[:4] * 0.5 / factor, gradient[:4], atol=1e-12)
        np.testing.assert_allclose(own[4:10] * -2.0 / factor, gradient[4:10], atol=1e-12)


def test_nothing_to_rank_costs_nothing():
    for labels in ([], [1], [0, 0, 0]):
        for loss in ("ap", "ndcg"):
            s = torch.zeros(len(labels), requires_grad=True)
            value = RankingLoss(loss)(s, labels)
            value.backward()
            assert value.item() == 0
            assert s.grad.tolist() == [0.0] * len(labels)


def test_rows_of_a_query_may_stand_anywhere():
    rng = np.random.default_rng(5)
    scores, labels, sizes = judged(rng, [5, 3, 8])
    qid = np.repeat(["b", "a", "c"], sizes)
    order = rng.permutation(len(labels))
    hinge = RankingLoss("ap", "positional")
    whole = hinge(torch.from_numpy(scores), labels, qid=qid)
    mixed = hinge(torch.from_numpy(scores[order]), labels[order], qid=qid[order])
    assert mixed.item() == pytest.approx(whole.item())
    numbered = torch.from_numpy(np.repeat([7, 1, 3], sizes)[order])
    assert hinge(torch.from_numpy(scores[order]), labels[order], qid=numbered) == mixed


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_types_and_negative_grades(dtype):
    s = torch.tensor([0.25, 0.5, -1.0, 2.0], dtype=dtype, requires_grad=True)
    value = RankingLoss()(s, torch.tensor([1.0, -2.0, 0.0, 1.0], dtype=dtype))
    value.backward()
    assert value.dtype == s.grad.dtype == dtype
    same = RankingLoss()(s.detach().double(), torch.tensor([True, False, False, True]))
    assert value.item() == pytest.approx(same.item(), rel=1e-2)


def test_a_loss_of_ones_own_and_another_threshold():
    own = RankingLoss(StepLoss(positive=lambda i, j, P, N: j / (P * N)))
    known = RankingLoss("roc")
    scores, labels, sizes = judged(np.random.default_rng(2), [6, 4])
    s = torch.from_numpy(scores)
    assert own(s, labels, group=sizes) == pytest.approx(known(s, labels, group=sizes).item())
    stricter = RankingLoss(parse_loss("ap(rel=2)"))
    assert stricter(s, 2 * labels, group=sizes) == RankingLoss()(s, labels, group=sizes)


def test_a_linear_model_comes_to_the_optimum_of_svmmap():
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 9, 30)
    X = rng.standard_normal((sizes.sum(), 5))
    noisy = X @ rng.standard_normal(5) + rng.standard_normal(len(X))
    y = np.concatenate([s >= np.sort(s)[-2] for s in np.split(noisy, np.cumsum(sizes)[:-1])])
    C = 10.0
    svm = SVMRanker("ap", C, tol=1e-6).fit(X, y, group=sizes)

    model, hinge = nn.Linear(5, 1, bias=False, dtype=torch.float64), RankingLoss("ap")
    nn.init.zeros_(model.weight)
    rows, mean = torch.from_numpy(X), torch.zeros(1, 5, dtype=torch.float64)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)

    def objective():
        weight = model.weight
        return 0.5 * weight.square().sum() + C * hinge(model(rows)[:, 0], y, group=sizes)

    for step in range(600):  # rate 1/t: the objective is strongly convex with the constant 1
        optimizer.param_groups[0]["lr"] = 1.0 / (step + 1)
        optimizer.zero_grad()
        objective().backward()
        optimizer.step()
        mean += 2 * (step + 1) * model.weight.detach()
    with torch.no_grad():
        model.weight.copy_(mean / (600 * 601))
        best = objective().item()
    assert svm.result_.value <= best + 1e-6
    assert best <= 1.02 * svm.result_.value
    np.testing.assert_allclose(model.weight.detach()[0], svm.coef_, atol=0.15)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"loss": "accuracy"}, "loss"),
        ({"feature_map": "cubic"}, "feature_map"),
        ({"reduction": "max"}, "reduction"),
        ({"bound": "auto"}, "bound"),
        ({"bound": "ramp", "latent": True}, "latent"),
    ],
)
def test_wrong_settings(arguments, field):
    with pytest.raises(DataError) as caught:
        RankingLoss(**arguments)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.zeros(2, 3), [0, 1]), "scores: .*shape"),
        ((torch.tensor([0.0, torch.nan]), [0, 1]), "scores: .*NaN"),
        ((torch.zeros(3), [0, 1]), "relevance: expected 3 grades"),
        ((torch.zeros(2), [0, 1], ["a"]), "qid: 1 query ids for 2 rows"),
        ((torch.zeros(2), [0, 1], None, [3]), "group: sizes add up to 3"),
    ],
)
def test_wrong_input(arguments, message):
    with pytest.raises(DataError, match=message):
        RankingLoss()(*arguments)


def test_latent_rankings_need_a_positional_map():
    with pytest.raises(DataError, match="pairwise map has nothing latent"):
        RankingLoss(latent=True)(torch.zeros(2), [0, 1])
