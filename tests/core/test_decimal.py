from __future__ import annotations

import math
import struct
from decimal import Decimal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma._core.data import decimal, numbers


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def parse(words: list[str]) -> tuple[np.ndarray, list[int], int]:
    text = np.frombuffer((" ".join(words) + "\n").encode(), np.uint8)
    stops = np.cumsum([len(word.encode()) + 1 for word in words]) - 1
    starts = np.concatenate([[0], stops[:-1] + 1])
    values, unsure = np.empty(len(words)), np.empty(len(words), np.int64)
    wrong, n_unsure = numbers(text, np.column_stack([starts, stops]), values, unsure)
    return values, unsure[:n_unsure].tolist(), wrong


@settings(deadline=None)
@given(st.booleans(), st.integers(0, 10**18 - 1), st.integers(-330, 330))
def test_decimal_is_float_or_unsure(negative: bool, mantissa: int, exponent: int) -> None:
    value = decimal(negative, mantissa, exponent)
    if not math.isnan(value):
        assert bits(value) == bits(float(f"{'-' * negative}{mantissa}e{exponent}"))


@settings(deadline=None)
@given(st.integers(2**53, 2**54 - 1), st.integers(-4, 4))
def test_halfway_between_doubles_is_never_wrong(odd: int, power: int) -> None:
    halfway = Decimal(odd | 1) * Decimal(2) ** power
    sign, digits, exponent = halfway.as_tuple()
    mantissa = int("".join(map(str, digits)))
    if mantissa < 10**18:
        value = decimal(bool(sign), mantissa, int(exponent))
        assert math.isnan(value) or bits(value) == bits(float(halfway))


@settings(deadline=None)
@given(st.lists(st.floats(1e-280, 1e280), min_size=1))
def test_shortest_digits_are_parsed(values: list[float]) -> None:
    parsed, unsure, wrong = parse([repr(value) for value in values])
    assert wrong == -1
    for row, value in enumerate(values):
        assert row in unsure or bits(parsed[row]) == bits(value)


def test_few_random_numbers_are_unsure() -> None:
    words = [repr(value) for value in np.random.default_rng(0).normal(size=10_000).tolist()]
    parsed, unsure, wrong = parse(words)
    sure = np.setdiff1d(np.arange(len(words)), unsure)
    assert wrong == -1
    assert len(unsure) < 50
    assert [bits(parsed[row]) for row in sure] == [bits(float(words[row])) for row in sure]


def test_every_form_of_a_number() -> None:
    words = ["0", "-0", "-0.0", "+1", "1.", ".5", "-.5", "1e3", "1E+3", "1.5e-3", "007", "1e0"]
    parsed, unsure, wrong = parse(words)
    assert (unsure, wrong) == ([], -1)
    assert [bits(value) for value in parsed] == [bits(float(word)) for word in words]


def test_leading_zeros_are_not_digits() -> None:
    parsed, unsure, _ = parse(["0" * 30 + ".00000000001234567890123456"])
    assert unsure == []
    assert parsed[0] == 1.234567890123456e-11


def test_other_words_are_not_numbers() -> None:
    bad = [".", "-", "+", "e5", "1e", "1e+", "1.2.3", "1_0", "0x1", "nan", "inf", "-inf", "1,5"]
    for word in [*bad, "infinity", "1#2", "١", "--1", "1e5.0"]:
        assert parse(["1", word])[2] == 1, word
