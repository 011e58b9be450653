"""Numbers as text."""

import math

import pytest

from didyma.values import decimal


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, ".0000"), (0.99996, "1.0000"), (-1, "-1.0000"), (12.5, "12.5000"), (math.nan, "-")],
)
def test_decimal(value: float, text: str) -> None:
    assert decimal(value) == text
