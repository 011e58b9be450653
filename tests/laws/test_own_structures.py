"""All that a structure can do, done by one that is nothing but an argmax, and by three others.

Each question is a function of a structure, scores of a batch and its best outputs as 0/1 arrays.
Answers are held against the outputs' own list where that says enough; the tests of each loss hold
its value and derivative against its definition.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import didyma
from didyma.nn import (
    BlackboxArgmax,
    FenchelYoungLoss,
    IdentityArgmax,
    ImplicitMLE,
    PerturbedArgmax,
    PerturbedLoss,
    PoolLoss,
    SparseMAP,
    SPOPlusLoss,
    regret,
)
from didyma.solvers import Cached, InProcesses, Milp
from didyma.structured import StructureTask
from didyma.structures import Matching, Tree
from didyma.testing import check_structure
from tests.nn.decision_cases import CASES, draw

WEIGHTS = np.array([3, 2, 2, 1])
SETS = np.array([s for s in np.ndindex(2, 2, 2, 2) if WEIGHTS @ s <= 4], float)

# Name: structure, and all outputs as 0/1 arrays in the shape of the scores.
STRUCTURES = {
    "argmax": CASES["own"],
    "milp": (Milp([WEIGHTS], [4]), SETS),
    "tree": (Tree(), CASES["tree"][1]),
    "matching": (Matching(), CASES["matching"][1]),
}


def totals(outputs, scores):
    """What all outputs score, for each instance."""
    return scores.reshape(len(scores), -1) @ outputs.reshape(len(outputs), -1).T


def flags(structure, answers, scores):
    """Answers as people know them, as 0/1 arrays."""
    layout = structure.lay_out(scores)
    parts, _ = structure.encode(answers, layout)
    rows = np.zeros((len(parts), layout.scores.shape[1]))
    for row, chosen in zip(rows, parts):
        row[chosen[chosen >= 0]] = 1
    return rows.reshape(scores.shape)


def predict(structure, outputs, scores):
    answers = flags(structure, structure.predict(scores), scores)
    np.testing.assert_allclose(
        (answers * scores).reshape(len(scores), -1).sum(1), totals(outputs, scores).max(1)
    )
    np.testing.assert_array_equal(structure.predict(scores[1]), structure.predict(scores)[1])


def k_best(structure, outputs, scores):
    _, values = structure.k_best(scores, 3)
    np.testing.assert_allclose(values, -np.sort(-totals(outputs, scores), axis=1)[:, :3])


def sample(structure, outputs, scores):
    drawn = structure.sample(scores, 4, random_state=0)
    assert len(drawn) == len(scores)
    assert drawn.shape[1] == 4
    for draws in drawn.swapaxes(0, 1):
        structure.encode(draws, structure.lay_out(scores))  # refuses what is no output
    np.testing.assert_array_equal(drawn, structure.sample(scores, 4, random_state=0))


def posterior(structure, outputs, scores):
    u, solution = didyma.sparsemap(scores, structure, return_solution=True)
    assert solution.gap.max() < 1e-9
    for n_jobs in (1, 2):
        np.testing.assert_allclose(didyma.sparsemap(scores, structure, n_jobs=n_jobs), u, atol=1e-9)
    gradient = (scores - u).reshape(len(scores), -1)
    optimal = (gradient @ outputs.reshape(len(outputs), -1).T).max(1)
    np.testing.assert_allclose((gradient * u.reshape(len(u), -1)).sum(1), optimal, atol=1e-8)


def laws(structure, outputs, scores):
    shape = scores.shape[1:]
    check_structure(structure, lambda rng: rng.standard_normal(shape), n_draws=1)


def learners(structure, outputs, scores):
    features = [np.stack([s, np.ones_like(s)], axis=-1) for s in scores]
    answers = list(structure.predict(scores))
    task = StructureTask(structure, np.asarray, n_features=2)
    for learner in (
        didyma.StructuredSVM(task, C=100.0, solver="bcfw"),
        didyma.StructuredSVM(task, C=100.0, solver="one-slack"),
        didyma.StructuredPerceptron(task),
    ):
        assert learner.fit(features, answers).score(features, answers) == 0.0


def remembered(structure, outputs, scores):
    if structure.ndim > 1:  # a compiled argmax is faster than a memory
        with pytest.raises(didyma.DataError, match="argmax is compiled"):
            Cached(structure)
        return
    cached = Cached(structure)
    for _ in range(2):
        np.testing.assert_array_equal(cached.predict(scores), structure.predict(scores))
    assert (cached.n_asked, cached.n_solved, cached.hit_rate) == (6, 3, 0.5)


def gradients(module, *others):
    """A question: the module's gradient is finite, and not zero for some scores."""

    def ask(structure, outputs, scores):
        predicted = torch.tensor(-scores, requires_grad=True)
        true = torch.tensor(scores)
        gold = torch.tensor(flags(structure, structure.predict(scores), scores))
        arguments = [{"true": true, "gold": gold}[name] for name in others]
        values = module(structure)(predicted, *arguments)
        (values if values.ndim == 0 else -(values * true).sum()).backward()
        assert predicted.grad.isfinite().all()
        assert predicted.grad.abs().sum() > 0

    return ask


def decisions(structure, outputs, scores):
    true, predicted = torch.tensor(scores), torch.tensor(-scores)
    lost = regret(structure, predicted, true)
    bound = SPOPlusLoss(structure, reduction="none")(predicted, true)
    assert (lost >= 0).all()
    assert (bound >= lost - 1e-9).all()
    assert lost.sum() > 0


def seeded():
    return {"generator": torch.Generator().manual_seed(0)}


QUESTIONS = {
    "predict": predict,
    "k_best": k_best,
    "sample": sample,
    "posterior, batches, n_jobs": posterior,
    "check_structure": laws,
    "SVM by BCFW and one-slack, perceptron": learners,
    "cache": remembered,
    "regret": decisions,
    "SparseMAP": gradients(SparseMAP),
    "perceptron loss": gradients(lambda s: FenchelYoungLoss(s, "perceptron"), "gold"),
    "SparseMAP loss": gradients(FenchelYoungLoss, "gold"),
    "SPO+": gradients(SPOPlusLoss, "true"),
    "smooth SPO+": gradients(lambda s: SPOPlusLoss(s, "sparsemap"), "true"),
    "perturbed loss": gradients(lambda s: PerturbedLoss(s, n_samples=4, **seeded()), "gold"),
    "perturbed argmax": gradients(lambda s: PerturbedArgmax(s, n_samples=4, **seeded())),
    "black box": gradients(BlackboxArgmax),
    "identity": gradients(IdentityArgmax),
    "implicit MLE": gradients(lambda s: ImplicitMLE(s, n_samples=2, **seeded())),
    **{
        f"pool, {kind}": gradients(lambda s, kind=kind: PoolLoss(s, kind, **seeded()), "true")
        for kind in ("nce", "map", "pointwise", "pairwise", "listwise")
    },
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_it_answers(name, question):
    structure, outputs = STRUCTURES[name]
    QUESTIONS[question](structure, outputs, draw(outputs, batch=3, seed=2).numpy())


class Budget(didyma.Structure):
    """Sets of at most as many as the instance may have: data of an instance."""

    data = ("most",)

    def argmax(self, scores, most):
        best = np.argsort(-scores, kind="stable")[:most]
        return best[scores[best] > 0]


def test_instances_have_data_also_in_caches_and_processes():
    scores, most = np.random.default_rng(0).standard_normal((3, 5)), [1, 2, 5]
    expected = Budget().predict(scores, most=most)
    assert (expected.sum(1) <= most).all()
    np.testing.assert_array_equal(Cached(Budget()).predict(scores, most=most), expected)
    with InProcesses(Budget(), 1) as processes:
        np.testing.assert_array_equal(processes.predict(scores, most=most), expected)
