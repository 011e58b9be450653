"""Conditional gradients keep a distribution at every step, whatever they drop on the way."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import didyma
from didyma.polytope.sparsemap import ConditionalGradient, ToleranceWarning
from didyma.structures import Chain, Choice


@pytest.mark.parametrize("step", ["pairwise", "away", "vanilla"])
@pytest.mark.parametrize(("structure", "shape"), [(Choice(), (6,)), (Chain(), (4, 3))], ids=str)
def test_weights_stay_a_distribution(structure, shape, step):
    """They begin at a mixture of structures of which most have to go."""
    dropped = False
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scores = rng.standard_normal(shape)
        _, start = didyma.sparsemap(
            0.1 * rng.standard_normal(shape), structure, return_solution=True
        )
        best = didyma.sparsemap(scores, structure)
        most = scores.ravel() @ best.ravel() - 0.5 * (best**2).sum()
        before, value = start.support_size[0], -np.inf
        for limit in range(1, 12):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ToleranceWarning)
                u, solution = didyma.sparsemap(
                    scores,
                    structure,
                    solver=ConditionalGradient(step),
                    max_iter=limit,
                    warm_start=start,
                    return_solution=True,
                )
            (found,) = solution
            assert found.probabilities.min() > 0.0
            assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
            mixed = np.zeros(scores.size)
            for parts, probability in zip(found.parts, found.probabilities, strict=True):
                mixed[parts] += probability
            np.testing.assert_allclose(u.ravel(), mixed, atol=1e-12)
            reached = scores.ravel() @ u.ravel() - 0.5 * (u**2).sum()
            assert value - 1e-12 <= reached <= most + 1e-12  # no step leads down
            dropped |= bool(found.support_size < before)
            before, value = found.support_size, reached
    assert dropped or step == "vanilla"
