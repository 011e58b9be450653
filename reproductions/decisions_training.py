"""Data and training for the study of decisions, shared by our losses and PyEPO's.

This file needs NumPy and torch alone, since it also runs in the environment of the peer.

Features x are standard normal, costs are polynomials of them with multiplicative noise, as PyEPO
generates them (Elmachtoub & Grigas 2022, section 6): the same seed gives the same numbers. Every
problem is small enough to list all of its outputs, so that a solver is one product and one argmin,
the same one for every library, and a regret is exact. All are minimised: what an item of a knapsack
is worth is a negative cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Criterion = Callable[[Tensor, Tensor, Tensor], Tensor]

BATCH = 32
CHECKPOINTS = 4
SAMPLES = 3  # draws of perturbed losses, as PyEPO's examples have
SOLVE_RATIO = 0.1  # instances that are solved for a pool


@dataclass(frozen=True)
class Problem:
    """Instances of one problem: features (n, p), costs (n, d), all outputs (m, d) as 0/1."""

    features: Floats
    costs: Any
    outputs: Floats

    def decide(self, costs: Any) -> NDArray[np.int64]:
        """The row of the best output for each row of costs."""
        best: NDArray[np.int64] = (np.asarray(costs, np.float64) @ self.outputs.T).argmin(axis=1)
        return best

    def regret(self, predicted: Any, rows: slice) -> float:
        """Sum of regrets over the sum of |optimal costs|, for some of the instances."""
        true = np.asarray(self.costs[rows], np.float64) @ self.outputs.T
        best = true.min(axis=1)
        chosen = np.take_along_axis(true, self.decide(predicted)[:, None], axis=1)[:, 0]
        return float((chosen - best).sum() / np.abs(best).sum())


def grid_edges(side: int) -> list[tuple[int, int]]:
    """Edges to the right and downwards, row by row: those within a row first, then those below."""
    edges = []
    for i in range(side):
        edges += [(i * side + j, i * side + j + 1) for j in range(side - 1)]
        if i < side - 1:
            edges += [(i * side + j, (i + 1) * side + j) for j in range(side)]
    return edges


def shortest_path(
    n: int, degree: int, noise: float, seed: int, p: int = 5, side: int = 5
) -> Problem:
    """Paths from one corner of a grid to the opposite one."""
    edges = {edge: k for k, edge in enumerate(grid_edges(side))}
    d = len(edges)
    random = np.random.RandomState(seed)
    effects = random.binomial(1, 0.5, (d, p))
    x = random.normal(0, 1, (n, p))
    costs = (_linear(x, effects) ** degree + 1) / 3.5**degree
    costs *= random.uniform(1 - noise, 1 + noise, (n, d))
    paths = []
    for down in combinations(range(2 * side - 2), side - 1):
        node, path = 0, np.zeros(d)
        for step in range(2 * side - 2):
            following = node + (side if step in down else 1)
            path[edges[node, following]] = 1
            node = following
        paths.append(path)
    return Problem(x, costs.astype(np.float32), np.array(paths))


def knapsack(
    n: int,
    degree: int,
    noise: float,
    seed: int,
    p: int = 5,
    items: int = 16,
    capacity: float = 20.0,
) -> Problem:
    """Sets of items that fit into two capacities; weights are the same for all instances."""
    random = np.random.RandomState(seed)
    weights = random.choice(range(300, 800), size=(2, items)) / 100
    effects = random.binomial(1, 0.5, (items, p))
    x = random.normal(0, 1, (n, p))
    worth = (_linear(x, effects) ** degree + 1) * 5 / 3.5**degree
    worth *= random.uniform(1 - noise, 1 + noise, (n, items))
    sets = [
        chosen
        for size in range(int(capacity // weights.min()) + 1)
        for chosen in combinations(range(items), size)
        if (weights[:, list(chosen)].sum(axis=1) <= capacity).all()
    ]
    outputs = np.zeros((len(sets), items))
    for row, chosen in zip(outputs, sets):
        row[list(chosen)] = 1
    return Problem(x, -np.ceil(worth).astype(np.float32), outputs)


def tour(n: int, degree: int, noise: float, seed: int, p: int = 5, nodes: int = 7) -> Problem:
    """Round trips through all nodes; a cost for each pair of them."""
    random = np.random.RandomState(seed)
    uniform, normal = (
        random.uniform(-2, 2, (nodes // 2, 2)),
        random.normal(0, 1, (nodes - nodes // 2, 2)),
    )
    places = np.concatenate([uniform, normal])
    pairs = {pair: k for k, pair in enumerate(combinations(range(nodes), 2))}
    effects = random.binomial(1, 0.5, (len(pairs), p)) * random.uniform(-2, 2, (len(pairs), p))
    x = random.normal(0, 1, (n, p))
    costs = _linear(x, effects) ** degree / 3 ** (degree - 1)
    costs *= random.uniform(1 - noise, 1 + noise, (n, len(pairs)))
    costs += [np.linalg.norm(places[a] - places[b]) for a, b in pairs]
    tours = []
    for order in permutations(range(1, nodes)):
        if order[0] < order[-1]:  # each tour in one of its two directions
            trip, output = (0, *order, 0), np.zeros(len(pairs))
            output[[pairs[min(step), max(step)] for step in pairwise(trip)]] = 1
            tours.append(output)
    return Problem(x, np.around(costs, 4).astype(np.float32), np.array(tours))


def _linear(x: Floats, effects: Any) -> Floats:
    return np.asarray(x @ effects.T / np.sqrt(x.shape[1]) + 3)


PROBLEMS: dict[str, Callable[..., Problem]] = {
    "shortest path": shortest_path,
    "knapsack": knapsack,
    "tour": tour,
}


# --- Training -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tasks:
    """Training instances of several data sets, (S, n, …), and the seeds of their runs."""

    features: Tensor
    costs: Tensor
    decisions: Tensor
    seeds: Sequence[int]

    @classmethod
    def of(cls, problems: Sequence[Problem], n: int, seeds: Sequence[int]) -> Tasks:
        """The first n instances of each problem."""
        features, costs, decisions = (
            torch.tensor(np.array(each), dtype=torch.float32)
            for each in zip(
                *(
                    (one.features[:n], one.costs[:n], one.outputs[one.decide(one.costs[:n])])
                    for one in problems
                )
            )
        )
        return cls(features, costs, decisions, seeds)


def train(tasks: Tasks, criterion: Criterion, rates: Sequence[float], steps: int) -> Floats:
    """Weights of linear predictors at each checkpoint, (checkpoints, S, rates, p + 1, d).

    All runs, one for each data set and each rate of Adam, are trained side by side: they share
    neither weights nor data, and Adam treats each weight by itself, so that this is only faster.
    A run's first weights and order of instances depend on its seed alone.
    """
    S, n, p = tasks.features.shape
    d = tasks.costs.shape[2]
    generators = [torch.Generator().manual_seed(seed) for seed in tasks.seeds]
    first = torch.stack([2 * torch.rand(p + 1, d, generator=g) - 1 for g in generators]) / p**0.5
    weights = [torch.nn.Parameter(first.clone()) for _ in rates]
    groups = [{"params": [w], "lr": rate} for w, rate in zip(weights, rates)]
    optimizer = torch.optim.Adam(groups)
    features = torch.cat([tasks.features, torch.ones(S, n, 1)], dim=2)
    of_task, found, order = torch.arange(S)[:, None], [], torch.zeros(S, 0, dtype=torch.int64)
    for step in range(1, steps + 1):
        if not order.shape[1]:
            order = torch.stack([torch.randperm(n, generator=g) for g in generators])
        chosen, order = order[:, :BATCH], order[:, BATCH:]
        x, costs, decisions = (
            each[of_task, chosen] for each in (features, tasks.costs, tasks.decisions)
        )
        predicted = torch.stack([x @ w for w in weights], dim=1).flatten(0, 1)
        targets = (each.repeat_interleave(len(rates), dim=0) for each in (costs, decisions))
        optimizer.zero_grad()
        criterion(predicted, *targets).backward()
        optimizer.step()
        if step % (steps // CHECKPOINTS) == 0:
            found.append(torch.stack([w.detach().clone() for w in weights], dim=1).numpy())
    return np.array(found[-CHECKPOINTS:], np.float64)


def jointly(loss: Criterion) -> Criterion:
    """The sum over runs of a mean over instances, where a loss treats each instance by itself."""

    def criterion(predicted: Tensor, costs: Tensor, decisions: Tensor) -> Tensor:
        flat = (each.flatten(0, 1) for each in (predicted, costs, decisions))
        return len(predicted) * loss(*flat)

    return criterion


def separately(make: Callable[[int], Criterion]) -> Criterion:
    """The same for a loss that remembers: each run has one of its own, made from its number."""
    losses: list[Criterion] = []

    def criterion(*batch: Tensor) -> Tensor:
        losses.extend(make(run) for run in range(len(losses), len(batch[0])))
        return torch.stack([loss(*one) for loss, *one in zip(losses, *batch)]).sum()

    return criterion


def of_decisions(layer: Callable[[Tensor], Tensor]) -> Criterion:
    """The loss after a layer that decides: what its decisions cost more than the best ones."""
    return lambda predicted, costs, decisions: (
        ((layer(predicted) - decisions) * costs).sum(1).mean()
    )


def squared_error() -> Criterion:
    """Two stages: predict the costs, then decide."""
    return jointly(lambda predicted, costs, decisions: (predicted - costs).square().mean())
