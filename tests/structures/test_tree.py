from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.structures.tree import Tree
from tests.structures.test_heads import ROOTS, all_trees, expected_sums, totals

Floats = NDArray[np.float64]


def kinds_of_scores(n: int, count: int) -> Iterator[Floats]:
    rng = np.random.default_rng(n)
    for _ in range(count):
        scores = rng.normal(size=(n + 1, n + 1))
        yield scores
        yield np.round(scores)
        yield np.where(rng.random(scores.shape) < 0.35, -np.inf, scores)
        yield np.where(rng.random(scores.shape) < 0.35, -np.inf, np.round(1000.0 * scores))
        yield np.sign(scores) * 1e300
        yield scores + 8.0 * scores.T


def largest(scores: Floats) -> float:
    return float(np.abs(np.where(np.isneginf(scores), 1.0, scores)).max()) + 1.0


@ROOTS
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_best_of_all_trees(n: int, single_root: bool) -> None:
    tree, every = Tree(single_root), all_trees(n, single_root)
    for scores in kinds_of_scores(n, 8):
        best = totals(scores, every).max()
        if best == -np.inf:
            with pytest.raises(DataError, match="every output"):
                tree.predict(scores)
            continue
        heads = tree.predict(scores)
        assert heads[0] == -1
        assert (heads[1:] == every).all(axis=1).any()
        assert totals(scores, heads[1:]) >= best - 1e-15 * n * largest(scores)


@ROOTS
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_marginals_of_all_trees(n: int, single_root: bool) -> None:
    tree, every = Tree(single_root), all_trees(n, single_root)
    for scores in kinds_of_scores(n, 4):
        values = totals(scores, every)
        if largest(scores) > 1e299:
            continue
        if values.max() == -np.inf:
            with pytest.raises(DataError, match="every output"):
                tree.marginals(scores)
            continue
        log_partition, expected = expected_sums(scores, every)
        np.testing.assert_allclose(tree.marginals(scores), expected, atol=1e-10)
        np.testing.assert_allclose(tree.log_partition(scores), log_partition, rtol=1e-12)


def contract_cycles(scores: Floats) -> list[int]:
    """Heads of nodes 1.. by the textbook's recursion; scores[m, h]."""
    n = len(scores)
    heads = [-1] + [max((h for h in range(n) if h != m), key=scores[m].item) for m in range(1, n)]
    for start in range(1, n):
        seen, node = [], start
        while node > 0 and node not in seen:
            seen.append(node)
            node = heads[node]
        if node > 0:
            cycle = seen[seen.index(node) :]
            break
    else:
        return heads
    rest = [v for v in range(n) if v not in cycle]
    smaller = np.full((len(rest) + 1, len(rest) + 1), -np.inf)
    smaller[:-1, :-1] = scores[np.ix_(rest, rest)]
    gains = scores[np.ix_(cycle, rest)] - scores[cycle, [heads[v] for v in cycle]][:, None]
    smaller[-1, :-1] = gains.max(axis=0)
    smaller[:-1, -1] = scores[np.ix_(rest, cycle)].max(axis=1)
    solved = contract_cycles(smaller)
    for i, head in enumerate(solved[1:-1], start=1):
        inner = cycle[int(np.argmax(scores[rest[i], cycle]))]
        heads[rest[i]] = inner if head == len(rest) else rest[head]
    entry = solved[-1]
    heads[cycle[int(np.argmax(gains[:, entry]))]] = rest[entry]
    return heads


@pytest.mark.parametrize("symmetric", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("n", [12, 25])
def test_best_of_large_trees(n: int, symmetric: float) -> None:
    rng = np.random.default_rng(n)
    for _ in range(3):
        scores = rng.normal(size=(n + 1, n + 1))
        scores += symmetric * scores.T
        scores[0] = 0.0
        heads = Tree().predict(scores)
        expected = np.array(contract_cycles(scores))
        assert totals(scores, heads[1:]) == pytest.approx(totals(scores, expected[1:]), abs=1e-12)
        best = -np.inf
        for root in range(1, n + 1):
            rooted = scores.copy()
            rooted[np.arange(n + 1) != root, 0] = -np.inf
            best = max(best, totals(rooted, np.array(contract_cycles(rooted))[1:]))
        heads = Tree(single_root=True).predict(scores)
        assert (heads == 0).sum() == 1
        assert totals(scores, heads[1:]) == pytest.approx(best, abs=1e-12)


@ROOTS
@pytest.mark.parametrize("deviation", [0.1, 1.0, 5.0])
def test_matrix_tree_theorem(deviation: float, single_root: bool) -> None:
    n = 25
    scores = np.random.default_rng(3).normal(scale=deviation, size=(6, n + 1, n + 1))
    weights = np.exp(scores[:, 1:])
    weights[:, np.arange(n), np.arange(1, n + 1)] = 0.0
    laplacian = -weights[:, :, 1:]
    laplacian[:, np.arange(n), np.arange(n)] = weights[:, :, single_root:].sum(axis=2)
    if single_root:
        laplacian[:, :, 0] = weights[:, :, 0]
    tree = Tree(single_root)
    expected = np.linalg.slogdet(laplacian)[1]
    np.testing.assert_allclose(tree.log_partition(scores), expected, rtol=1e-10)
    marginals = tree.marginals(scores)
    np.testing.assert_allclose(marginals[:, 1:].sum(axis=2), 1.0)
    if single_root:
        np.testing.assert_allclose(marginals[:, :, 0].sum(axis=1), 1.0)


@ROOTS
@pytest.mark.parametrize("height", [0.0, 4.0, 8.0, 12.0, 16.0, 25.0, 40.0])
def test_small_marginals_keep_their_digits(height: float, single_root: bool) -> None:
    """Whether they come from the inverse, by differences, or by elimination, without any."""
    every = all_trees(4, single_root)
    for seed in range(20):
        scores = np.random.default_rng(seed).normal(size=(5, 5))
        for word, other in ((1, 4), (2, 3)):
            scores[word, other] += height
            scores[other, word] += height
        _, expected = expected_sums(scores, every)
        np.testing.assert_allclose(Tree(single_root).marginals(scores), expected, rtol=1e-9)


@ROOTS
def test_an_instance_does_not_depend_on_those_before_it(single_root: bool) -> None:
    tree, rng = Tree(single_root), np.random.default_rng(8)
    lengths = np.array([9, 4, 0, 1, 6, 2, 8, 3])
    scores = rng.normal(size=(8, 10, 10))
    scores[[0, 4], 1, 2] = scores[[0, 4], 2, 1] = 60.0  # too much for the inverse
    layout = tree.lay_out(scores, lengths)
    p = rng.normal(size=layout.scores.shape)
    marginals = tree.marginals(scores, lengths)
    covariances, _ = tree.covariances(layout, p, np.zeros((8, 0)))
    for b, n in enumerate(lengths + 1):
        one = scores[b, :n, :n]
        np.testing.assert_array_equal(marginals[b, :n, :n], tree.marginals(one))
        direction = p[b].reshape(10, 10)[:n, :n].reshape(1, -1)
        alone, _ = tree.covariances(tree.lay_out(one), direction, np.zeros((1, 0)))
        np.testing.assert_array_equal(covariances[b].reshape(10, 10)[:n, :n], alone.reshape(n, n))


@pytest.mark.parametrize("bond", [0.0, 30.0, 700.0, 1e4, 1e6])
def test_words_bound_to_each_other(bond: float) -> None:
    scores = np.zeros((3, 3))
    scores[1, 2] = scores[2, 1] = bond
    # The Laplacian is singular in floating point; the trees are (0, 0), (0, 1), (2, 0).
    free = np.exp(-bond)
    assert Tree().log_partition(scores) == pytest.approx(bond + np.log(2.0 + free))
    assert Tree().marginals(scores)[1, 0] == pytest.approx((1 + free) / (2 + free))
    assert Tree(True).log_partition(scores) == pytest.approx(bond + np.log(2.0))
    assert Tree(True).marginals(scores)[1, 0] == pytest.approx(0.5)


def test_second_roots_at_any_price() -> None:
    """A single root is kept although each further root would gain 1e5."""
    scores = np.full((4, 4), -1e5)
    scores[:, 0] = [0.0, 1.0, 2.0, 3.0]
    assert (Tree(True).predict(scores) == 0).sum() == 1
    roots = Tree(True).marginals(scores)[1:, 0]
    np.testing.assert_allclose(roots, np.exp([1.0, 2.0, 3.0]) / np.exp([1.0, 2.0, 3.0]).sum())


@ROOTS
def test_marginals_lost_in_rounding_are_an_error(single_root: bool) -> None:
    scores = np.zeros((3, 3))
    scores[1, 2] = scores[2, 1] = 1e300  # to which log 2 adds nothing
    with pytest.raises(DataError, match=r"instance 0: .* lost in rounding"):
        Tree(single_root).marginals(scores)
    assert (Tree(single_root).predict(scores) == 0).sum() == 1


@pytest.mark.parametrize(
    ("heads", "problem"),
    [
        ([-1, 0, 4, 1, -1], "instance 1, word 2: expected a head from 0 to 3, not itself, found 4"),
        ([-1, 0, -1, 1, -1], "instance 1, word 2: expected a head from 0 to 3"),
        ([-1, 0, 2, 1, -1], "instance 1, word 2: expected a head .* not itself, found 2"),
        ([-1, 0, 3, 2, -1], "instance 1, word 3: expected a tree, .* cycle, 3 → 2 → 3"),
        ([-1, 2, 3, 1, -1], "cycle, "),
        ([-1, 0, 1, 0, -1], "instance 1, word 3: expected a single word with head 0, .* word 1"),
    ],
)
def test_gold_heads_must_be_a_tree(heads: list[int], problem: str) -> None:
    tree = Tree(single_root=True)
    layout = tree.lay_out(np.zeros((2, 5, 5)), [4, 3])
    with pytest.raises(DataError, match=problem):
        tree.encode([[-1, 0, 1, 1, 1], heads], layout)


def test_shapes_are_checked() -> None:
    tree = Tree()
    for shape in ((3, 4), (0, 0), (2, 2, 3)):
        with pytest.raises(DataError, match="for the root and for each"):
            tree.predict(np.zeros(shape))
    with pytest.raises(DataError, match="lengths"):
        tree.predict(np.zeros((2, 3, 3)), [3, 1])
    with pytest.raises(DataError, match="transitions"):
        tree.predict(np.zeros((3, 3)), transitions=np.zeros(3))
    with pytest.raises(DataError, match="outputs"):
        tree.encode(np.zeros((2, 3)), tree.lay_out(np.zeros((2, 3, 3))))
