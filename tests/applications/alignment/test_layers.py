"""Layers of alignment against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from didyma.applications.alignment.layers import ALIGNMENTS, alignment_layer


def mixture(parts, scores):
    """SparseMAP over all outputs: their parts (k, d) and total scores; the expected parts."""
    start = np.full(len(parts), 1.0 / len(parts))
    found = minimize(
        lambda y: 0.5 * np.sum((y @ parts) ** 2) - scores @ y,
        start,
        jac=lambda y: parts @ (y @ parts) - scores,
        bounds=[(0, 1)] * len(parts),
        constraints={"type": "eq", "fun": lambda y: y.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x @ parts


def chains(scores, weights):
    """All alignments of the rows to the columns, by the paper's bins."""
    m, n = scores.shape
    parts, totals = [], []
    for tags in itertools.product(range(n), repeat=m):
        cells = np.zeros((m, n))
        cells[range(m), tags] = 1
        total = (scores * cells).sum()
        total += weights[0] if tags[0] == 0 else weights[1]
        total += weights[2] if tags[-1] == n - 1 else weights[3]
        for a, b in itertools.pairwise(tags):
            total += weights[4 + {-2: 0, -1: 1, 0: 2, 1: 3, 2: 4}[max(-2, min(2, b - a))]]
        parts.append(cells.ravel())
        totals.append(total)
    return mixture(np.array(parts), np.array(totals)).reshape(m, n)


def matchings(scores):
    m, n = scores.shape
    parts = []
    for columns in itertools.permutations(range(max(m, n)), min(m, n)):
        cells = np.zeros((m, n))
        pair = (range(m), columns) if m <= n else (columns, range(n))
        cells[pair] = 1
        parts.append(cells.ravel())
    stacked = np.array(parts)
    return mixture(stacked, stacked @ scores.ravel()).reshape(m, n)


def padded(name, seed=0):
    """Two instances of different sizes, with nonsense in the padding, and what a layer finds."""
    random = np.random.default_rng(seed)
    sizes = [(3, 2), (2, 3)]
    instances = [random.normal(size=size) for size in sizes]
    scores = torch.full((2, 3, 3), 7.0, dtype=torch.float64)
    for b, (m, n) in enumerate(sizes):
        scores[b, :m, :n] = torch.from_numpy(instances[b])
    layer = alignment_layer(name, n_jobs=1).double()
    for parameter in layer.parameters():
        parameter.data = torch.from_numpy(random.normal(size=parameter.shape))
    return layer, scores, torch.tensor(sizes), instances


def test_softmax_over_rows_and_columns():
    layer, scores, sizes, instances = padded("softmax")
    aligned = layer(scores, sizes)
    for b, one in enumerate(instances):
        m, n = one.shape
        rows = np.exp(one) / np.exp(one).sum(axis=1, keepdims=True)
        columns = np.exp(one) / np.exp(one).sum(axis=0)
        np.testing.assert_allclose(aligned.to_hypothesis[b, :m, :n], rows)
        np.testing.assert_allclose(aligned.to_premise[b, :m, :n], columns)
        assert aligned.to_hypothesis[b].sum() == pytest.approx(m)
        assert aligned.to_premise[b].sum() == pytest.approx(n)
    assert aligned.solutions == ()


@pytest.mark.parametrize("seed", range(3))
def test_two_chains_with_nine_weights_each(seed):
    layer, scores, sizes, instances = padded("sequential", seed)
    aligned = layer(scores, sizes)
    first, second = layer.weights.detach().numpy()
    for b, one in enumerate(instances):
        m, n = one.shape
        found = [t[b].detach().numpy() for t in aligned[:2]]
        np.testing.assert_allclose(found[0][:m, :n], chains(one, first), atol=1e-5)
        np.testing.assert_allclose(found[1][:m, :n], chains(one.T, second).T, atol=1e-5)
        assert found[0].sum() == pytest.approx(m)
        assert found[1].sum() == pytest.approx(n)


@pytest.mark.parametrize("seed", range(3))
def test_one_matching_serves_both_directions(seed):
    layer, scores, sizes, instances = padded("matching", seed)
    aligned = layer(scores, sizes)
    assert aligned.to_hypothesis is aligned.to_premise
    for b, one in enumerate(instances):
        m, n = one.shape
        np.testing.assert_allclose(aligned.to_premise[b, :m, :n].numpy(), matchings(one), atol=1e-5)
        assert aligned.to_premise[b].sum() == pytest.approx(2.0)


@pytest.mark.parametrize("name", ALIGNMENTS)
def test_gradients_of_alignments(name):
    layer, scores, sizes, _ = padded(name, seed=5)
    weights = tuple(layer.parameters())

    def outputs(scores, *_):
        return layer(scores, sizes)[:2]

    torch.autograd.gradcheck(outputs, (scores.requires_grad_(), *weights), atol=1e-6)
