"""Structures that are plans: bad input, relations between them, lengths, plans that are kept."""

from __future__ import annotations

import re

import numpy as np
import pytest

import didyma
from didyma import DataError
from didyma.structures import (
    Chain,
    Constituency,
    HigherOrderChain,
    Knapsack,
    MonotoneAlignment,
    Plan,
    ProjectiveTree,
    Recurrence,
    Segmentation,
    ShortestPath,
    TopK,
)
from didyma.structures import hypergraph as hypergraphs


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Knapsack([1.5], 2), "weights: expected whole numbers"),
        (lambda: Knapsack([1, -1], 2), "weights: expected weights from 0 up, found -1"),
        (lambda: Knapsack([1], -1), "capacity: expected a whole number from 0 up"),
        (
            lambda: Knapsack([1, 2], 2).predict(np.zeros(3)),
            "one for each item",
        ),
        (lambda: ShortestPath([(0, 1), (1, 0)], 0, 1), "edges: expected a graph without cycles"),
        (lambda: ShortestPath([(0, 1), (2, 3)], 0, 3), "target: no path leads from 0 to 3"),
        (lambda: ShortestPath([(0, 1)], 0, 0), "target: expected another node"),
        (lambda: ShortestPath([(0, 1)], 0, 1).predict(np.zeros(2)), "scores: expected 1 scores"),
        (
            lambda: ShortestPath([(0, 1)], 0, 1).predict(np.zeros(1), [1]),
            "lengths: ShortestPath takes no lengths",
        ),
        (lambda: MonotoneAlignment("dtw"), "kind: expected one of 'pairs', 'warp', 'frames'"),
        (
            lambda: MonotoneAlignment("frames").predict(np.zeros((2, 3))),
            "scores: expected at least as many rows as columns, found 2 and 3 in instance 0",
        ),
        (
            lambda: MonotoneAlignment("warp").predict(np.zeros((2, 3)), [1]),
            "lengths: expected shape (1, 2), 2 lengths of each instance, found (1,)",
        ),
        (
            lambda: MonotoneAlignment("warp").predict(np.zeros((2, 3)), row_gaps=np.zeros(2)),
            "row_gaps: MonotoneAlignment has no such scores",
        ),
        (lambda: HigherOrderChain(0), "order: expected a whole number from 1 up"),
        (lambda: HigherOrderChain().predict(np.zeros((2, 0))), "at least one tag"),
        (lambda: Segmentation().predict(np.zeros((2, 0, 1))), "at least one length and one label"),
        (lambda: Constituency().predict(np.zeros((2, 3, 1))), "a row and a column for each word"),
        (
            lambda: Segmentation().predict(np.zeros((2, 2, 2)), transitions=np.zeros(2)),
            "transitions: expected shape (2, 2)",
        ),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(DataError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("structure", "shape", "output", "message"),
    [
        (Knapsack([2, 2], 3), (2,), [1, 1], "instance 0: this is no Knapsack"),
        (ShortestPath([(0, 1), (1, 2), (0, 2)], 0, 2), (3,), [1, 0, 1], "this is no ShortestPath"),
        (MonotoneAlignment("pairs"), (2, 2), [[0, 1], [1, 0]], "this is no MonotoneAlignment"),
        (MonotoneAlignment("warp"), (2, 2), [[1, 0], [0, 0]], "this is no MonotoneAlignment"),
        (Constituency(), (2, 2, 1), [[0, -1], [-1, 0]], "this is no Constituency"),
        (Constituency(), (2, 2, 1), [[0, 1], [-1, 0]], "expected a label from -1 to 0, found 1"),
        (Segmentation(), (3, 2, 1), [0, 1, 1], "segments of at most 2 positions, found 3"),
        (Segmentation(), (2, 2, 2), [0, 3], "the tag of its beginning plus 1, found [0, 3]"),
        (Segmentation(), (2, 2, 1), [1, 0], "the tag of its beginning plus 1, found [1, 0]"),
        (HigherOrderChain(2), (2, 2), [0, 2], "expected a tag from 0 to 1, found 2"),
    ],
)
def test_what_is_no_output_is_refused(structure, shape, output, message):
    with pytest.raises(DataError, match=re.escape(message)):
        structure.encode(np.array(output), structure.lay_out(np.zeros(shape)))


def test_order_one_is_a_sequence():
    rng = np.random.default_rng(0)
    scores, transitions = rng.standard_normal((3, 12, 4)), rng.standard_normal((4, 4))
    lengths = [12, 7, 0]
    one, other = HigherOrderChain(1), Chain()
    for method in ("predict", "marginals", "log_partition", "entropy"):
        np.testing.assert_allclose(
            getattr(one, method)(scores, lengths, transitions=transitions),
            getattr(other, method)(scores, lengths, transitions=transitions),
            atol=1e-9,
        )
    for found, expected in zip(
        one.k_best(scores, 6, lengths, transitions=transitions),
        other.k_best(scores, 6, lengths, transitions=transitions),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_unit_weights_are_a_budget():
    scores = np.random.default_rng(1).standard_normal((4, 9))
    one, other = Knapsack([1] * 9, 3), TopK(3, exactly=False)
    np.testing.assert_array_equal(one.predict(scores), other.predict(scores))
    np.testing.assert_allclose(one.marginals(scores), other.marginals(scores))
    np.testing.assert_allclose(didyma.sparsemap(scores, one), didyma.sparsemap(scores, other))


def test_a_path_through_a_grid_is_a_warping():
    """Cells entered by the steps of a path, with the first."""
    cells = np.random.default_rng(2).standard_normal((5, 6))
    grid = ShortestPath.grid(5, 6)
    entered = np.array([b for _, b in grid.edges])
    path = grid.predict(cells.ravel()[entered])
    visited = np.zeros(30, bool)
    visited[[0, *entered[path]]] = True
    np.testing.assert_array_equal(visited.reshape(5, 6), MonotoneAlignment("warp").predict(cells))
    assert len(ShortestPath.grid(5, 6, diagonal=False).edges) == len(grid.edges) - 20


@pytest.mark.parametrize("single_root", [False, True])
def test_projective_trees_have_a_plan_besides(single_root):
    """Its best tree is the kernel's, whatever the length."""
    structure = ProjectiveTree(single_root=single_root)
    scores = np.random.default_rng(3).standard_normal((4, 13, 13))
    lengths = [12, 5, 1, 0]
    best, totals = structure.k_best(scores, 2, lengths)
    np.testing.assert_array_equal(best[:, 0], structure.predict(scores, lengths))
    assert (totals[:2, 0] > totals[:2, 1]).all()


def test_a_plan_is_made_once_for_a_shape():
    class Counted(Recurrence):
        lengths_along = ((0,),)
        calls = 0

        def recurrence(self, scores):
            Counted.calls += 1
            return sum(scores)

    structure = Counted()
    for lengths in ([3, 1], [1, 3], [3, 3], [1, 1]):
        u = didyma.sparsemap(np.zeros((2, 3)), structure, lengths=lengths)
        np.testing.assert_array_equal(u.sum(axis=1), lengths)
    assert Counted.calls == 2


def test_a_warm_start_may_come_from_a_batch_with_other_lengths():
    class Runs(Recurrence):
        lengths_along = ((0,),)

        def recurrence(self, scores):
            return sum(scores)

    structure, scores = Runs(), np.random.default_rng(0).standard_normal((2, 4))
    _, first = didyma.sparsemap(scores, structure, lengths=[4, 2], return_solution=True)
    again = didyma.sparsemap(scores[1:], structure, lengths=[2], warm_start=[first[1]])
    np.testing.assert_array_equal(again, [[1, 1, 0, 0]])


def test_a_plan_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(hypergraphs, "LARGEST_GRAPH", 10)
    plan = Plan(5)
    plan.add([(0, 1)] * 9)
    with pytest.raises(DataError, match="needs more than 10 edges"):
        plan.add_all(np.zeros((2, 1), int), 1)
    with pytest.raises(DataError, match="needs more than 10 edges"):
        Plan(5).add([(0, 1)] * 11)


def test_empty_batches_and_lengths():
    for structure, shape in [
        (Segmentation(), (0, 2, 1)),
        (Constituency(), (0, 0, 1)),
        (HigherOrderChain(2), (0, 2)),
        (MonotoneAlignment("warp"), (0, 3)),
        (Knapsack([], 0), (0,)),
    ]:
        scores = np.zeros((2, *shape))
        assert didyma.sparsemap(scores, structure).shape == scores.shape
        np.testing.assert_array_equal(structure.log_partition(scores), [0.0, 0.0])
        assert len(structure.predict(scores[:0])) == 0
        assert structure.sample(scores, 3, 0).shape[:2] == (2, 3)
        _, totals = structure.k_best(scores, 2)
        np.testing.assert_array_equal(totals, [[0.0, -np.inf]] * 2)
