"""Words of a text as spans of code points, and a table that knows the words met before."""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = [
    "BETWEEN",
    "DIGIT",
    "LETTER",
    "MARK",
    "POINT",
    "UNKNOWN",
    "UNSPACED",
    "find",
    "insert",
    "split",
]

# What a character is, those of words first among the known; `split` must not meet UNKNOWN.
UNKNOWN, LETTER, DIGIT, MARK, POINT, UNSPACED, BETWEEN = range(7)

_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_SPREAD, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@jit
def split(codes: Any, kinds: Any, starts: Any, stops: Any, hashes: Any) -> Any:
    """Find the words of ``codes``; word w is ``codes[starts[w]:stops[w]]``.

    A word is a run of letters, digits and marks, and of points that stand between digits. Where a
    script has no spaces, each pair of neighbouring characters is a word; a character is a letter
    with the marks that follow it. Returns the number of words, at most ``len(codes)``.
    """
    n, at, end = 0, 0, len(codes)
    while at < end:
        kind = kinds[codes[at]]
        start = at
        if LETTER <= kind <= DIGIT:
            while at < end and _continues(codes, kinds, at):
                at += 1
            starts[n], stops[n] = start, at
            n += 1
        elif kind == UNSPACED:
            before, alone = start, True
            at = _after_character(codes, kinds, at)
            while at < end and kinds[codes[at]] == UNSPACED:
                last = at
                at = _after_character(codes, kinds, at)
                starts[n], stops[n] = before, at
                n += 1
                before, alone = last, False
            if alone:
                starts[n], stops[n] = start, at
                n += 1
        else:
            at += 1
    for w in range(n):
        value = _OFFSET
        for at in range(starts[w], stops[w]):
            value = (value ^ np.uint64(codes[at])) * _PRIME
        hashes[w] = (value ^ (value >> _HALF)) * _SPREAD
    return n


@jit
def _continues(codes: Any, kinds: Any, at: Any) -> Any:
    """Whether a character belongs to the word that stands before it."""
    kind = kinds[codes[at]]
    if kind != POINT:
        return LETTER <= kind <= MARK
    return kinds[codes[at - 1]] == DIGIT and at + 1 < len(codes) and kinds[codes[at + 1]] == DIGIT


@jit
def _after_character(codes: Any, kinds: Any, at: Any) -> Any:
    at += 1
    while at < len(codes) and kinds[codes[at]] == MARK:
        at += 1
    return at


@jit
def find(hashes: Any, keys: Any, values: Any, found: Any) -> Any:
    """Set ``found[i]`` to the value of ``hashes[i]``, −1 where the table lacks it; count these.

    A table has 2^k places, some of them empty (value −1); a key stands at or after its place.
    """
    absent, last = 0, len(keys) - 1
    for i in range(len(hashes)):
        at = np.int64(hashes[i] >> _HALF) & last
        while values[at] >= 0 and keys[at] != hashes[i]:
            at = (at + 1) & last
        found[i] = values[at]
        absent += values[at] < 0
    return absent


@jit
def insert(hashes: Any, first: Any, keys: Any, values: Any) -> Any:
    """Put distinct keys that the table lacks into it; key i gets the value ``first`` + i."""
    last = len(keys) - 1
    for i in range(len(hashes)):
        at = np.int64(hashes[i] >> _HALF) & last
        while values[at] >= 0:
            at = (at + 1) & last
        keys[at], values[at] = hashes[i], first + i
