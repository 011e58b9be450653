"""Recency and boosts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from didyma.errors import DataError
from didyma.ranking import Ranked, Ranking
from didyma.text import Boost, Diversity, Recency, take_steps
from didyma.text.steps.step import relevances

NOW = datetime(2026, 3, 31, tzinfo=UTC)


def dated(value: object) -> Ranked:
    return Ranked(3, 0.5, metadata={"date": value})


@pytest.mark.parametrize(
    ("value", "days"),
    [
        ("2026-03-31", 0),
        ("2026-03-30T12:00:00Z", 0.5),
        ("2026-03-30T12:00:00+02:00", 14 / 24),
        (date(2025, 3, 31), 365),
        (NOW - timedelta(days=9), 9),
        (NOW.timestamp() - 86400, 1),
        ("2027-01-01", 0),
    ],
)
def test_decay_is_that_of_its_definition(value, days):
    factor, reason = Recency("date", "30d", 0.4, NOW).factor(dated(value))
    assert factor == pytest.approx(1 - 0.4 * (1 - 2 ** (-days / 30)))
    assert f"{factor:.3g}" in reason


def test_the_age_is_counted_from_the_call_unless_told():
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    factor, _ = Recency("date", "1d", 1.0).factor(dated(yesterday))
    assert factor == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("value", ["yesterday", 1.7e12, True, ["2026-01-01"], {}])
def test_what_is_no_date_is_told_with_its_document(value):
    with pytest.raises(DataError, match="document 3, date"):
        Recency("date", "30d").factor(dated(value))


@pytest.mark.parametrize("age", ["30", "d", "-3d", "3 days", "0d", "9" * 400 + "d", 0, True, None])
def test_half_lives_are_checked(age):
    with pytest.raises(DataError, match="half_life"):
        Recency("date", age)


@pytest.mark.parametrize(
    ("value", "field", "is_raised"),
    [
        ("news", "news", True),
        ("news", "law", False),
        ("news", ["old", "news"], True),
        ("7", 7, True),
        (7, 7.0, True),
        ("true", True, True),
        (1, True, False),
        ("news", None, False),
        ("news", {"news": 1}, False),
    ],
)
def test_boosts_compare_what_is_written(value, field, is_raised):
    factor, _ = Boost("kind", value, 0.25).factor(Ranked(0, 0.5, metadata={"kind": field}))
    assert factor == (1.25 if is_raised else 1.0)


@pytest.mark.parametrize("amount", [-1, float("inf"), float("nan")])
def test_amounts_are_checked(amount):
    with pytest.raises(DataError, match="amount"):
        Boost("kind", "news", amount)


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
