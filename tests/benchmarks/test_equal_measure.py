"""Courses of training in small, and what a comparison says of them."""

from __future__ import annotations

import time
from itertools import count

import numpy as np
import pytest
from benchmarks.courses import MEASURE, Course, of_lightgbm, of_ranker, of_xgboost

from benchmarks import equal_measure, synthetic
from didyma.data import letor
from didyma.metrics import Evaluator
from didyma.ranking.objective import objective
from didyma.ranking.svm import SVMRanker

TREES = 4


@pytest.fixture(scope="module")
def split():
    return tuple(synthetic.dense(n, rows=20, features=5, seed=n) for n in (30, 20))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(equal_measure, "QUERIES", 20)
    monkeypatch.setattr(equal_measure, "TREES", 5)


def measured(held_out, scores):
    return Evaluator(held_out.y, held_out.groups, MEASURE).expected(scores).mean(MEASURE)


@pytest.mark.parametrize("builtin", ["lambdarank", None])
def test_watching_does_not_change_what_lightgbm_learns(split, builtin):
    lightgbm = pytest.importorskip("lightgbm")
    train, held_out = split
    settings = {"objective": builtin or objective("ndcg"), "num_threads": 1, "verbose": -1}
    data = lightgbm.Dataset(train.X, train.y, group=train.groups.sizes)
    scores = lightgbm.train(settings, data, TREES).predict(held_out.X)
    course = of_lightgbm(builtin, train, held_out, TREES)
    assert course.values[-1] == pytest.approx(measured(held_out, scores))
    assert len(course.values) == len(course.seconds) == TREES


@pytest.mark.parametrize("builtin", ["rank:ndcg", None])
def test_watching_does_not_change_what_xgboost_learns(split, builtin):
    xgboost = pytest.importorskip("xgboost")
    train, held_out = split
    settings = {"eta": 0.1, "nthread": 1}
    settings |= {"objective": builtin} if builtin else {"base_score": 0.0}
    data = xgboost.DMatrix(train.X, train.y, group=train.groups.sizes)
    model = xgboost.train(settings, data, TREES, obj=None if builtin else objective("ndcg"))
    scores = model.predict(xgboost.DMatrix(held_out.X), output_margin=True)
    course = of_xgboost(builtin, train, held_out, TREES)
    assert course.values[-1] == pytest.approx(measured(held_out, scores))
    assert len(course.values) == len(course.seconds) == TREES


def test_a_ranker_of_ours_has_one_record(split):
    train, held_out = split
    course = of_ranker(lambda: SVMRanker("ndcg", n_jobs=1), train, held_out)
    ranker = SVMRanker("ndcg", n_jobs=1).fit(train)
    assert course.values == [measured(held_out, ranker.predict(held_out.X))]
    assert len(course.seconds) == 1


def test_judging_is_not_counted(split, monkeypatch):
    clock = count()  # one second passes between two looks at it
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock)))
    course = Course(split[1])
    for _ in range(3):
        course.record(lambda: (time.perf_counter(), np.zeros(len(split[1])))[1])
    assert course.seconds == [1.0, 2.0, 3.0]


def test_the_order_of_rows_does_not_decide_between_equal_scores(split):
    held_out = split[1]
    courses = [Course(data) for data in (held_out, held_out.select(np.arange(len(held_out))[::-1]))]
    for course in courses:
        course.record(lambda: np.zeros(len(held_out)))
    assert courses[0].values == pytest.approx(courses[1].values)


def test_the_first_tree_at_least_as_good_counts(split):
    course = Course(split[1], values=[0.2, 0.5, 0.4, 0.6])
    assert [course.trees_to(value) for value in (0.1, 0.5, 0.55, 0.61)] == [1, 2, 4, None]


def test_only_lambdarank_that_reaches_ours_has_a_target(split):
    ours = {name: Course(split[1], [2.0], [0.5]) for name in equal_measure.OURS}
    ours["AdditiveSVMRanker"] = Course(split[1], [4.0], [0.7])
    boosted = Course(split[1], [1.0, 6.0, 8.0], [0.3, 0.6, 0.4])
    turn = {**ours, "LightGBM lambdarank": boosted, "XGBoost rank:ndcg": boosted}
    rows = {row.name: row for row in equal_measure.compare("data", [turn], 3)}
    reached = "data: {} reaches SVMRanker by tree 2, time over ours"
    assert rows[reached.format("LightGBM lambdarank")].value == 3.0
    assert rows[reached.format("LightGBM lambdarank")].verdict == "met"
    assert rows[reached.format("XGBoost rank:ndcg")].target == ""
    below = rows["data: LightGBM lambdarank stays below AdditiveSVMRanker, all 3 trees over ours"]
    assert (below.value, below.target) == (2.0, "")
    assert rows["data: XGBoost rank:ndcg, best of 3 trees"].figure == "0.6000"
    assert rows["data: LightGBM by our objective"].figure == "absent"
    ours["AdditiveSVMRanker"].values[0] = 0.5
    assert "data: XGBoost rank:ndcg, best of 3 trees, above all of ours" in {
        row.name for row in equal_measure.compare("data", [turn], 3)
    }


@pytest.mark.usefixtures("small")
def test_absent_data_and_libraries_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(equal_measure, "find_spec", lambda package: None)
    absent = [row.name for row in equal_measure.run(folder=tmp_path) if row.figure == "absent"]
    assert [name for name in absent if name.startswith("MQ2008 (not in ")]
    assert "linear: XGBoost rank:ndcg" in absent


@pytest.mark.usefixtures("small")
def test_the_test_part_is_not_read(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("mq2008", "ohsumed", "lightgbm_lambdarank"):
        (tmp_path / name).mkdir()
    for number in range(1, 5):  # no fifth
        lines = [
            f"{label} qid:{number}{query} 1:{rng.random():.3f} 2:{rng.random():.3f}"
            for query in range(5)
            for label in (0, 1, 2)
        ]
        for name in ("mq2008", "ohsumed"):
            (tmp_path / name / f"S{number}.txt").write_text("\n".join(lines) + "\n")
        (tmp_path / "lightgbm_lambdarank" / "rank.train").write_text("\n".join(lines) + "\n")
    found = dict(equal_measure.splits(1.0, tmp_path))
    train, held_out = found["MQ2008"]
    assert (len(train.groups), len(held_out.groups)) == (15, 5)
    last = letor.read(tmp_path / "mq2008" / "S4.txt", sparse=False)
    np.testing.assert_array_equal(held_out.X, last.X)
    assert found["OHSUMED"][1].X.max() == 1.0
    train, held_out = found["LightGBM's example"]
    assert (len(train.groups), len(held_out.groups)) == (4, 1)
