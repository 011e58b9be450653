"""Steps that multiply each document's value: boosts by a field, decay by age."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import inf, isfinite
from typing import Any

from didyma.data.field_kinds import days_since_1970
from didyma.errors import DataError
from didyma.ranking.ranked import Ranked
from didyma.text.steps.step import Step, Values, check_weight, in_document

LONGEST = 40  # characters of a value in a reason
DAYS = {"h": 1 / 24, "d": 1.0, "w": 7.0, "y": 365.25}
MILLISECONDS = 1e11  # numbers from here on are no seconds: that is the year 5138


class Factor(Step):
    """A step that multiplies each document's value by a factor, which depends on one field."""

    field: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The field that it looks at."""
        return (self.field,)

    def values(
        self, documents: Sequence[Ranked], values: Values, top_k: int
    ) -> tuple[Values, list[str]]:
        """The products."""
        factors = [self.factor(document) for document in documents]
        return values * [factor for factor, _ in factors], [reason for _, reason in factors]

    @abstractmethod
    def factor(self, document: Ranked) -> tuple[float, str]:
        """The factor of a document, and why."""


@dataclass(frozen=True)
class Boost(Factor):
    """Multiplies the values of documents whose field has a value by 1 + amount.

    A field that is a list has each of its members as a value. Numbers and truths are compared as
    they are written, so that "7" is 7 and "true" is True.

    >>> boost = Boost("tags", "draft", -0.5)
    >>> boost.factor(Ranked(0, 0.9, metadata={"tags": ["draft", "old"]}))
    (0.5, 'tags is draft, × 0.5')
    >>> boost.factor(Ranked(1, 0.9))
    (1.0, 'tags is not draft')

    Parameters
    ----------
    field : str
        A field of documents.
    value : str, int, float or bool
        The value to look for.
    amount : float > -1
        0.2 raises values by a fifth, -0.5 halves them.
    """

    field: str
    value: Any
    amount: float
    name = "boost"

    def __post_init__(self) -> None:
        if not isfinite(self.amount) or self.amount <= -1:
            raise DataError(f"expected a number above -1, found {self.amount!r}", field="amount")

    def factor(self, document: Ranked) -> tuple[float, str]:
        """1 + amount where the field has the value."""
        values = document.metadata.get(self.field)
        written = _written(self.value)
        if written not in map(_written, values if isinstance(values, list | tuple) else [values]):
            return 1.0, f"{self.field} is not {written:.{LONGEST}}"
        return 1 + self.amount, f"{self.field} is {written:.{LONGEST}}, × {1 + self.amount:.3g}"


def _written(value: Any) -> str | None:
    """A text, number or truth as text; None of anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


@dataclass(frozen=True)
class Recency(Factor):
    """Multiplies the value of a document of age a by a factor that falls from 1 to 1 − weight.

        1 − weight · (1 − 2^(−a / half_life))

    A document without a date keeps its value, and one from the future is as old as today's.

    >>> recency = Recency("date", half_life="30d", weight=0.4, now="2026-03-31")
    >>> factor, reason = recency.factor(Ranked(0, 0.9, metadata={"date": "2026-03-01"}))
    >>> round(factor, 3), reason
    (0.8, '30 days old, × 0.8')

    Parameters
    ----------
    field : str
        A field with dates as 2024-12-31 or 2024-12-31T09:30:00Z, or seconds since 1970.
    half_life : str, timedelta or float
        Age at which half of the weight is gone: "12h", "30d", "2w", "1y", or a number of days.
    weight : float
        What an old document loses at most, in (0, 1].
    now : date or str, optional
        When ages are counted from; unless given, the time of the call.
    """

    field: str
    half_life: Any
    weight: float = 0.5
    now: Any = None
    name = "recency"

    def __post_init__(self) -> None:
        days_in(self.half_life)
        check_weight(self.weight)
        if self.now is not None and _days(self.now) is None:
            raise DataError(f"expected a date as 2024-12-31, found {self.now!r:.40}", field="now")

    def factor(self, document: Ranked) -> tuple[float, str]:
        """By the age of a document."""
        value = document.metadata.get(self.field)
        if value is None:
            return 1.0, f"without {self.field}"
        written = _days(value)
        if written is None:
            raise DataError(
                f"expected a date as 2024-12-31, found {value!r:.40}",
                field=in_document(document, self.field),
            )
        today = _days(datetime.now(UTC) if self.now is None else self.now)
        age = max(0.0, (today or 0.0) - written)
        factor = 1 - self.weight * (1 - 2 ** (-age / days_in(self.half_life)))
        return factor, f"{_age(age)} old, × {factor:.3g}"


def days_in(half_life: Any) -> float:
    """The days of a half-life.

    >>> days_in("2w"), days_in(timedelta(hours=6)), days_in(30)
    (14.0, 0.25, 30.0)
    """
    days = -inf
    if isinstance(half_life, timedelta):
        days = half_life / timedelta(days=1)
    elif isinstance(half_life, int | float) and not isinstance(half_life, bool):
        days = float(half_life)
    elif isinstance(half_life, str):
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([hdwy])", half_life.strip(), re.ASCII)
        days = float(match[1]) * DAYS[match[2]] if match else -inf
    if not isfinite(days) or days <= 0:
        raise DataError(
            f"expected a time such as 12h, 30d, 2w or 1y, found {half_life!r:.40}",
            field="half_life",
        )
    return days


def _days(value: Any) -> float | None:
    """Days since 1970 of a date, or of seconds since then."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value / 86400 if abs(value) < MILLISECONDS else None
    return days_since_1970(value) if isinstance(value, str | date) else None


def _age(days: float) -> str:
    return f"{days:.0f} days" if days >= 2 else f"{24 * days:.0f} hours"
