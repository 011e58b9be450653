"""A reranker with a teacher behind it, against a simulation that is written another way."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import didyma
from didyma import Lists, TextReranker
from didyma.errors import DataError
from didyma.metrics import evaluate
from didyma.text import Cascade
from didyma.text.cascade_curve import contested, rearranged
from tests.text.teachers.standin import reranking, serving
from tests.text.texts import made


class Counting:
    """A teacher that knows the answers of `made`, counts, and can fail."""

    def __init__(self, fault: Any = None) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.fault = fault

    def __call__(self, query: str, documents: list[str]) -> Any:
        self.asked.append((query, list(documents)))
        if self.fault is not None:
            return self.fault(documents)
        return [truth(query, document) for document in documents]


def truth(query: str, document: str) -> float:
    """A number that orders documents in another way than words do; no two are equal."""
    return float((sum(map(ord, query + document)) * 2654435761) % 1_000_003)


@pytest.fixture(scope="module")
def reranker() -> TextReranker:
    return TextReranker(quick=True).fit(made(30))


@pytest.fixture(scope="module")
def lists() -> Lists:
    return made(25, seed=7, n_passages=9)


def documents_of(lists: Lists, n: int) -> list[str]:
    return [lists.items[row] for row in lists.groups.rows_of(n)]


def question(lists: Lists) -> tuple[str, list[str]]:
    """The first query with its documents."""
    return lists.query_texts[0], documents_of(lists, 0)


def simulated(raw: Sequence[float], taught: Any, top: int, t: float, budget: int) -> list[int]:
    """The order by the definition, pair by pair: documents by their places in the list."""
    order = sorted(range(len(raw)), key=lambda n: -raw[n])
    could = []
    for place, n in enumerate(order):
        for other, m in enumerate(order):
            if place != other and min(place, other) < top and abs(raw[n] - raw[m]) < t:
                could.append(n)
                break
    could = could[:budget] if len(could[:budget]) > 1 else []
    better = iter(sorted(could, key=lambda n: (-taught[n], order.index(n))))
    return [next(better) if n in could else n for n in order]


@pytest.mark.parametrize("top", [1, 2, 4])
@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.5, None])
@pytest.mark.parametrize("budget", [0, 1, 2, 5, 99])
def test_the_order_is_that_of_the_definition(
    reranker: TextReranker, lists: Lists, top: int, threshold: float | None, budget: int
) -> None:
    teacher = Counting()
    cascade = Cascade(reranker, teacher, budget, top=top, threshold=threshold)
    predicted = cascade.predict(lists)
    teacher.asked.clear()
    t = np.inf if threshold is None else threshold
    for n, query in enumerate(lists.query_texts):
        documents = documents_of(lists, n)
        raw = [0.0] * len(documents)
        for one in reranker.rank(query, documents):
            raw[one.index] = one.raw
        taught = [truth(query, document) for document in documents]
        expected = simulated(raw, taught, top, t, budget)
        before = len(teacher.asked)
        found = cascade.rank(query, documents)
        assert [one.index for one in found] == expected
        calls = teacher.asked[before:]
        assert sum(len(asked) for _, asked in calls) == found.asked <= budget
        assert len(calls) == (found.asked > 0)
        rows = lists.groups.rows_of(n)
        assert np.argsort(-predicted[rows], kind="stable").tolist() == expected
        assert [one.raw for one in found] == sorted((one.raw for one in found), reverse=True)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        told = {one.index: one.teacher_score for one in found if one.teacher_score is not None}
        assert told == {index: taught[index] for index in told}
        assert len(told) == found.asked


def test_a_budget_for_all_gives_the_teachers_order(reranker: TextReranker, lists: Lists) -> None:
    cascade = Cascade(reranker, Counting(), 9)
    for n, query in enumerate(lists.query_texts):
        documents = documents_of(lists, n)
        expected = sorted(range(9), key=lambda m: -truth(query, documents[m]))
        assert [one.index for one in cascade.rank(query, documents)] == expected
        best = cascade.rank(query, documents, top_k=2)
        assert [one.index for one in best] == expected[:2]


def test_no_budget_and_threshold_0_ask_nobody(reranker: TextReranker, lists: Lists) -> None:
    teacher = Counting()
    expected = reranker.predict(lists)
    for cascade in (Cascade(reranker, teacher, 0), Cascade(reranker, teacher, 9, threshold=0.0)):
        np.testing.assert_array_equal(cascade.predict(lists), expected)
        query, documents = question(lists)
        cheap = reranker.rank(query, documents, explain=True)
        found = cascade.rank(query, documents, explain=True)
        assert list(found) == list(cheap)
        assert found.asked == 0
        assert found.failure is None
    assert not teacher.asked


class Tied:
    """A reranker that finds all documents alike."""

    def predict(self, lists: Lists) -> Any:
        return np.zeros(len(lists))


@pytest.mark.parametrize("threshold", [1e-9, None])
def test_documents_that_nothing_tells_apart_are_the_teachers(threshold: float | None) -> None:
    lists = Lists.of_texts(["unknown"], [["xx", "yy", "zz"]])
    taught = [1.0, 3.0, 2.0]
    cascade = Cascade(Tied(), lambda query, texts: taught, threshold=threshold)  # type: ignore[arg-type]
    assert np.argsort(-cascade.predict(lists)).tolist() == [1, 2, 0]


def raising(documents: list[str]) -> Any:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (raising, "out of memory"),
        (lambda documents: [1.0], "expected 9 scores"),
        (lambda documents: [float("nan")] * len(documents), "finite"),
        (lambda documents: None, "expected 9"),
    ],
)
def test_a_lying_teacher_changes_nothing(
    reranker: TextReranker, lists: Lists, fault: Any, problem: str
) -> None:
    cascade = Cascade(reranker, Counting(fault))
    query, documents = question(lists)
    found = cascade.rank(query, documents)
    assert list(found) == list(reranker.rank(query, documents))
    assert found.asked == 0
    assert problem in (found.failure or "")
    assert any("the reranker's" in note for note in found.notes)
    with pytest.warns(UserWarning, match="25 of 25 queries is the reranker's alone"):
        np.testing.assert_array_equal(cascade.predict(lists), reranker.predict(lists))
    with pytest.raises((DataError, RuntimeError), match=problem):
        cascade.tune(lists)


def test_a_slow_teacher_is_not_waited_for(reranker: TextReranker, lists: Lists) -> None:
    gate = threading.Event()

    def wait(documents: list[str]) -> Any:
        assert gate.wait(60)
        return [0.0] * len(documents)

    teacher = Counting(wait)
    cascade = Cascade(reranker, teacher, timeout=0.01)
    query, documents = question(lists)
    cheap = list(reranker.rank(query, documents))
    failures = []
    for _ in range(12):
        found = cascade.rank(query, documents)
        assert list(found) == cheap
        failures.append(found.failure or "")
    assert "no answer after 0.01 s" in failures[0]
    assert "open already" in failures[-1], "what it has not answered yet is bounded"
    assert len(teacher.asked) == 8
    gate.set()


def test_a_dead_endpoint_changes_nothing(reranker: TextReranker, lists: Lists) -> None:
    query, documents = question(lists)
    with serving(reranking) as server:
        cascade = Cascade(reranker, server.address + "/v1/rerank", timeout=30.0)
        alive = cascade.rank(query, documents)
    cascade.timeout = 0.3
    dead = cascade.rank(query, documents)
    assert alive.asked == 9
    assert alive.failure is None
    assert dead.failure is not None
    assert list(dead) == list(reranker.rank(query, documents))


def test_tuning_asks_the_least_that_keeps_the_gain(reranker: TextReranker) -> None:
    lists = made(60, seed=3, n_passages=9)
    answers = {
        (query, lists.items[row]): lists.y[row]
        for n, query in enumerate(lists.query_texts)
        for row in lists.groups.rows_of(n)
    }

    def teacher(query: str, documents: list[str]) -> list[float]:
        return [answers[query, document] for document in documents]

    weak = Backwards(reranker)
    cascade = Cascade(weak, teacher, 9)  # type: ignore[arg-type]
    cascade.tune(lists, "AP", share=0.9)
    curve = cascade.curve_
    values = [
        evaluate(
            Cascade(weak, teacher, 9, threshold=own.threshold).predict(lists),  # type: ignore[arg-type]
            lists.y,
            lists.groups,
            "AP",
        ).mean("AP")
        for own in curve.by_margin
    ]
    np.testing.assert_allclose([own.value for own in curve.by_margin], values)
    asked = [own.asked for own in curve.by_margin]
    assert asked == sorted(asked)
    assert (asked[0], asked[-1]) == (0.0, 9.0)
    assert curve.by_margin[-1].value == curve.by_depth[-1].value == 1.0
    enough = [own for own in curve.by_margin if own.value >= values[0] + 0.9 * (1 - values[0])]
    assert cascade.threshold == enough[0].threshold
    assert str(round(curve.by_margin[-1].asked, 2)) in curve.text()
    assert curve.to_dict()["n_queries"] == 60


class Backwards:
    """A reranker that is often wrong."""

    def __init__(self, reranker: TextReranker) -> None:
        self.reranker = reranker

    def predict(self, lists: Lists) -> Any:
        return -0.5 * self.reranker.predict(lists)


def test_a_teacher_that_gains_nothing_is_not_asked(reranker: TextReranker) -> None:
    lists = made(40, seed=5)
    cascade = Cascade(reranker, Counting()).tune(lists)
    assert cascade.threshold == 0.0
    assert not cascade.curve_.gain_is_sure
    assert cascade.rank(*question(lists)).asked == 0


def test_lists_without_labels_are_judged_by_the_teacher(reranker: TextReranker) -> None:
    lists = made(20, seed=5)
    bare = replace(lists, labels=None)
    teacher = Counting()
    curve = Cascade(reranker, teacher, 3).curve(bare)
    assert sum(len(asked) for _, asked in teacher.asked) == len(bare)
    assert curve.measure == "nDCG"
    whole = Cascade(reranker, Counting(), 6).curve(bare)
    assert whole.by_margin[-1].value == pytest.approx(1.0)


def test_a_file_names_the_teacher_and_asks_nobody(
    reranker: TextReranker, lists: Lists, tmp_path: Path
) -> None:
    query, documents = question(lists)
    path = tmp_path / "cascade.didyma.safetensors"
    with serving(reranking) as server:
        address = server.address + "/base/rerank#m"
        teacher = didyma.text.teachers.EndpointTeacher(address, "jina")
        cascade = Cascade(reranker, teacher, 7, top=3, threshold=0.25, timeout=20.0)
        expected = cascade.rank(query, documents)
        cascade.save(path)
        n_asked = len(server.asked)
        loaded = didyma.load(path)
        assert isinstance(loaded, Cascade)
        assert type(loaded.reranker) is TextReranker
        assert (loaded.budget, loaded.top, loaded.threshold, loaded.timeout) == (7, 3, 0.25, 20.0)
        assert loaded.teacher_name == address
        cheap = loaded.rank(query, documents)
        assert list(cheap) == list(reranker.rank(query, documents))
        assert f"no teacher is attached: {address}" in (cheap.failure or "")
        assert len(server.asked) == n_asked, "a file must not decide which server is asked"
        loaded.save(path)
        again = Cascade.load(path).attach()
        assert list(again.rank(query, documents)) == list(expected)
        assert server.asked[-1]["documents"]
        assert server.asked[-1]["model"] == "m"


def test_an_object_is_attached_by_hand(reranker: TextReranker, tmp_path: Path) -> None:
    path = tmp_path / "cascade.didyma.safetensors"
    Cascade(reranker, Counting()).save(path)
    loaded = Cascade.load(path)
    assert loaded.teacher_name is None
    with pytest.raises(DataError, match="names none"):
        loaded.attach()
    assert loaded.attach(Counting()).rank("ship", ["a ship", "a tree"]).asked == 2


def test_it_has_what_a_reranker_has(reranker: TextReranker, lists: Lists) -> None:
    cascade = Cascade(reranker, Counting(), 0)
    assert cascade.uses_scores == reranker.uses_scores
    assert cascade.gate_ is reranker.gate_
    assert cascade.calibration_ is reranker.calibration_
    assert cascade.language == reranker.language
    query, documents = question(lists)
    assert cascade.explain(query, documents) == reranker.explain(query, documents)
    expected = reranker.evaluate(lists, "AP").mean("AP")
    assert cascade.evaluate(lists, "AP").mean("AP") == expected
    assert str(cascade.drift(lists)) == str(reranker.drift(lists))
    assert list(cascade.rank(query, [])) == []


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"budget": -1}, "budget"),
        ({"budget": 1.5}, "budget"),
        ({"top": 0}, "top"),
        ({"threshold": -1.0}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"timeout": float("inf")}, "timeout"),
    ],
)
def test_settings_are_checked(reranker: TextReranker, settings: Any, field: str) -> None:
    with pytest.raises(DataError) as raised:
        Cascade(reranker, Counting(), **settings)
    assert raised.value.field == field


def test_margins_of_short_lists() -> None:
    for raw in (np.zeros(0), np.zeros(1)):
        assert not len(contested(raw, 3, None, 10))
        order, values = rearranged(raw, np.zeros(0, np.int64), np.zeros(0))
        np.testing.assert_array_equal(order, np.arange(len(raw)))
        np.testing.assert_array_equal(values, raw)
