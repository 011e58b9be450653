"""Motif finding: every oracle against enumeration, compiled sums against plain ones, CCCP."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.applications.motif.fasta import encode
from didyma.applications.motif.task import MotifTask, Site, scan
from didyma.errors import DataError
from didyma.learning.cccp import CCCP
from didyma.learning.perceptron import Perceptron
from didyma.structured.task import TaskProblem

TURN = str.maketrans("ACGT", "TGCA")


def plain_features(task: MotifTask, x: str, output: Site | None) -> np.ndarray:
    """The definition, letter by letter."""
    psi = np.zeros(task.n_features)
    inside = range(0)
    if output is not None:
        inside = range(output.start, output.start + task.length)
        word = x[output.start : output.start + task.length]
        word = word if output.strand == "+" else word[::-1].translate(TURN)
        for j, base in enumerate(word):
            psi[4 * j + "ACGT".index(base)] += 1
    kmers = ["".join(letters) for letters in product("ACGT", repeat=task.order + 1)]
    for start in range(len(x) - task.order):
        kmer = x[start : start + task.order + 1]
        if start not in inside and "N" not in kmer:
            psi[4 * task.length + kmers.index(kmer)] += 1
    return psi


def sites(task: MotifTask, x: str) -> list[Site]:
    strands = "+-" if task.both_strands else "+"
    return [
        Site(h, strand)  # type: ignore[arg-type]
        for strand in strands
        for h in range(len(x) - task.length + 1)
        if "N" not in x[h : h + task.length]
    ]


tasks = st.builds(MotifTask, st.integers(1, 9), st.integers(0, 3), st.booleans())
texts = st.text("ACGT" * 4 + "N", max_size=40)
seeds = st.integers(0, 2**16)


def value(task: MotifTask, w: np.ndarray, x: str, output: Site | None) -> float:
    return float(w @ plain_features(task, x, output))


@settings(max_examples=60, deadline=None)
@given(tasks, texts, seeds)
def test_oracles_are_those_of_enumeration(task: MotifTask, x: str, seed: int) -> None:
    w = np.random.default_rng(seed).normal(size=task.n_features)
    places = sites(task, x)
    outputs: list[Site | None] = [None, *places]
    for output in outputs:
        np.testing.assert_array_equal(task.features(x, output), plain_features(task, x, output))
    found = task.argmax(w, x)
    assert found in outputs
    assert value(task, w, x, found) == pytest.approx(max(value(task, w, x, o) for o in outputs))
    for y, scale in ((1, 1.0), (-1, 1.0), (1, 0.3), (-1, 4.0)):
        found = task.loss_augmented(w, x, y, scale)
        best = max(value(task, w, x, o) + scale * task.loss(y, o) for o in outputs)
        assert value(task, w, x, found) + scale * task.loss(y, found) == pytest.approx(best)
    assert task.complete(w, x, -1) is None
    if places:
        found = task.complete(w, x, 1)
        assert found in places
        assert value(task, w, x, found) == pytest.approx(
            max(value(task, w, x, site) for site in places)
        )
        assert task.initial(x, 1, np.random.default_rng(seed)) in places
    else:
        with pytest.raises(DataError, match="known bases in a row"):
            task.complete(w, x, 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 20), st.integers(0, 5), texts, seeds)
def test_scan_scores_each_window(length: int, order: int, x: str, seed: int) -> None:
    task = MotifTask(length, order)
    w = np.random.default_rng(seed).normal(size=task.n_features)
    matrix, background = task.parts(w)
    expected = np.full(max(0, len(x) - length + 1), -np.inf)
    nothing = value(task, w, x, None)
    for site in sites(task, x):
        expected[site.start] = value(task, w, x, site) - nothing
    found = scan(x, matrix, background)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_array_equal(found, scan(encode(x.lower()), matrix, background))


def test_scan_refuses_other_shapes() -> None:
    with pytest.raises(DataError, match="shape"):
        scan("ACGT", np.zeros((3, 5)))
    with pytest.raises(DataError, match="background"):
        scan("ACGT", np.zeros((3, 4)), np.zeros(5))


def planted(
    seed: int, n: int = 30, motif: str = "TTTACGTTTA", *, turned: bool = False
) -> tuple[list[str], list[int]]:
    """Random sequences of different lengths, half of them with a motif; some bases unknown."""
    rng = np.random.default_rng(seed)
    examples, labels = [], []
    for i in range(n):
        letters = rng.choice(list("ACGT"), rng.integers(30, 60))
        if i % 5 == 0:
            letters[rng.integers(len(letters))] = "N"
        labels.append(1 if i % 2 else -1)
        if i % 2:
            word = motif[::-1].translate(TURN) if turned and i % 4 == 1 else motif
            h = rng.integers(len(letters) - len(motif) + 1)
            letters[h : h + len(motif)] = list(word)
        examples.append("".join(letters))
    return examples, labels


@pytest.mark.parametrize("both_strands", [False, True])
@pytest.mark.parametrize("options", [{}, {"loss_scale": 3.0}, {"augmented": False, "online": True}])
def test_compiled_sums_are_those_of_single_sequences(
    both_strands: bool, options: dict[str, Any]
) -> None:
    task = MotifTask(6, 2, both_strands)
    examples, labels = planted(1)
    examples[0] = "ACG"  # negative, and too short for a motif
    rng = np.random.default_rng(2)
    weights = rng.random(len(examples))
    fast = task.problem(examples, labels, weights, **options)
    slow = TaskProblem(task, examples, labels, weights, **options)
    ones = [problem.begin(np.random.default_rng(3)) for problem in (fast, slow)]
    np.testing.assert_allclose(*ones, atol=1e-12)
    assert fast.sites() == slow.gold
    for w in rng.normal(size=(4, task.n_features)) * 0.3:
        np.testing.assert_allclose(fast.risks(w), slow.risks(w), atol=1e-12)
        a, b = fast.cut_all(w), slow.cut_all(w)
        np.testing.assert_allclose(a.direction, b.direction, atol=1e-12)
        assert a.loss == pytest.approx(b.loss)
        for i in range(len(examples)):
            a, b = fast.cut(w, i), slow.cut(w, i)
            np.testing.assert_allclose(a.direction, b.direction)
            assert a.loss == b.loss
        np.testing.assert_allclose(fast.complete(w), slow.complete(w), atol=1e-12)
        assert fast.sites() == slow.gold


@pytest.mark.parametrize("both_strands", [False, True])
def test_cccp_never_raises_the_objective_and_finds_the_motif(both_strands: bool) -> None:
    motif = "TTTACGTTTA"
    task = MotifTask(len(motif), 2, both_strands)
    examples, labels = planted(4, 100, motif, turned=both_strands)
    weights = np.full(len(examples), 1 / len(examples))
    runs = []
    for seed in range(4):
        trace: list[float] = []
        problem = task.problem(examples, labels, weights)
        solution = CCCP().solve(
            problem, 3.0, random_state=seed, callback=lambda step, to=trace: to.append(step.value)
        )
        assert len(trace) > 1
        assert np.all(np.diff(trace) <= 1e-9 * np.array(trace[:-1]))
        runs.append((trace[-1], "".join("ACGT"[b] for b in task.parts(solution.w)[0].argmax(1))))
    found = min(runs)[1]
    assert motif in (found, found[::-1].translate(TURN) if both_strands else found)


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_cccp_never_raises_the_objective_for_any_C(C: float) -> None:
    task = MotifTask(5, 2)
    examples, labels = planted(8, 24, "GATTA")
    weights = np.where(np.arange(24) % 3 == 0, 0.02, 1.0) / 24
    trace: list[float] = []
    problem = task.problem(examples, labels, weights)
    CCCP(tol=1e-6).solve(problem, C, callback=lambda step: trace.append(step.value))
    assert np.all(np.diff(trace) <= 1e-9 * np.array(trace[:-1]))


def test_a_run_is_that_of_the_plain_problem() -> None:
    task = MotifTask(6, 2)
    examples, labels = planted(5, 24, "GATTAC")
    weights = np.where(np.array(labels) > 0, 1.0, 0.02) / len(examples)
    fast = task.problem(examples, labels, weights)
    slow = TaskProblem(task, examples, labels, weights)
    found = [CCCP().solve(problem, 10.0, random_state=1) for problem in (fast, slow)]
    assert found[0].result.value == pytest.approx(found[1].result.value, rel=2e-3)


def test_perceptrons_agree() -> None:
    task = MotifTask(5, 2, True)
    examples, labels = planted(6, 20, "GATTA")
    weights = np.ones(len(examples))
    options = {"augmented": False, "online": True}
    fast = task.problem(examples, labels, weights, **options)
    slow = TaskProblem(task, examples, labels, weights, **options)
    found = [Perceptron(3).solve(problem).w for problem in (fast, slow)]
    np.testing.assert_allclose(*found, atol=1e-9)


def test_a_positive_sequence_needs_a_place() -> None:
    with pytest.raises(DataError, match=r"sequence 1 \(5 bases\)"):
        MotifTask(4).problem(["ACGT", "ACNGT"], [1, 1], np.ones(2))


@pytest.mark.parametrize("arguments", [(0,), (5, -1), (5, 6)])
def test_parameters_are_checked(arguments: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"expected [01]"):
        MotifTask(*arguments)


def test_a_site_must_be_a_window() -> None:
    for site in (Site(2), Site(0, "-")):
        with pytest.raises(DataError, match="no window"):
            MotifTask(3).features("ACGT", site)
