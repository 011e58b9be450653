"""Recency and boosts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from didyma.errors import DataError
from didyma.ranking import Ranked
from didyma.text import Boost, Recency

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
