"""Derivatives of SparseMAP by the factor that the solver keeps."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import didyma
from didyma.polytope.distributions import Distributions
from didyma.structures import Chain, Choice, Forest, Matching, Segmentation, TopK, Tree


class Contiguous(didyma.Structure):
    """A run of three neighbours."""

    def argmax(self, scores):
        start = np.argmax(np.convolve(scores, np.ones(3), mode="valid"))
        return np.arange(start, start + 3)


@dataclass(frozen=True)
class Case:
    """A structure, the shape of its scores, and those of additional ones that a batch shares."""

    structure: didyma.Structure
    shape: tuple[int, ...]
    additional: dict[str, tuple[int, ...]] = field(default_factory=dict)


CASES = {
    "chain": Case(Chain(), (6, 4), {"transitions": (4, 4), "start": (4,)}),
    "tree": Case(Tree(), (6, 6)),
    "matching": Case(Matching(), (4, 5)),
    "top k": Case(TopK(3), (9,)),
    "forest": Case(Forest(), (5, 5)),
    "segmentation": Case(Segmentation(), (5, 3, 2)),
    "own argmax": Case(Contiguous(), (9,)),
}
COPIES = {
    "the solution": lambda solution: solution,
    "pickle": lambda solution: pickle.loads(pickle.dumps(solution)),
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
}


def solved(case: Case, batch: int | None, temperature: float, move: float = 0.0):
    """A solution, and the direction in which all scores are moved by some amount."""
    rng = np.random.default_rng(7)
    shape = case.shape if batch is None else (batch, *case.shape)
    scores, d_scores = rng.normal(size=(2, *shape))
    additional = {name: rng.normal(size=(2, *own)) for name, own in case.additional.items()}
    _, solution = didyma.sparsemap(
        scores + move * d_scores,
        case.structure,
        temperature=temperature,
        return_solution=True,
        **{name: values + move * tangent for name, (values, tangent) in additional.items()},
    )
    return solution, d_scores, {name: tangent for name, (_, tangent) in additional.items()}


def factored_again(solution: Distributions) -> Distributions:
    """The same without the factors of the solver."""
    return replace(solution, factors=np.zeros(0))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("name", CASES)
def test_the_solvers_factor_gives_the_derivative(name, batch, temperature):
    solution, d_scores, d_additional = solved(CASES[name], batch, temperature)
    assert (solution.support_size > 1).any()
    assert len(solution.factors) == (solution.support_size * (solution.support_size + 1) // 2).sum()
    moved = solution.jvp(d_scores, **d_additional)
    again = factored_again(solution)
    np.testing.assert_allclose(moved, again.jvp(d_scores, **d_additional), atol=1e-9)

    step = 1e-6
    ends = [solved(CASES[name], batch, temperature, sign * step)[0] for sign in (-1.0, 1.0)]
    difference = (ends[1].marginals - ends[0].marginals) / (2.0 * step)
    np.testing.assert_allclose(moved, difference, atol=1e-6)

    # The transpose: d·(J t) = (J' d)·t, whichever factor is used.
    d_marginals = np.random.default_rng(8).normal(size=solution.marginals.shape)
    for one in (solution, again):
        gradient, additional = one.vjp(d_marginals)
        along = np.sum(gradient * d_scores.reshape(gradient.shape))
        along += sum(np.sum(additional[key] * d_additional[key]) for key in d_additional)
        np.testing.assert_allclose(along, np.sum(d_marginals * moved), atol=1e-8)


@pytest.mark.parametrize("made", COPIES)
@pytest.mark.parametrize("name", CASES)
def test_copies_have_the_factor(name, made):
    solution, d_scores, d_additional = solved(CASES[name], 3, 1.0)
    other = COPIES[made](solution)
    np.testing.assert_array_equal(other.factors, solution.factors)
    np.testing.assert_array_equal(
        other.jvp(d_scores, **d_additional), solution.jvp(d_scores, **d_additional)
    )


@pytest.mark.parametrize("name", CASES)
def test_a_factor_is_of_its_own_instance(name):
    """Derivatives of a batch are those of each instance by itself."""
    case = CASES[name]
    scores = np.random.default_rng(9).normal(size=(4, *case.shape))
    direction = np.random.default_rng(10).normal(size=scores.shape)
    _, batch = didyma.sparsemap(scores, case.structure, return_solution=True)
    for b, moved in enumerate(batch.jvp(direction)):
        _, alone = didyma.sparsemap(scores[b], case.structure, return_solution=True)
        np.testing.assert_allclose(moved, alone.jvp(direction[b])[0], atol=1e-9)


def test_no_factor_is_kept_where_nobody_asks_for_derivatives():
    _, closed = didyma.sparsemap(np.zeros(4), Choice(), return_solution=True)
    assert closed.factors.size == 0
    np.testing.assert_allclose(closed.jvp([1.0, 0.0, 0.0, 0.0]), [[0.75, -0.25, -0.25, -0.25]])
