"""A structure that is nothing but an argmax: all that can be asked of it, held against lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import didyma
from didyma import DataError
from didyma.nn import (
    BlackboxArgmax,
    FenchelYoungLoss,
    ImplicitMLE,
    PerturbedArgmax,
    PoolLoss,
    SparseMAP,
    SPOPlusLoss,
    regret,
)


class Evens(didyma.Structure):
    """Subsets with an even number of elements, some within others."""

    def argmax(self, scores):
        best = np.flatnonzero(scores > 0)
        if len(best) % 2:
            best = np.setxor1d(best, [np.argmin(np.abs(scores))])
        return best


def evens(n):
    for size in range(0, n + 1, 2):
        yield from map(list, itertools.combinations(range(n), size))


class Walk(didyma.Structure):
    """A run of neighbours, whose first and last are additional parts."""

    def additional(self, shape):
        return {"first": shape, "last": shape}

    def argmax(self, scores, first=None, last=None):
        n = len(scores)
        zeros = np.zeros(n)
        first, last = (zeros if part is None else part for part in (first, last))
        _, i, j = max(
            (scores[i : j + 1].sum() + first[i] + last[j], i, j)
            for i in range(n)
            for j in range(i, n)
        )
        return [*range(i, j + 1), n + i, 2 * n + j]


class Fits(didyma.Structure):
    """Sets that fit: weights and capacity are the instance's own."""

    data = ("weights", "capacity")

    def argmax(self, scores, weights, capacity):
        every = [s for s in subsets(len(scores)) if np.sum(weights[s]) <= capacity]
        return max(every, key=lambda s: scores[s].sum())


def subsets(n):
    return [np.flatnonzero(s) for s in itertools.product((0, 1), repeat=n)]


def totals(outputs, scores):
    return -np.sort([-scores[list(parts)].sum() for parts in outputs])


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_the_k_best_are_those_of_a_list(scale):
    rng = np.random.default_rng(0)
    scores = scale * rng.standard_normal((5, 6))
    outputs, found = Evens().k_best(scores, 40)
    for b in range(5):
        expected = totals(evens(6), scores[b])
        assert len(expected) == 32
        np.testing.assert_allclose(found[b, :32], expected, rtol=1e-9, atol=1e-12 * scale)
        assert (found[b, 32:] == -np.inf).all()
        assert len({row.tobytes() for row in outputs[b, :32]}) == 32
        np.testing.assert_allclose(outputs[b, :32] @ scores[b], found[b, :32], atol=1e-12 * scale)


def test_the_k_best_with_additional_scores():
    rng = np.random.default_rng(1)
    scores, first, last = 0.5 * rng.standard_normal((3, 5))
    outputs, found = Walk().k_best(scores, 20, first=first, last=last)
    runs = [(i, j) for i in range(5) for j in range(i, 5)]
    expected = -np.sort([-scores[i : j + 1].sum() - first[i] - last[j] for i, j in runs])
    np.testing.assert_allclose(found[:15], expected)
    assert (found[15:] == -np.inf).all()
    assert outputs[0].tolist() == Walk().predict(scores, first=first, last=last).tolist()


@pytest.mark.parametrize("mask", [-np.inf, -1e30])
def test_masked_parts_come_last_or_never(mask):
    scores = np.array([0.3, mask, 0.2, -0.4])
    _, found = Evens().k_best(scores, 8)
    expected = totals(evens(4), scores)
    np.testing.assert_allclose(found, np.where(expected > -1e300, expected, -np.inf))


def test_it_predicts_and_says_what_is_impossible():
    scores = np.array([[0.4, 0.3, -0.2], [1.0, -1.0, -0.5]])
    assert Evens().predict(scores).tolist() == [[True, True, False], [True, False, True]]
    assert Evens().predict(scores[0]).tolist() == [True, True, False]
    with pytest.raises(DataError, match="instance 0: every output contains a part with score -inf"):
        Walk().predict(np.full(3, -np.inf))


def test_samples_follow_noise_and_the_seed():
    class OneOf(didyma.Structure):
        def argmax(self, scores):
            return [int(np.argmax(scores))]

    scores = np.log([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    drawn = OneOf().sample(scores, 4000, random_state=0)
    assert drawn.shape == (2, 4000, 3)
    np.testing.assert_allclose(drawn.mean(axis=1), np.exp(scores), atol=0.03)  # 4 deviations
    assert np.array_equal(drawn, OneOf().sample(scores, 4000, random_state=0))
    assert not np.array_equal(drawn, OneOf().sample(scores, 4000, random_state=1))
    assert OneOf().sample(scores[0], 0, random_state=0).shape == (0, 3)


WEIGHTS = [np.array([1, 2, 3, 4]), np.array([4, 3, 2, 1]), np.array([2, 2, 2, 2])]
CAPACITIES = [3, 5, 4]


def alone(scores, ask):
    return np.array(
        [
            ask(one, weights=weights, capacity=capacity)
            for one, weights, capacity in zip(scores, WEIGHTS, CAPACITIES)
        ]
    )


def test_data_of_instances_reach_their_argmax():
    scores = np.random.default_rng(2).random((3, 4))
    data = {"weights": WEIGHTS, "capacity": CAPACITIES}
    structure = Fits()
    np.testing.assert_array_equal(
        structure.predict(scores, **data), alone(scores, structure.predict)
    )
    np.testing.assert_array_equal(
        didyma.sparsemap(scores, structure, **data),
        alone(scores, lambda one, **own: didyma.sparsemap(one, structure, **own)),
    )
    outputs, found = structure.k_best(scores, 3, **data)
    for b in range(3):
        fitting = [s for s in subsets(4) if WEIGHTS[b][s].sum() <= CAPACITIES[b]]
        np.testing.assert_allclose(found[b], totals(fitting, scores[b])[:3])
        assert (outputs[b] @ WEIGHTS[b] <= CAPACITIES[b]).all()
    again, solution = didyma.sparsemap(scores, structure, return_solution=True, **data)
    warm = didyma.sparsemap(scores, structure, warm_start=solution, **data)
    np.testing.assert_allclose(warm, again, atol=1e-12)
    other = {"weights": WEIGHTS[::-1], "capacity": CAPACITIES}
    with pytest.raises(DataError, match="start from the same instances"):
        didyma.sparsemap(scores, structure, warm_start=solution, **other)


def test_data_reach_layers_and_losses():
    scores = torch.tensor(np.random.default_rng(3).random((3, 4)), requires_grad=True)
    data = {"weights": WEIGHTS, "capacity": CAPACITIES}
    structure = Fits()
    layer = SparseMAP(structure)
    expected = didyma.sparsemap(scores.detach().numpy(), structure, **data)
    np.testing.assert_allclose(layer(scores, **data).detach(), expected, atol=1e-12)
    assert torch.autograd.gradcheck(lambda s: layer(s, **data), scores)
    gold = structure.predict(-scores.detach().numpy(), **data)
    for regularizer in ("perceptron", "sparsemap"):
        loss = FenchelYoungLoss(structure, regularizer, reduction="none")
        whole = loss(scores, gold, **data)
        counted = loss(scores, gold, mask=[True, False, True], **data)
        np.testing.assert_allclose(counted.detach(), whole.detach() * torch.tensor([1, 0, 1]))
        one = loss(scores[1], gold[1], weights=WEIGHTS[1], capacity=CAPACITIES[1])
        assert one.item() == pytest.approx(whole[1].item())


def test_data_reach_losses_of_decisions():
    rng = np.random.default_rng(4)
    true, predicted = torch.tensor(rng.random((2, 3, 4)))
    data = {"weights": WEIGHTS, "capacity": CAPACITIES}
    structure = Fits()
    losses = SPOPlusLoss(structure, reduction="none")(predicted, true, **data)
    lost = regret(structure, predicted, true, **data)
    assert (losses >= lost - 1e-12).all()
    best, chosen = (structure.predict(s.numpy(), **data) for s in (true, predicted))
    np.testing.assert_allclose(lost, ((best * 1.0 - chosen) * true.numpy()).sum(1))
    drawn = PerturbedArgmax(structure, n_samples=4)(predicted, **data)
    weights = np.array(WEIGHTS)
    assert ((drawn.detach().numpy() * weights).sum(1) <= np.array(CAPACITIES) + 1e-9).all()
    for b in range(3):  # one instance has its data themselves
        own = {"weights": WEIGHTS[b], "capacity": CAPACITIES[b]}
        assert regret(structure, predicted[b], true[b], **own) == lost[b]


class Items:
    """Data that are neither numbers nor arrays."""

    def __init__(self, weights):
        self.weights = weights


class FitsItems(Fits):
    data = ("items", "capacity")

    def argmax(self, scores, items, capacity):
        return super().argmax(scores, items.weights, capacity)


@pytest.mark.parametrize(
    "layer",
    [
        PerturbedArgmax(FitsItems(), 1e-6, n_samples=2),
        ImplicitMLE(FitsItems(), scale=1e-6, n_samples=2),
        BlackboxArgmax(FitsItems()),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_repeat_data_of_any_kind(layer):
    scores = torch.tensor(np.random.default_rng(5).random((3, 4)), requires_grad=True)
    items = [Items(weights) for weights in WEIGHTS]
    expected = alone(scores.detach().numpy(), Fits().predict)
    parts = layer(scores, items=items, capacity=CAPACITIES)
    assert (parts.detach().numpy() == expected).all()
    parts.square().sum().backward()
    for b in range(3):
        one = layer(scores[b], items=items[b], capacity=CAPACITIES[b])
        assert (one.detach().numpy() == expected[b]).all()


def test_a_pool_solves_instances_with_their_own_data():
    true, predicted = torch.tensor(np.random.default_rng(6).random((2, 3, 4)))
    loss = PoolLoss(FitsItems(), solve_ratio=0.5, generator=torch.Generator().manual_seed(1))
    items = [Items(weights) for weights in WEIGHTS]
    loss(predicted, true, items=items, capacity=CAPACITIES)
    assert 0 < loss.n_solved < 3
    rows = {tuple(row) for row in loss.pool.tolist()}
    solved = {tuple(row) for row in alone(predicted.numpy(), Fits().predict).astype(int).tolist()}
    best = {tuple(row) for row in alone(true.numpy(), Fits().predict).astype(int).tolist()}
    assert best <= rows <= best | solved


def test_data_are_one_for_each_instance():
    scores = np.zeros((3, 4))
    with pytest.raises(DataError, match="capacity: expected one for each of 3 instances"):
        Fits().predict(scores, weights=WEIGHTS, capacity=5)
    with pytest.raises(DataError, match="weights: expected one for each of 3 instances"):
        Fits().predict(scores, weights=WEIGHTS[:2], capacity=CAPACITIES)
    with pytest.raises(DataError, match=r"graph: Fits has no such .* `data` weights, capacity"):
        Fits().predict(scores, graph=1)


def test_lengths_may_be_data():
    class Up(didyma.Structure):
        data = ("lengths",)

        def argmax(self, scores, lengths):
            return np.flatnonzero(scores[:lengths] > 0)

    scores = np.ones((2, 3))
    assert Up().predict(scores, [1, 2]).tolist() == [[True, False, False], [True, True, False]]
    assert Up().predict(scores[0], 2).tolist() == [True, True, False]
    layer = SparseMAP(Up())(torch.tensor(scores), torch.tensor([1, 2]))
    assert layer.tolist() == [[1, 0, 0], [1, 1, 0]]
    assert SparseMAP(Up())(torch.tensor(scores[0]), 2).tolist() == [1, 1, 0]
    with pytest.raises(DataError, match="name lengths in its attribute `data`"):
        Evens().predict(scores, [1, 2])


def test_booleans_are_told_about_indices():
    class Flags(didyma.Structure):
        def argmax(self, scores):
            return scores > 0

    with pytest.raises(DataError, match=r"np.flatnonzero\(output\)"):
        Flags().predict(np.ones(3))
