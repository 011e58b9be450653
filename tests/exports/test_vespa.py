"""The reader of ranking expressions knows precedence, and what it does not know it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.exports.vespa import evaluate_function

X = {"x": np.array([1.0, -2.0, np.nan])}


def value(expression: str) -> list[float]:
    profile = f"# a comment {{\nfunction f() {{ expression {{ {expression} }} }}\n"
    profile += "function a() {\n    expression: attribute(x)\n}\n"
    return np.broadcast_to(evaluate_function(profile, "f", X), 3).tolist()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("2 + 3 * 4 - 6 / 2", 11.0),
        ("(2 + 3) * (-4)", -20.0),
        ("8 / 2 / 2", 2.0),
        ("1 - 2 - 3", -4.0),
        ("1.5e-3 * 2E3", 3.0),
        ("min(max(3, 1), 2)", 2.0),
        ("if (2 <= 2, 10, 20) + if (1 == 2, 1, 2)", 12.0),
    ],
)
def test_values(expression: str, expected: float) -> None:
    assert value(expression) == [expected] * 3


def test_rows() -> None:
    assert value("if (isNan(a) == 1, 7, if (a <= 0, -a, 3))") == [3.0, 2.0, 7.0]
    assert value("if (a <= 5, 1, 0)") == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "expression", ["1 +* 2", "(1", "1 2", "exp(1)", "1 ~ 2", "if (1, 2", "1 +"]
)
def test_what_it_does_not_know_is_refused(expression: str) -> None:
    with pytest.raises(DataError):
        value(expression)
