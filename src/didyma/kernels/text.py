"""Text as bytes: characters, words, and columns of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = [
    "HASH",
    "NEWLINE",
    "byte",
    "fields",
    "gather",
    "is_digit",
    "is_end",
    "is_space",
    "skip_space",
]

NEWLINE, HASH = 10, 35
_TAB, _RETURN, _SPACE, _ZERO = 9, 13, 32, 48


@jit
def byte(text: Any, at: Any) -> Any:
    """``text[at]`` as an integer, without the test for places that count from the end."""
    return np.int64(text[np.uint64(at)])


@jit
def is_digit(code: Any) -> Any:
    """Whether a byte is one of 0 to 9."""
    return _ZERO <= code < _ZERO + 10


@jit
def is_space(code: Any) -> Any:
    """Whether a byte is white space, the newline included."""
    return code == _SPACE or _TAB <= code <= _RETURN


@jit
def is_end(code: Any) -> Any:
    """Whether a byte ends a word: white space, or the start of a comment."""
    return code == HASH or is_space(code)


@jit
def skip_space(text: Any, at: Any) -> Any:
    """The next byte that is not white space within the line."""
    while is_space(byte(text, at)) and byte(text, at) != NEWLINE:
        at += 1
    return at


@jit
def fields(text: Any, spans: Any) -> Any:
    """Find the words of each line that is not blank: ``spans[row, word]`` = (start, stop).

    Returns (rows, 0), or (row, words) of the first that has another number of them than ``spans``.
    """
    row, at = 0, 0
    while at < len(text):
        words = 0
        at = skip_space(text, at)
        while byte(text, at) != NEWLINE:
            start = at
            while not is_space(byte(text, at)):
                at += 1
            if words < spans.shape[1]:
                spans[row, words, 0], spans[row, words, 1] = start, at
            words += 1
            at = skip_space(text, at)
        if 0 < words != spans.shape[1]:
            return row, words
        row += words > 0
        at += 1
    return row, 0


@jit
def gather(text: Any, spans: Any, letters: Any) -> Any:
    """Copy each span of ASCII text into a row of ``letters``; False where a byte is not ASCII."""
    ascii = True
    for row in range(len(spans)):
        for k in range(spans[row, 1] - spans[row, 0]):
            letters[row, k] = byte(text, spans[row, 0] + k)
            ascii &= letters[row, k] < 128
    return ascii
