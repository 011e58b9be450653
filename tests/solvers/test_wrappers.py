"""Memories and processes around a solver: the same answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import didyma
from didyma import DataError
from didyma.nn import SPOPlusLoss
from didyma.solvers import Cached, InProcesses, Milp
from didyma.structures import Tree


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cached(Tree()), r"structure: .* whose argmax is compiled"),
        (lambda: Cached(Milp([[1]], [1]), 0), "max_size: expected at least 1"),
    ],
)
def test_errors_name_what_is_wrong(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_processes_give_the_same_answers():
    scores = np.random.default_rng(0).random((6, 4))
    structure = Milp([[3, 2, 2, 1]], [4])
    expected = didyma.sparsemap(scores, structure)
    with InProcesses(structure, 2) as outside:
        np.testing.assert_array_equal(didyma.sparsemap(scores, outside, n_jobs=2), expected)
        own = {"upper": [[3]] * 6}
        np.testing.assert_array_equal(
            outside.predict(scores, **own), structure.predict(scores, **own)
        )
        with pytest.raises(DataError, match="expected 4 scores"):
            outside.predict(scores[:, :3])
    assert "_pool" not in vars(outside)


def test_a_cache_saves_calls_and_changes_nothing():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 9, (2, 8))
    structure = Milp(weights, weights.sum(axis=1) // 2)
    scores = rng.random((3, 8))
    counted = Cached(structure, max_size=1)  # counts, and remembers next to nothing
    cached = Cached(structure)
    plain = []
    for step in range(6):
        moved = scores + 0.01 * step * rng.standard_normal(scores.shape)
        expected, solution = didyma.sparsemap(moved, structure, return_solution=True, n_jobs=1)
        plain.append(solution.n_iter.sum())
        ours, certified = didyma.sparsemap(moved, cached, return_solution=True, n_jobs=1)
        np.testing.assert_allclose(ours, expected, atol=1e-6)
        assert certified.gap.max() < 1e-8
        np.testing.assert_allclose(didyma.sparsemap(moved, counted, n_jobs=1), expected, atol=1e-6)
    assert cached.n_solved < 0.7 * sum(plain)
    assert cached.n_solved == round((1 - cached.hit_rate) * cached.n_asked)
    solved = cached.n_solved
    for _ in range(2):
        np.testing.assert_array_equal(cached.predict(scores), structure.predict(scores))
    assert cached.n_solved <= solved + 3
    masked = np.where(scores == scores.max(axis=1, keepdims=True), -np.inf, scores)
    np.testing.assert_allclose(
        didyma.sparsemap(masked, cached), didyma.sparsemap(masked, structure), atol=1e-6
    )


def test_a_cache_solves_true_scores_once():
    rng = np.random.default_rng(0)
    cached = Cached(Milp([[3, 2, 2, 1]], [4]))
    true = torch.tensor(rng.random((5, 4)))
    loss = SPOPlusLoss(cached)
    for _ in range(4):
        loss(torch.tensor(rng.random((5, 4))), true)
    assert (cached.n_asked, cached.n_solved) == (40, 25)


def test_a_cache_tells_instances_with_other_data_apart():
    rng = np.random.default_rng(3)
    scores = rng.random((4, 4))
    structure = Milp([[3, 2, 2, 1]], [4])
    cached = Cached(structure)
    data = {"upper": [[1], [3], [5], [8]]}
    for _ in range(3):
        np.testing.assert_allclose(
            didyma.sparsemap(scores, cached, **data),
            didyma.sparsemap(scores, structure, **data),
            atol=1e-6,
        )
        scores = scores + 0.01
