"""Labels as targets: grades, or a teacher's scores; what a model remembers of its training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import didyma
from didyma import TextReranker
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.metrics import evaluate
from didyma.text.training_data import LEVELS, Target, TrainingData
from tests.text.texts import made

ONE = Groups.from_lists([4])


@pytest.mark.parametrize(
    ("labels", "kind", "grades", "loss"),
    [
        ([0, 1, 1, 0], "binary", [0, 1, 1, 0], "ap"),
        ([-1, 1, -1, 1], "binary", [0, 1, 0, 1], "ap"),
        ([0, 3, 1, 2], "graded", [0, 3, 1, 2], "ap"),
        ([0.1, 0.9, 0.5, 0.1], "teacher", [0, 4, 2, 0], "ndcg(gain=linear)"),
        ([-11, -10.9, 4, -3], "teacher", [0, 0, 4, 2], "ndcg(gain=linear)"),
        ([0, 100, 50, 25], "teacher", [0, 4, 2, 1], "ndcg(gain=linear)"),
    ],
)
def test_what_labels_ask_for(labels, kind, grades, loss):
    target = Target.of(np.array(labels, float), ONE)
    assert (target.kind, target.loss) == (kind, loss)
    assert target.grades.tolist() == grades
    assert np.all((target.relevance >= 0) & (target.relevance <= 1))


def test_the_measure_of_the_user_counts():
    labels = np.array([0.0, 3, 1, 2])
    assert Target.of(labels, ONE, "nDCG@10").loss == "ndcg"
    assert Target.of(labels, ONE, "RR").loss == "ap"
    assert Target.of(labels, ONE, "RR").measure == "RR"
    target = Target.of(labels, ONE, "RR(rel=2)")
    assert (target.loss, target.measure, target.rel) == ("ap(rel=2)", "RR(rel=2)", 2.0)
    assert target.relevance.tolist() == (labels >= 2).tolist()


def test_a_list_that_the_teacher_finds_alike_teaches_nothing():
    scores = np.array([-9.0, 5, 3, -8, 0.10, 0.11, 0.12, 0.13])
    grades = Target.of(scores, Groups.from_lists([4, 4])).grades
    assert grades.tolist() == [0, 4, 3, 0, 0, 0, 0, 0]


@given(arrays(np.float64, 12, elements=st.floats(-50, 50)), st.floats(0.1, 10), st.floats(-9, 9))
def test_grades_keep_the_order_of_a_teacher(scores, factor, shift):
    scores = scores + 0.5 * np.eye(12)[0]  # a fraction, so that these are no grades
    groups = Groups.from_lists([5, 7])
    target = Target.of(scores, groups)
    if target.kind != "teacher":
        return
    for part in (slice(0, 5), slice(5, 12)):
        order = np.argsort(scores[part])
        assert np.all(np.diff(target.grades[part][order]) >= 0)
    assert np.all((target.grades >= 0) & (target.grades <= LEVELS))
    assert np.array_equal(target.grades, np.rint(target.grades))


@pytest.mark.parametrize("largest", [1e-300, 1e-160, 1e155, 1e307, 1.7e308])
def test_a_teacher_may_use_any_numbers(largest):
    scores, groups = np.array([-1.0, 0.3, 1.0, 0.5, 0.1, 0.9]), Groups.from_lists([3, 3])
    expected = Target.of(10.5 * scores, groups)
    with np.errstate(all="raise"):
        target = Target.of(largest * scores, groups)
    assert target.kind == "teacher"
    assert target.grades.tolist() == expected.grades.tolist()
    assert target.relevance == pytest.approx(expected.relevance, abs=1e-12)


def test_a_teacher_can_be_distilled():
    """The student orders passages as the teacher does, on queries that neither was given."""
    lists, other = made(60), made(40, seed=1)

    def teacher(lists: Lists) -> np.ndarray:
        features = TextReranker(quick=True).fit(made(3)).featuriser
        X, names = features.transform(lists), features.names
        return 6 * X[:, names.index("stem_coverage")] - X[:, names.index("length")] - 1.5

    student = TextReranker(quick=True).fit(
        Lists(lists.items, teacher(lists), grouping=lists.groups, queries=lists.queries)
    )
    assert student.gate_.measure == "nDCG"
    wanted = Target.of(teacher(other), other.groups).grades
    found = evaluate(student.predict(other), wanted, other.groups, "nDCG").mean("nDCG")
    rng = np.random.default_rng(0)
    shuffled = evaluate(rng.random(len(other)), wanted, other.groups, "nDCG").mean("nDCG")
    assert found > 0.95 > shuffled


def test_a_loaded_model_knows_the_queries_of_its_training(tmp_path: Path) -> None:
    lists = made(12, 0)
    TextReranker(quick=True).fit(lists).save(tmp_path / "model")
    loaded = didyma.load(tmp_path / "model")
    assert loaded.trained_on_.seen(lists.queries).all()
    assert loaded.trained_on_.seen([f"  {query.upper()} " for query in lists.queries]).all()
    assert not loaded.trained_on_.seen(["who has never asked?"]).any()
    assert loaded.version_.data == TrainingData.of(lists).fingerprint


def test_the_fingerprint_changes_with_labels_and_texts() -> None:
    def fingerprint(passage: str, label: int) -> str:
        return TrainingData.of(Lists.of_texts(["a"], [[passage]], [[label]])).fingerprint

    assert fingerprint("b", 1) == fingerprint("b", 1)
    assert len({fingerprint("b", 1), fingerprint("b", 0), fingerprint("c", 1)}) == 3


def test_lists_without_texts_have_none() -> None:
    assert TrainingData.of(Lists(np.eye(2), np.array([1.0, 0.0]))) is None
