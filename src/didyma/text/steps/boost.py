"""Boosts of documents by the value of a field."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from didyma.errors import DataError
from didyma.ranking.ranked import Ranked
from didyma.text.steps.step import Factor

LONGEST = 40  # characters of a value in a reason


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

    @property
    def fields(self) -> tuple[str, ...]:
        """The field that it looks at."""
        return (self.field,)

    def factor(self, document: Ranked) -> tuple[float, str]:
        """1 + amount where the field has the value."""
        found = document.metadata.get(self.field)
        written = _written(self.value)
        if written not in map(_written, found if isinstance(found, list | tuple) else [found]):
            return 1.0, f"{self.field} is not {written:.{LONGEST}}"
        return 1 + self.amount, f"{self.field} is {written:.{LONGEST}}, × {1 + self.amount:.3g}"


def _written(value: Any) -> str | None:
    """A text, number or truth as text; None of anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None
