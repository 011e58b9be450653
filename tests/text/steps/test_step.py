"""Steps one after the other, and what they say of themselves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from didyma.errors import DataError
from didyma.ranking import Ranked, Ranking
from didyma.text import Boost, Diversity, Recency, take_steps
from didyma.text.steps.step import relevances

NOW = datetime(2026, 3, 31, tzinfo=UTC)


def test_steps_are_taken_in_order_and_each_is_told():
    ranking = Ranking(
        [
            Ranked(0, 0.8, raw=2.0, metadata={"date": "2025-03-31", "kind": "law"}),
            Ranked(1, 0.6, raw=1.0, metadata={"date": "2026-03-31", "kind": "law"}),
            Ranked(2, 0.5, raw=0.5, metadata={"date": "2026-03-31", "kind": "news"}),
        ],
        ("a note",),
    )
    then = [Recency("date", "1d", 0.5, NOW), Boost("kind", "news", 0.3), Diversity(0.1, "kind")]
    found = take_steps(ranking, then)
    assert [one.index for one in found] == [2, 1, 0]
    assert [step.step for step in found[0].steps] == ["recency", "boost", "diversity"]
    assert [step.value for step in found[0].steps] == pytest.approx([0.5, 0.65, 0.585])
    assert [(step.rank_before, step.rank) for step in found[0].steps] == [(3, 2), (2, 1), (1, 1)]
    assert [one.score for one in found] == [0.5, 0.6, 0.8]
    assert found.notes == ("a note",)


def test_a_field_that_no_document_has_is_noted():
    found = take_steps(Ranking([Ranked(0, 0.5)]), [Boost("kind", "news", 1)])
    assert found.notes == ("boost: no document has kind",)


def test_diversity_comes_last():
    with pytest.raises(DataError, match="expected diversity as the last step"):
        take_steps(Ranking(), [Diversity(0.1), Boost("kind", "news", 1)])
    with pytest.raises(DataError, match="then"):
        take_steps(Ranking(), [0.3])


def test_uncalibrated_scores_are_stretched():
    assert relevances([Ranked(0, 4.0, raw=4.0), Ranked(1, 4.0, raw=4.0)]).tolist() == [1, 1]
    assert relevances([Ranked(0, -4.0, raw=-4.0)]).tolist() == [1]
    assert relevances([Ranked(0, 3.0, raw=3.0), Ranked(1, -1.0, raw=-1.0)]).tolist() == [1, 0]
    assert relevances([Ranked(0, 0.4, raw=4.0), Ranked(1, 0.1, raw=3.0)]).tolist() == [0.4, 0.1]
    assert relevances([]).tolist() == []


def test_no_steps_leave_a_ranking_as_it_is():
    ranking = Ranking([Ranked(0, 0.5), Ranked(1, 0.4)], ("a note",))
    found = take_steps(ranking, [], 1)
    assert (list(found), found.notes) == ([ranking[0]], ("a note",))
