"""Cuts that a function in Python answers, asked for by the solvers in the core."""

from __future__ import annotations

import numpy as np
import pytest

from didyma._core.learning import PythonCut, perceptron_epoch, sweep
from didyma.learning import BCFW, Cut, Perceptron, PythonProblem
from didyma.learning.bcfw import PlaneDual
from tests.learning.problems import ranking_problem


class Answering(PythonProblem):
    """Whatever a function answers, for three examples of two features."""

    def __init__(self, answer):
        super().__init__(n_examples=3, n_features=2)
        self._answer = answer

    def cut(self, w, i):
        return self._answer(w, i)


@pytest.mark.parametrize("solve", [lambda p: BCFW().solve(p, 1.0), Perceptron().solve])
def test_what_a_cut_raises_ends_the_pass(solve):
    def fail(w, i):
        if i == 2 and w.any():
            raise KeyError("unknown word")
        return Cut(np.array([-1.0, 0.5]), 1.0)

    with pytest.raises(KeyError, match="unknown word"):
        solve(Answering(fail))


@pytest.mark.parametrize("solve", [lambda p: BCFW().solve(p, 1.0), Perceptron().solve])
def test_an_interrupted_cut_ends_the_run_with_what_was_learned(solve):
    interrupts = iter([KeyboardInterrupt()])

    def interrupt(w, i):
        if i == 2 and w.any() and (error := next(interrupts, None)):
            raise error
        return Cut(np.array([-1.0, 0.5]), 1.0)

    solution = solve(Answering(interrupt))
    assert solution.result.status == "interrupted"
    assert solution.w.any()


@pytest.mark.parametrize("direction", [[-1.0, 0.5], np.array([-1, 2]), np.float32([0.5, -1])])
def test_a_direction_is_any_sequence_of_numbers(direction):
    found = np.empty(2)
    assert PythonCut(lambda w, i: (direction, 3)).cut(np.zeros(2), 0, found) == 3.0
    np.testing.assert_array_equal(found, direction)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Cut(np.zeros(3), 1.0), r"example 1: expected a direction of shape \(2,\), found \(3,\)"),
        (Cut(np.zeros((2, 2)), 1.0), r"example 1: .* found \(2, 2\)"),
        (Cut(np.zeros(2), "no"), "could not convert string"),
        (Cut("no", 1.0), "could not convert string"),
        (1.0, r"example 1: expected \(direction, loss\), found 1.0"),
        (np.zeros(3), r"example 1: expected \(direction, loss\), found array"),
    ],
)
def test_an_answer_that_is_no_cut_is_refused(answer, message):
    with pytest.raises(ValueError, match=message):
        PythonCut(lambda w, i: answer).cut(np.zeros(2), 1, np.zeros(2))


def test_weights_of_a_question_may_be_kept():
    asked = []

    def answer(w, i):
        asked.append(w)
        return Cut(np.array([-1.0, 0.5]), 1.0)

    Perceptron(epochs=2, random_state=None).solve(Answering(answer))
    np.testing.assert_array_equal(asked, np.outer(np.arange(6), [1.0, -0.5]))


def test_cuts_in_python_and_in_the_core_take_the_same_steps():
    problem = ranking_problem(n_queries=20, n_rows=9)
    order = np.random.default_rng(0).permutation(problem.n_examples)
    ends = []
    for oracle in (problem.kernel, PythonCut(problem.cut)):
        dual = PlaneDual.zero(10.0 * problem.weights, problem.n_features, 3, 10.0)
        w, drift = np.zeros((2, problem.n_features))
        for _ in range(3):
            sweep(oracle, order, dual.planes, dual.scales, dual.gaps, dual.w)
        perceptron_epoch(oracle, order, np.ones(len(order)), w, drift, 0.0)
        ends.append([dual.w, dual.gaps, w, drift])
    for native, python in zip(*ends):
        np.testing.assert_array_equal(native, python)
