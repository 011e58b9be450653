"""Rerankers that learn from a teacher."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma import Lists, TextReranker
from didyma.data.attributes import Attributes
from didyma.errors import DataError
from didyma.metrics import evaluate
from didyma.text import distil
from didyma.text.distillation import _mixed
from didyma.text.teachers import ScoreStore
from tests.text.texts import made


class Teacher:
    """Knows the answers, on a scale of its own."""

    def __init__(self, lists: Lists, noise: float = 0.5) -> None:
        self.asked: list[str] = []
        rng = np.random.default_rng(1)
        self.scores = {
            (query, lists.items[row]): 4.0 * lists.y[row] - 3.0 + noise * rng.random()
            for n, query in enumerate(lists.queries or ())
            for row in lists.groups.rows_of(n)
        }

    def __call__(self, query: str, documents: list[str]) -> list[float]:
        self.asked += [query] * len(documents)
        return [self.scores.get((query, document), -5.0) for document in documents]


def bare(lists: Lists) -> Lists:
    return replace(lists, labels=None)


def quick() -> TextReranker:
    return TextReranker(quick=True, random_state=3)


def test_unlabelled_queries_are_learned_from_a_teacher() -> None:
    lists = made(60)
    teacher = Teacher(lists)
    done = distil(bare(lists), teacher, quick())
    assert (done.n_taught, done.n_judged) == (48, 0)
    assert len(teacher.asked) == len(lists)
    (kept,) = done.kept
    assert (kept.judged_by, kept.measure, kept.n_queries) == ("the teacher's scores", "nDCG", 12)
    names = list(kept.means)
    assert names[1:] == ["student", "teacher"]
    assert kept.means["teacher"] == pytest.approx(1.0)
    share = (kept.means["student"] - kept.means[names[0]]) / (1 - kept.means[names[0]])
    assert kept.share == pytest.approx(share)
    assert f"{max(0, share):.0%}" in str(done)
    fresh = made(40, seed=9)
    learned = evaluate(done.reranker.predict(fresh), fresh.y, fresh.groups, "AP").mean("AP")
    assert learned > 0.9


def test_held_out_queries_are_not_learned_from() -> None:
    lists = made(30)
    done = distil(bare(lists), Teacher(lists), quick())
    held = set(map(int, done.kept[0].evaluations["student"].queries))
    assert len(held) == 6
    train = bare(lists).select_lists([n for n in range(30) if n not in held])
    teacher = Teacher(lists)
    labels = np.concatenate(
        [
            teacher(query, [train.items[row] for row in train.groups.rows_of(n)])
            for n, query in enumerate(train.queries or ())
        ]
    )
    expected = quick().fit(replace(train, labels=labels))
    np.testing.assert_array_equal(done.reranker.predict(lists), expected.predict(lists))


def test_judgements_win_and_the_rest_is_taught() -> None:
    lists = made(40)
    labels = lists.y.copy()
    labels[lists.groups.codes % 2 == 0] = 0.0  # not judged
    teacher = Teacher(lists)
    done = distil(replace(lists, labels=labels), teacher, quick())
    assert (done.n_taught, done.n_judged) == (16, 16)
    assert [own.judged_by for own in done.kept] == ["judgements", "the teacher's scores"]
    assert [own.n_queries for own in done.kept] == [4, 4]
    assert done.kept[0].measure == "AP"
    queries = lists.queries or []
    asked = {queries.index(query) for query in teacher.asked}
    assert {n for n in range(40) if n % 2 == 0} <= asked
    odd = [n for n in asked if n % 2]
    assert odd == [int(n) for n in sorted(map(int, done.kept[0].evaluations["student"].queries))]
    further = distil(
        bare(lists).select_lists(np.arange(0, 40, 2)),
        Teacher(lists),
        quick(),
        judged=lists.select_lists(np.arange(1, 40, 2)),
    )
    assert (further.n_taught, further.n_judged) == (16, 16)


def test_judgements_stand_on_the_teachers_scale() -> None:
    labels = np.array([2.0, 0.0, 1.0, 0.0, 0.0])
    taught = np.array([np.nan, np.nan, np.nan, -4.0, 6.0])
    is_judged = np.array([True, True, True, False, False])
    mixed = _mixed(labels, taught, is_judged, np.ones(5, bool))
    assert mixed.tolist() == [6.0, -4.0, 1.0, -4.0, 6.0]
    unit = _mixed(labels, taught / 20 + 0.3, is_judged, np.ones(5, bool))
    np.testing.assert_allclose(unit, [1.0, 0.0, 0.5, 0.1, 0.6])


@pytest.mark.parametrize("transformed", [lambda t: t, lambda t: 1 / (1 + np.exp(-t))])
def test_a_teachers_score_never_becomes_a_column(transformed: Any) -> None:
    lists = made(30)
    teacher = Teacher(lists)
    scores = np.array(
        [
            teacher.scores[(lists.queries or [])[lists.groups.codes[row]], text]
            for row, text in enumerate(lists.items)
        ]
    )
    leaking = replace(bare(lists), scores=transformed(scores))
    with pytest.raises(DataError, match="scores: orders all documents as the teacher does"):
        distil(leaking, teacher, quick())
    signal = Attributes(signals={"relevance": transformed(scores)})
    with pytest.raises(DataError, match="relevance: orders all documents"):
        distil(replace(bare(lists), attributes=signal), teacher, quick())
    honest = scores.copy()
    honest[:2] = honest[:2].mean()
    done = distil(replace(bare(lists), scores=honest), teacher, quick())
    assert done.reranker.uses_scores


def test_the_student_asks_for_no_teacher() -> None:
    lists = made(30, scores=True)
    done = distil(bare(lists), Teacher(lists), quick())
    names = done.reranker.featuriser.names
    assert not [name for name in names if "teacher" in name]
    assert len(done.reranker.rank("ship", ["a ship", "a tree"], scores=[1.0, 2.0])) == 2


def test_what_is_known_is_not_asked_for_again(tmp_path: Path) -> None:
    lists = made(20)
    first, again = Teacher(lists), Teacher(lists)
    one = distil(bare(lists), first, quick(), store=ScoreStore(tmp_path))
    two = distil(bare(lists), again, quick(), store=ScoreStore(tmp_path))
    assert len(again.asked) == 3, "the fixed texts by which a teacher is known again"
    np.testing.assert_array_equal(one.reranker.predict(lists), two.reranker.predict(lists))


def test_without_held_out_queries_nothing_is_claimed() -> None:
    lists = made(20)
    done = distil(bare(lists), Teacher(lists), quick(), held_out=0.0)
    assert done.kept == ()
    assert done.n_taught == 20


def test_what_cannot_be_used_is_refused() -> None:
    lists = made(12)
    with pytest.raises(DataError, match="held_out"):
        distil(bare(lists), Teacher(lists), quick(), held_out=1.0)
    with pytest.raises(DataError, match="gives 1 to every document"):
        distil(bare(lists), lambda query, documents: [1.0] * len(documents), quick())
    with pytest.raises(DataError, match="judged: expected labels"):
        distil(bare(lists), Teacher(lists), quick(), judged=bare(lists))
    with pytest.raises(DataError, match="judged: expected first-stage scores"):
        distil(bare(lists), Teacher(lists), quick(), judged=made(5, scores=True))
    with pytest.raises(DataError, match="finite"):
        distil(bare(lists), lambda query, documents: [float("nan")] * len(documents), quick())


def test_a_teacher_that_gains_nothing_keeps_no_share() -> None:
    lists = made(30)
    done = distil(lists, lambda query, documents: [len(text) for text in documents], quick())
    kept = done.kept[0]
    assert kept.judged_by == "judgements"
    assert kept.share is None
    assert "gains nothing" in str(kept)
    assert kept.to_dict()["share"] is None
