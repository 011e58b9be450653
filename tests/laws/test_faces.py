"""Derivatives are those of the face that the optimum lies on, not of a few of its dimensions.

At u* the outputs that score best, of θ_s − m_s·u*, span a face of the hull, and the derivative of
u* is the projection onto the directions within that face. Where u* lies at the edge of the face (a
tie: an output that scores best, and needs no weight) the derivative is not unique; then a
projection onto some directions within the face is all that is asked.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import didyma
from didyma.structures import Chain, Matching, Tree
from didyma.structures.oracles import best_outputs
from tests.laws.test_sparsemap import CASES, instance_of, vertices_of


def jacobian(solution):
    """J of the first instance, column by column."""
    size = solution.marginals[0].size
    columns = [solution.jvp(e.reshape(solution.marginals.shape)) for e in np.eye(size)]
    return np.array(columns).reshape(size, size).T


def projection(columns):
    """Onto the differences of columns."""
    left, values, _ = np.linalg.svd(columns - columns[:, :1], full_matrices=False)
    basis = left[:, values > 1e-9]
    return basis @ basis.T


@pytest.mark.parametrize("kind", ["gaussian", "flat", "weak unaries", "integer", "constant"])
@pytest.mark.parametrize("name", CASES)
def test_the_derivative_is_the_projection_onto_the_face(name, kind):
    case = CASES[name]
    for seed in range(3):
        scores, additional = instance_of(case, kind, seed)
        u, solution = didyma.sparsemap(scores, case.structure, return_solution=True, **additional)
        M, theta = vertices_of(case, scores, additional)
        slack = theta - M.T @ u.ravel()
        face = projection(M[:, slack > slack.max() - 1e-9])
        J = jacobian(solution)
        np.testing.assert_allclose(J @ J, J, atol=1e-9)
        np.testing.assert_allclose(face @ J, J, atol=1e-9)
        if kind not in ("integer", "constant"):  # these tie
            np.testing.assert_allclose(J, face, atol=1e-9)


def instances(structure, shape, scale, seed, batch, **additional):
    rng = np.random.default_rng(seed)
    scores = scale * rng.standard_normal((batch, *shape))
    return structure, scores, {k: rng.standard_normal(s) for k, s in additional.items()}


LARGER = {
    "sequence": instances(Chain(), (25, 5), 0.3, 0, 32, transitions=(5, 5)),
    "tree": instances(Tree(), (11, 11), 0.3, 1, 128),
    "larger tree": instances(Tree(), (21, 21), 0.3, 2, 4),
    "matching": instances(Matching(), (10, 10), 0.3, 3, 32),
}


@pytest.mark.parametrize("name", LARGER)
def test_no_tolerance_changes_the_derivative(name):
    structure, scores, additional = LARGER[name]
    weight = np.random.default_rng(0).standard_normal(scores.shape)
    gradients = []
    for tol in (1e-3, 1e-9, 0.0):
        _, solution = didyma.sparsemap(
            scores, structure, return_solution=True, tol=tol, **additional
        )
        gradients.append(solution.vjp(weight)[0])
    np.testing.assert_allclose(gradients[0], gradients[2], atol=1e-7)
    np.testing.assert_allclose(gradients[1], gradients[2], atol=1e-7)


@pytest.mark.parametrize("name", LARGER)
def test_no_dimension_of_the_face_is_missing(name):
    """Slightly different scores have optima on the same face: their outputs add no direction."""
    structure, scores, additional = LARGER[name]
    scores = scores[-4:]
    layout = structure.lay_out(scores, **additional)
    _, solution = didyma.sparsemap(scores, structure, return_solution=True, **additional)
    rng = np.random.default_rng(0)
    for b in range(len(scores)):
        rows = slice(solution.offsets[b], solution.offsets[b + 1])
        left = np.repeat((layout.scores[b] - solution.marginals[b].ravel())[None], 100, axis=0)
        probes = replace(
            layout,
            scores=left + 1e-9 * rng.standard_normal(left.shape),
            sizes=np.repeat(layout.sizes[b : b + 1], 100, axis=0),
        )
        parts, extra_parts, _ = best_outputs(structure.kernel, probes)
        tied = np.vstack([solution.parts[rows], parts])
        M = np.zeros((len(tied), layout.scores.shape[1]))
        M[np.arange(len(tied))[:, None], tied] = 1.0
        theta = np.where(M > 0, left[0], 0.0).sum(axis=1)
        extra = np.vstack([solution.extra_parts[rows], extra_parts])
        theta += np.append(layout.extra[0], 0.0)[extra].sum(axis=1)
        directions = (M - M[0])[1:][theta[1:] > theta[0] - 1e-11]
        assert np.linalg.matrix_rank(directions, tol=1e-7) == solution.support_size[b] - 1
