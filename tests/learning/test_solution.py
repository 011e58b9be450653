"""What all solvers ask of C."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.learning.solution import LARGEST_C, check_C


@pytest.mark.parametrize("C", [1, 0.5, np.float32(0.5), Fraction(1, 2), LARGEST_C, 1 / LARGEST_C])
def test_numbers(C: Any) -> None:
    assert check_C(C) == float(C)
    assert type(check_C(C)) is float


@pytest.mark.parametrize(
    "C", [0, -1.0, np.nan, np.inf, 10**400, 10**101, True, np.True_, None, "1", 1j, [1.0]]
)
def test_what_is_no_cost(C: Any) -> None:
    with pytest.raises(DataError, match=r"^C: expected a positive number from 1e-100 to 1e"):
        check_C(C)
