"""The averaged perceptron by its definition."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from didyma.learning.perceptron import Perceptron
from tests.learning.problems import (
    ranking_problem,
)
from tests.learning.tasks import Parts, examples_of_parts


@pytest.fixture
def parts():
    return examples_of_parts()


@pytest.mark.parametrize("scale", [None, 1.0, 3.0])
def test_the_latent_perceptron_by_its_definition(parts, scale):
    examples, labels = parts
    task = Parts()
    w = np.zeros(task.n_features)
    iterates = []
    for _ in range(3):
        for x, y in zip(examples, labels):
            output = task.argmax(w, x) if scale is None else task.loss_augmented(w, x, y, scale)
            if task.loss(y, output) > 0:
                gold = task.complete(w, x, y)
                w = w + task.features(x, gold) - task.features(x, output)
            iterates.append(w)
    options = {"augmented": scale is not None, "loss_scale": scale or 1.0, "online": True}
    problem = task.problem(examples, labels, np.full(40, 1.0 / 40), **options)
    found = Perceptron(epochs=3, random_state=None).solve(problem)
    np.testing.assert_allclose(found.w, np.mean(iterates, axis=0))


def frozen(solution):
    """All that a solution holds, as bytes."""
    return pickle.dumps(solution)


def test_a_perceptron_that_serves_as_a_start_does_not_change():
    problem = ranking_problem(seed=14, n_queries=10, n_rows=6)
    first = Perceptron(3).solve(problem)
    before = frozen(first)
    second, third = (Perceptron(3).solve(problem, start=first) for _ in range(2))
    assert frozen(first) == before
    np.testing.assert_array_equal(second.w, third.w)
    assert second.state.time == 2 * first.state.time
