"""What holds of trees of heads, projective or not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from didyma.structures.projective_tree import ProjectiveTree
from didyma.structures.tree import Tree
from tests.laws import enumeration

Kind = type[Tree] | type[ProjectiveTree]
KINDS = pytest.mark.parametrize("kind", [Tree, ProjectiveTree])
ROOTS = pytest.mark.parametrize("single_root", [False, True])


def totals(scores: NDArray[np.float64], heads: NDArray[np.int64]) -> NDArray[np.float64]:
    """The scores of trees, given as the heads of the words."""
    return scores[np.arange(1, len(scores)), heads].sum(axis=-1)


@cache
def all_trees(n: int, single_root: bool, projective: bool = False) -> NDArray[np.int64]:
    """The heads of the words of all trees."""
    trees = enumeration.trees(n, single_root=single_root, projective=projective)
    return np.array([heads[1:] for heads in trees])


def expected_sums(
    scores: NDArray[np.float64], every: NDArray[np.int64]
) -> tuple[float, NDArray[np.float64]]:
    """Log partition and marginals by a look at every tree."""
    values = totals(scores, every)
    log_partition = np.logaddexp.reduce(values)
    marginals = np.zeros_like(scores)
    shares = np.exp(values - log_partition)
    np.add.at(marginals, (np.arange(1, len(scores)), every), shares[:, None])
    return log_partition, marginals


@KINDS
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_padding_means_nothing(kind: Kind, data: st.DataObject) -> None:
    n, single_root = data.draw(st.integers(1, 7)), data.draw(st.booleans())
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    lengths = rng.integers(1, n + 1, size=4)
    scores = np.round(rng.normal(size=(4, n + 1, n + 1)), data.draw(st.integers(0, 3)))
    tree = kind(single_root)
    outputs, marginals = tree.predict(scores, lengths), tree.marginals(scores, lengths)
    log_partition = tree.log_partition(scores, lengths)
    parts = tree.argmax(scores, lengths)
    layout = tree.lay_out(scores, lengths)
    np.testing.assert_array_equal(tree.encode(outputs, layout)[0], parts)
    for b, length in enumerate(lengths):
        own = slice(0, length + 1)
        alone = scores[b, own, own].copy()
        alone[0] = 99.0
        np.fill_diagonal(alone, 77.0)
        np.testing.assert_array_equal(outputs[b, own], tree.predict(alone))
        np.testing.assert_allclose(marginals[b, own, own], tree.marginals(alone), atol=1e-13)
        np.testing.assert_allclose(log_partition[b], tree.log_partition(alone), rtol=1e-12)
        assert (outputs[b, length + 1 :] == -1).all()
        assert (parts[b, length:] == -1).all()
        assert marginals[b].sum() == pytest.approx(length)
        np.testing.assert_array_equal(tree.decode(parts[b : b + 1], layout)[0], outputs[b])


@KINDS
@ROOTS
@pytest.mark.parametrize("deviation", [1.0, 100.0])
def test_marginals_are_the_gradient(kind: Kind, deviation: float, single_root: bool) -> None:
    tree, rng = kind(single_root), np.random.default_rng(5)
    scores = rng.normal(scale=deviation, size=(13, 13))
    direction = rng.normal(size=(13, 13))
    step = 1e-5
    slope = tree.log_partition(scores + step * direction)
    slope = (slope - tree.log_partition(scores - step * direction)) / (2 * step)
    assert (tree.marginals(scores) * direction).sum() == pytest.approx(slope, abs=1e-5)


@KINDS
@ROOTS
def test_probabilities_and_logarithms_agree(kind: Kind, single_root: bool) -> None:
    rng = np.random.default_rng(6)
    log_weights = np.log(rng.dirichlet(np.full(13, 0.3), size=(5, 13)))
    log_weights[:, 0] = -np.inf
    log_weights[:, np.arange(13), np.arange(13)] = -np.inf
    lengths = np.array([12, 12, 7, 1, 12])
    tree = kind(single_root)
    for ours, logs in zip(
        tree.sum_over(log_weights, lengths, False), tree.sum_over(log_weights, lengths, True)
    ):
        assert np.isfinite(ours).all()
        np.testing.assert_allclose(logs, ours, rtol=1e-9, atol=1e-12)
