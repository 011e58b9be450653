"""Numbers from text: the double that ``float`` gives, or NaN where that is not certain.

A number is an integer mantissa times a power of ten. `decimal` rounds it correctly wherever its
arithmetic can tell, and gives NaN for the few that are then left to ``float``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from didyma.kernels.jit import jit
from didyma.kernels.text import byte, is_digit, is_end

__all__ = ["decimal", "number", "numbers"]

_PLUS, _MINUS, _DOT, _ZERO, _E = 43, 45, 46, 48, 101

_MAX_DIGITS = 18  # of a mantissa in 64 bits
_EXACT_POWERS = np.array([float(10**k) for k in range(23)])  # those that are doubles
_LEAST_POWER, _GREATEST_POWER = -300, 280  # with 18 digits, no overflow and no subnormal


def _truncated_powers() -> tuple[Any, Any]:
    """The leading 64 bits t of each power of ten and their place: t·2^e ≤ 10^q < (t + 1)·2^e."""
    leading, place = [], []
    for q in range(_LEAST_POWER, _GREATEST_POWER + 1):
        power = 10 ** abs(q)
        if q < 0:
            e = -(power.bit_length() + 63)
            leading.append((1 << -e) // power)
        else:
            e = power.bit_length() - 64
            leading.append(power >> e if e > 0 else power << -e)
        place.append(e)
    return np.array(leading, np.uint64), np.array(place, np.int64)


_POWER_BITS, _POWER_PLACE = _truncated_powers()
_32 = np.uint64(32)
_LOW_HALF = np.uint64(2**32 - 1)
_TOP_BIT = np.uint64(2**63)


@jit
def _high_product(a: Any, b: Any) -> Any:
    """The upper 64 bits of the 128-bit product of two 64-bit integers."""
    a_high, a_low = a >> _32, a & _LOW_HALF
    b_high, b_low = b >> _32, b & _LOW_HALF
    middle = a_high * b_low + ((a_low * b_low) >> _32)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _32) + (other >> _32)


@jit
def decimal(negative: Any, mantissa: Any, exponent: Any) -> Any:
    """The double nearest to ±mantissa·10^exponent, or NaN where this arithmetic cannot tell.

    Two exact doubles give a correctly rounded product or quotient. Otherwise mantissa times the
    truncated power is known to two units in its 64th bit: enough, unless the 53-bit rounding
    boundary lies between.
    """
    if mantissa < 2**53 and -22 <= exponent <= 22:
        value = float(mantissa)
        if exponent < 0:
            value /= _EXACT_POWERS[-exponent]
        else:
            value *= _EXACT_POWERS[exponent]
    elif mantissa == 0:
        value = 0.0
    elif _LEAST_POWER <= exponent <= _GREATEST_POWER:
        shifted, shift = np.uint64(mantissa), 0
        while shifted < _TOP_BIT:
            shifted <<= np.uint64(1)
            shift += 1
        power = exponent - _LEAST_POWER
        product = _high_product(shifted, _POWER_BITS[power])
        dropped = 11 if product >= _TOP_BIT else 10
        kept = np.int64(product >> np.uint64(dropped))
        rest = np.int64(product & np.uint64((1 << dropped) - 1))
        half = 1 << (dropped - 1)
        if half - 1 <= rest <= half:
            return math.nan
        place = dropped + 64 + _POWER_PLACE[power] - shift
        value = math.ldexp(float(kept + (rest > half)), int(place))
    else:
        return math.nan
    return -value if negative else value


@jit
def number(text: Any, at: Any) -> Any:
    """Parse the token at ``at``: (its end or -1 where it is not a number, its value or NaN)."""
    negative = byte(text, at) == _MINUS
    if negative or byte(text, at) == _PLUS:
        at += 1
    begin = at
    mantissa, exponent = np.int64(0), 0
    while is_digit(byte(text, at)):
        mantissa = mantissa * 10 + (byte(text, at) - _ZERO)
        at += 1
    digits = at - begin
    if byte(text, at) == _DOT:
        at += 1
        point = at
        while is_digit(byte(text, at)):
            mantissa = mantissa * 10 + (byte(text, at) - _ZERO)
            at += 1
        exponent = point - at
        digits += at - point
    if digits == 0:
        return -1, math.nan
    if digits > _MAX_DIGITS:
        while byte(text, begin) == _ZERO or byte(text, begin) == _DOT:
            digits -= byte(text, begin) == _ZERO
            begin += 1
    if byte(text, at) | 32 == _E:
        at += 1
        down = byte(text, at) == _MINUS
        if down or byte(text, at) == _PLUS:
            at += 1
        point, power = at, 0
        while is_digit(byte(text, at)):
            power = min(power * 10 + (byte(text, at) - _ZERO), 100_000)
            at += 1
        if at == point:
            return -1, math.nan
        exponent += -power if down else power
    if not is_end(byte(text, at)):
        return -1, math.nan
    if digits > _MAX_DIGITS:
        return at, math.nan
    return at, decimal(negative, mantissa, exponent)


@jit
def numbers(text: Any, spans: Any, values: Any, unsure: Any) -> Any:
    """Parse the number in each span (start, stop) into ``values``.

    Returns (the first row that holds no number or -1, how many rows ``unsure`` now lists).
    """
    n_unsure = 0
    for row in range(len(spans)):
        end, values[row] = number(text, spans[row, 0])
        if end != spans[row, 1]:
            return row, n_unsure
        if math.isnan(values[row]):
            unsure[n_unsure] = row
            n_unsure += 1
    return -1, n_unsure
