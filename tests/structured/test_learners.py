"""Learners of any task: what they learn, keep and refuse."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.errors import DataError, ModelFileError
from didyma.structured.learners import (
    LatentStructuredPerceptron,
    LatentStructuredSVM,
    StructuredPerceptron,
    StructuredSVM,
)
from didyma.structured.task import Task
from tests.learning.tasks import N_COLUMNS, Parts, Whole, examples_of_parts, examples_of_wholes


@pytest.fixture
def parts():
    return examples_of_parts()


@pytest.fixture
def wholes():
    return examples_of_wholes()


def test_every_learner_learns(parts, wholes):
    for model in (LatentStructuredPerceptron(Parts(), 30), LatentStructuredSVM(Parts(), 100.0)):
        assert model.fit(*parts).score(*parts) > -0.25
    for model in (
        StructuredPerceptron(Whole()),
        StructuredPerceptron(Whole(), loss_scale=1.0),
        *(StructuredSVM(Whole(), 10.0, solver=s) for s in ("one-slack", "bcfw", "n-slack")),
    ):
        assert model.fit(*wholes).score(*wholes) > -0.15


def test_all_solvers_minimise_the_same_objective(wholes):
    values = [
        StructuredSVM(Whole(), 10.0, solver=solver, tol=1e-5).fit(*wholes).result_.value
        for solver in ("one-slack", "bcfw", "n-slack", "bundle")
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-4)


def test_weights_of_examples_count(wholes):
    examples, labels = wholes
    twice = StructuredSVM(Whole(), 10.0, tol=1e-6).fit(examples * 2, labels * 2)
    weighted = StructuredSVM(Whole(), 10.0, tol=1e-6).fit(
        [*examples, examples[0]], [*labels, labels[0]], sample_weight=[61 / 60] * 60 + [0]
    )
    once = StructuredSVM(Whole(), 10.0, tol=1e-6).fit(examples, labels)
    np.testing.assert_allclose(twice.coef_, once.coef_, atol=1e-2)
    np.testing.assert_allclose(weighted.coef_, once.coef_, atol=1e-2)


def test_the_best_epoch_on_held_out_examples_is_kept(wholes):
    examples, labels = wholes
    model = StructuredPerceptron(Whole(), 50, patience=3, random_state=1)
    model.fit(examples[:40], labels[:40], eval_set=(examples[40:], labels[40:]))
    scores = [record["score"] for record in model.history_]
    assert model.score(examples[40:], labels[40:]) == max(scores)
    assert len(scores) < 50
    with pytest.raises(DataError, match="patience: expected an eval_set"):
        model.fit(examples, labels)


def test_a_warm_start_goes_on(wholes):
    model = StructuredPerceptron(Whole(), 1, random_state=0, warm_start=True)
    first = model.fit(*wholes).coef_.copy()
    assert not np.allclose(model.fit(*wholes).coef_, first)
    svm = StructuredSVM(Whole(), 10.0, warm_start=True).fit(*wholes)
    assert svm.fit(*wholes).result_.n_iter <= 2


def test_files_keep_the_weights(parts, tmp_path):
    model = LatentStructuredSVM(Parts(), 10.0).fit(*parts)
    model.save(tmp_path / "model.safetensors")
    again = LatentStructuredSVM.load(tmp_path / "model.safetensors", Parts())
    assert again.predict(parts[0]) == model.predict(parts[0])
    assert again.C == 10.0
    with pytest.raises(ModelFileError, match="holds a LatentStructuredSVM"):
        StructuredSVM.load(tmp_path / "model.safetensors", Whole())


def test_a_measure_of_ones_own_is_missed_where_it_is_needed(wholes, tmp_path):
    model = StructuredPerceptron(Whole(), 2, measure=lambda labels, outputs: 42.0).fit(*wholes)
    assert model.score(*wholes) == 42.0
    with pytest.warns(UserWarning, match="StructuredPerceptron.measure"):
        model.save(tmp_path / "model.safetensors")
    again = StructuredPerceptron.load(tmp_path / "model.safetensors", Whole())
    assert again.predict(wholes[0]) == model.predict(wholes[0])
    for use in (again.score, again.fit):
        with pytest.raises(DataError, match="measure: was the function"):
            use(*wholes)


def test_a_missing_oracle_is_an_error(wholes):
    class Bare(Task):
        n_features = N_COLUMNS

        def features(self, x, output):
            return x * output

        def argmax(self, w, x):
            return 1 if w @ x > 0 else -1

        def loss(self, y, output):
            return float(y != output)

    examples, labels = wholes[0], [1 if y else -1 for y in wholes[1]]
    StructuredPerceptron(Bare()).fit(examples, labels)
    with pytest.raises(NotImplementedError, match="Bare defines no loss_augmented"):
        StructuredSVM(Bare()).fit(examples, labels)
    with pytest.raises(DataError, match=r"Bare defines no complete.* use StructuredSVM"):
        LatentStructuredSVM(Bare()).fit(examples, labels)
    with pytest.raises(DataError, match="Parts has latent parts; use LatentStructuredSVM"):
        StructuredSVM(Parts()).fit(examples, labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": [0]}, "labels: expected 60"),
        ({"examples": [], "labels": []}, "at least one example"),
        ({"sample_weight": [1.0]}, "sample_weight: expected 60"),
    ],
)
def test_bad_input_is_named(wholes, change, message):
    arguments = {"examples": wholes[0], "labels": wholes[1], **change}
    with pytest.raises(DataError, match=message):
        StructuredSVM(Whole()).fit(**arguments)


def test_bad_parameters_are_named(wholes):
    for model, message in [
        (StructuredSVM(Whole(), -1.0), "C: expected a positive"),
        (StructuredSVM(Whole(), solver="magic"), "solver: expected one of"),
        (StructuredSVM(None), "task: expected a"),
    ]:
        with pytest.raises(DataError, match=message):
            model.fit(*wholes)
