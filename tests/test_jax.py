"""The face for JAX: values, gradients, batches and compiled functions."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs the extra jax, which is large")

import didyma
import didyma.jax
from didyma.structures import (
    Chain,
    Choice,
    Tree,
)


def draw(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_values_and_gradients():
    scores, transitions = draw(4, 6, 3), draw(3, 3)
    lengths = np.array([6, 2, 5, 1])
    weights = draw(4, 6, 3)

    def loss(scores, transitions):
        found = didyma.jax.sparsemap(scores, Chain(), lengths=lengths, transitions=transitions)
        return (found * weights).sum()

    expected, solution = didyma.sparsemap(
        scores, Chain(), lengths=lengths, transitions=transitions, return_solution=True
    )
    found = didyma.jax.sparsemap(scores, Chain(), lengths=lengths, transitions=transitions)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)
    d_scores, named = solution.vjp(weights)
    for run in (jax.grad(loss, (0, 1)), jax.jit(jax.grad(loss, (0, 1)))):
        by_scores, by_transitions = run(scores, transitions)
        np.testing.assert_allclose(by_scores, d_scores, atol=1e-5)
        np.testing.assert_allclose(by_transitions, named["transitions"], atol=1e-5)


def test_one_instance_and_maps_over_batches():
    scores = draw(3, 5, 5)
    layer = jax.jit(jax.vmap(lambda s: didyma.jax.sparsemap(s, Tree())))
    np.testing.assert_allclose(layer(scores), didyma.sparsemap(scores, Tree()), atol=1e-6)
    gradient = jax.vmap(jax.grad(lambda s: (didyma.jax.sparsemap(s, Tree()) ** 2).sum()))(scores)
    whole = jax.grad(lambda s: (didyma.jax.sparsemap(s, Tree()) ** 2).sum())(scores)
    np.testing.assert_allclose(gradient, whole, atol=1e-5)


def test_derivatives_of_gradients():
    """Of u·w along the gradient: the Jacobian J is constant, so ∇ ½‖J w‖² is zero, and J J w is."""
    scores, weights = np.array([1.0, 0.8, 0.0], np.float32), draw(3)

    def gradient(scores, weights):
        return jax.vjp(lambda s: didyma.jax.sparsemap(s, Choice()), scores)[1](weights)[0]

    def size(scores, weights):
        return 0.5 * (gradient(scores, weights) ** 2).sum()

    by_scores, by_weights = jax.grad(size, (0, 1))(scores, weights)
    J = np.array([[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(by_weights, J @ J @ weights, atol=1e-6)
    np.testing.assert_array_equal(by_scores, np.zeros(3))
    third = jax.grad(lambda w: (jax.grad(size, 1)(scores, w) ** 2).sum())(weights)
    np.testing.assert_allclose(third, 2 * J @ J @ J @ J @ weights, atol=1e-6)


def test_errors_are_said():
    with pytest.raises(Exception, match="no such scores"):
        didyma.jax.sparsemap(draw(3), Choice(), transitions=draw(2))
