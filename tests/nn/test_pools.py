"""Losses over pools: their definitions, and which outputs a pool has."""

import pytest
import torch

from didyma import DataError
from didyma.nn import PoolLoss
from didyma.structures import Choice
from tests.nn.decision_cases import CASES, best, draw


def reference(kind, theta, true, gold, pool, margin=0.0, t=1.0):
    values, worth = ([(s * a).sum() for a in pool] for s in (theta, true))
    score = (theta * gold).sum()
    if kind == "nce":
        return sum(v - score for v in values) / len(values)
    if kind == "map":
        return max(v - score for v in values)
    if kind == "pointwise":
        return sum((v - w) ** 2 for v, w in zip(values, worth)) / len(values)
    if kind == "pairwise":
        b = max(range(len(worth)), key=lambda n: worth[n])
        hinges = [max(0, margin + v - values[b]) for n, v in enumerate(values) if n != b]
        return sum(hinges) / max(len(hinges), 1)
    target = (torch.stack(worth) / t).softmax(0)
    return -(target * (torch.stack(values) / t).log_softmax(0)).sum()


@pytest.mark.parametrize("kind", ["nce", "map", "pointwise", "pairwise", "listwise"])
@pytest.mark.parametrize("name", list(CASES))
def test_losses_are_their_definitions(name, kind):
    structure, outputs = CASES[name]
    true, predicted = draw(outputs), draw(outputs, seed=1).requires_grad_()
    options = {"margin": 0.3} if kind == "pairwise" else {"temperature": 0.7}
    loss = PoolLoss(structure, kind, reduction="none", **options)
    values = loss(predicted, true)
    _, gold = best(outputs, true)
    _, solved = best(outputs, predicted.detach())
    seen = {tuple(row.flatten().tolist()) for row in (*gold, *solved)}
    assert {tuple(row.flatten().tolist()) for row in loss.pool.double()} == seen
    pool = loss.pool.double()
    t = 0.7 if kind == "listwise" else 1.0
    for b in range(len(true)):
        expected = reference(kind, predicted[b], true[b], gold[b], pool, 0.3, t)
        torch.testing.assert_close(values[b], torch.as_tensor(expected, dtype=torch.float64))
    values.sum().backward()
    assert predicted.grad.isfinite().all()


def test_a_share_of_the_instances_is_solved():
    structure, outputs = CASES["matching"]
    loss = PoolLoss(structure, solve_ratio=0.25, generator=torch.Generator().manual_seed(0))
    for seed in range(40):
        loss(draw(outputs, 10, seed), draw(outputs, 10, seed + 100))
    assert 60 < loss.n_solved < 140
    none = PoolLoss(structure, solve_ratio=0.0)
    none(draw(outputs, 10), draw(outputs, 10, 1))
    assert none.n_solved == 0
    assert len(none.pool) == len(torch.unique(best(outputs, draw(outputs, 10, 1))[1], dim=0))


def test_pools_forget_the_oldest_and_serve_one_set():
    loss = PoolLoss(Choice(), max_size=2)
    for k in range(4):
        scores = torch.eye(4)[k : k + 1]
        loss(scores, scores)
    assert loss.pool.tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]
    with pytest.raises(DataError, match=r"expected scores of shape \(4,\) as before"):
        loss(torch.zeros(1, 3), torch.zeros(1, 3))
    with pytest.raises(DataError, match="kind: expected one of 'nce'"):
        PoolLoss(Choice(), "ranknet")
