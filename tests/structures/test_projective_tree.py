from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.structures.projective_tree import ProjectiveTree
from didyma.structures.tree import Tree
from tests.structures.test_heads import ROOTS, all_trees, expected_sums, totals

Floats = NDArray[np.float64]


def test_enumeration() -> None:
    for single_root, counts in ((False, [1, 3, 12, 55]), (True, [1, 2, 7, 30])):
        assert [len(all_trees(n, single_root, True)) for n in (1, 2, 3, 4)] == counts


@ROOTS
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_all_trees(n: int, single_root: bool) -> None:
    tree, every = ProjectiveTree(single_root), all_trees(n, single_root, True)
    rng = np.random.default_rng(n)
    for kind in range(40):
        scores = rng.normal(size=(n + 1, n + 1)) * (1000.0 if kind % 8 == 7 else 1.0)
        if kind % 2:
            scores = np.round(scores)
        if kind % 4 > 1:
            scores[rng.random(scores.shape) < 0.35] = -np.inf
        best = totals(scores, every).max()
        if best == -np.inf:
            for query in (tree.predict, tree.marginals):
                with pytest.raises(DataError, match="every output"):
                    query(scores)
            continue
        heads = tree.predict(scores)
        assert heads[0] == -1
        assert (heads[1:] == every).all(axis=1).any()
        assert totals(scores, heads[1:]) == pytest.approx(best, rel=1e-13, abs=1e-13)
        log_partition, expected = expected_sums(scores, every)
        np.testing.assert_allclose(tree.marginals(scores), expected, atol=1e-10)
        np.testing.assert_allclose(tree.log_partition(scores), log_partition, rtol=1e-12)


def best_by_recursion(scores: Floats, single_root: bool) -> float:
    """Over subtrees that cover neighbouring words, as projectivity is defined."""

    @cache
    def subtree(i: int, j: int, head: int) -> float:
        return forest(i, head, head) + forest(head + 1, j, head)

    @cache
    def forest(i: int, j: int, head: int) -> float:
        """Words i..j-1 as subtrees side by side, all hanging from ``head``."""
        return max(
            (single(i, k, head) + forest(k, j, head) for k in range(i + 1, j + 1)),
            default=0.0,
        )

    @cache
    def single(i: int, j: int, head: int) -> float:
        return max(subtree(i, j, word) + float(scores[word, head]) for word in range(i, j))

    n = len(scores) - 1
    return single(1, n + 1, 0) if single_root else forest(1, n + 1, 0)


@ROOTS
@pytest.mark.parametrize("n", [9, 14])
def test_large_trees(n: int, single_root: bool) -> None:
    tree, rng = ProjectiveTree(single_root), np.random.default_rng(n)
    scores = rng.normal(size=(4, n + 1, n + 1))
    outputs = tree.predict(scores)
    tree.encode(outputs, tree.lay_out(scores))  # raises unless projective
    for own, heads in zip(scores, outputs):
        best = best_by_recursion(own, single_root)
        assert totals(own, heads[1:]) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("largest", [1e3, 1e300])
def test_huge_scores(largest: float) -> None:
    scores = np.full((4, 4), -largest)
    scores[[1, 2, 3], [2, 3, 0]] = largest
    np.testing.assert_array_equal(ProjectiveTree().predict(scores), [-1, 2, 3, 0])
    np.testing.assert_allclose(ProjectiveTree().marginals(scores)[1:], (scores > 0)[1:])


def test_crossing_gold_heads_are_refused() -> None:
    heads = [[-1, 0, 1, 1, 1], [-1, 3, 4, 0, 3]]
    layout = ProjectiveTree().lay_out(np.zeros((2, 5, 5)))
    Tree().encode(heads, layout)
    with pytest.raises(DataError, match=r"instance 1, word 1: .* head 3 crosses .* 4 to word 2"):
        ProjectiveTree().encode(heads, layout)
    with pytest.raises(DataError, match="single word with head 0"):
        ProjectiveTree(True).encode([[-1, 0, 0, 0, 0]] * 2, layout)
    with pytest.raises(DataError, match="cycle, 2 → 1 → 2"):
        ProjectiveTree().encode([[-1, 2, 1, 0, 0]] * 2, layout)
