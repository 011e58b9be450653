"""Parse LETOR / svmlight text: ``label qid:TEXT index:value ... # comment``, one row a line.

A file is cut at line ends into pieces that are parsed independently. `scan` sizes the result and
`parse` fills it, so nothing is stored twice. Every piece must end with a newline.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.decimal import number
from didyma.kernels.jit import jit
from didyma.kernels.text import HASH, NEWLINE, byte, is_digit, is_end, is_space, skip_space

__all__ = [
    "BAD_INDEX",
    "BAD_LABEL",
    "BAD_VALUE",
    "CHANGED",
    "EMPTY_QID",
    "FINE",
    "REPEATED_INDEX",
    "REPEATED_QID",
    "WIDE_INDEX",
    "parse",
    "scan",
]

FINE, BAD_LABEL, BAD_INDEX, BAD_VALUE = 0, 1, 2, 3
WIDE_INDEX, REPEATED_INDEX, EMPTY_QID, REPEATED_QID, CHANGED = 4, 5, 6, 7, 8

_MAX_INDEX = 2**31 - 2  # columns are 32-bit integers
_INDEX_DIGITS = 10

_ZERO, _COLON, _EQUALS = 48, 58, 61
_QID = np.frombuffer(b"qid:", np.uint8)
_DOCID = np.frombuffer(b"docid", np.uint8)
_NULL = np.frombuffer(b"NULL", np.uint8)
_NAN = np.frombuffer(b"NaN", np.uint8)


@jit
def scan(text: Any, start: Any, stop: Any) -> Any:
    """Size up ``text[start:stop]``: (rows, entries, least index, greatest index, named rows)."""
    rows, entries, least, greatest, named = 0, 0, _MAX_INDEX, -1, 0
    at = start
    while at < stop:
        head = at = skip_space(text, at)
        is_row = byte(text, at) != NEWLINE and byte(text, at) != HASH
        rows += is_row
        while byte(text, at) != NEWLINE and byte(text, at) != HASH:
            if byte(text, at) == _COLON:
                index, unit, back = 0, 1, at - 1
                while back > head and is_digit(byte(text, back)) and at - back <= _INDEX_DIGITS:
                    index += (byte(text, back) - _ZERO) * unit
                    unit *= 10
                    back -= 1
                if head < back < at - 1 and is_space(byte(text, back)):
                    entries += 1
                    least, greatest = min(least, index), max(greatest, index)
            at += 1
        if is_row and byte(text, at) == HASH:
            first, last = _docid(text, at)
            named += first < last
        while byte(text, at) != NEWLINE:
            at += 1
        at += 1
    return rows, entries, least, min(greatest, _MAX_INDEX), named


@jit
def parse(
    text: Any,
    start: Any,
    stop: Any,
    row: Any,
    rows: Any,
    entry: Any,
    entries: Any,
    base: Any,
    width: Any,
    bound: Any,
    missing: Any,
    dense: Any,
    y: Any,
    values: Any,
    columns: Any,
    ends: Any,
    docids: Any,
    seen: Any,
    runs: Any,
    unsure: Any,
) -> Any:
    """Fill the rows of ``text[start:stop]``, the first being ``row`` and its first entry ``entry``.

    They must end at ``rows``, and not go beyond ``entries``, or the text is not what was scanned.

    Column = index - ``base`` < ``width``; |value| ≤ ``bound``. With ``dense`` an entry goes to
    ``values[row·width + column]`` and ``seen`` (width) finds repeated indices; otherwise to
    ``values[entry]`` and ``columns[entry]``, and ``ends[row]`` is one past the row's last entry.
    With ``missing``, a value may be NULL or NaN.

    ``docids[row]`` is the span of the document id in the text (empty without one).
    ``runs[k]`` = (row, start, stop): a query id that differs from the one in the row before.
    ``unsure[k]`` = (place in the text, target): a number left to ``float``, whose target is a
    place in ``values``, or -1 - row for a label.

    Returns (code, place of the fault, runs, unsure, first line with a qid, first line without,
    whether the columns of every row increase); a line that does not exist is -1.
    """
    n_runs, n_unsure, with_qid, without_qid, increasing = 0, 0, -1, -1, True
    previous, previous_length = 0, 0
    at = start
    while at < stop:
        line = at
        at = skip_space(text, at)
        if byte(text, at) != NEWLINE and byte(text, at) != HASH:
            code, has_qid, last, token = FINE, False, -1, at
            if row >= rows:
                return CHANGED, at, n_runs, n_unsure, with_qid, without_qid, increasing
            at, y[row] = number(text, at)
            if at < 0:
                code, at = BAD_LABEL, token
            elif y[row] != y[row]:
                unsure[n_unsure, 0], unsure[n_unsure, 1] = token, -1 - row
                n_unsure += 1
            while code == FINE:
                token = at = skip_space(text, at)
                if byte(text, at) == NEWLINE or byte(text, at) == HASH:
                    break
                if _starts_with(text, at, _QID):
                    begin = at + len(_QID)
                    at = begin
                    while not is_end(byte(text, at)):
                        at += 1
                    if has_qid or at == begin:
                        code = REPEATED_QID if has_qid else EMPTY_QID
                    elif not _same(text, previous, previous_length, begin, at - begin):
                        runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = row, begin, at
                        n_runs += 1
                        previous, previous_length = begin, at - begin
                    has_qid = True
                    continue
                index = 0
                while is_digit(byte(text, at)) and at - token < _INDEX_DIGITS:
                    index = index * 10 + (byte(text, at) - _ZERO)
                    at += 1
                column = index - base
                if at == token or byte(text, at) != _COLON or column < 0 or index > _MAX_INDEX:
                    code = BAD_INDEX
                    break
                colon = at
                at, value = number(text, colon + 1)
                if at < 0 and missing:
                    at, value = _end_of_missing(text, colon + 1), np.nan
                if at < 0 or value > bound or value < -bound:
                    code = BAD_VALUE
                elif column >= width:
                    code = WIDE_INDEX
                elif entry >= entries:
                    code = CHANGED
                elif dense:
                    target = row * width + column
                    if seen[column] == row + 1:
                        code = REPEATED_INDEX
                    seen[column] = row + 1
                    values[target] = value
                else:
                    target = entry
                    increasing &= column > last
                    last = column
                    columns[target] = column
                    values[target] = value
                if value != value and code == FINE:
                    unsure[n_unsure, 0], unsure[n_unsure, 1] = token, target
                    n_unsure += 1
                entry += 1
            if code != FINE:
                return code, token, n_runs, n_unsure, with_qid, without_qid, increasing
            if has_qid and with_qid < 0:
                with_qid = line
            if not has_qid and without_qid < 0:
                without_qid = line
            docids[row, 0], docids[row, 1] = _docid(text, at)
            ends[row] = entry
            row += 1
        while byte(text, at) != NEWLINE:
            at += 1
        at += 1
    code = FINE if row == rows and (dense or entry == entries) else CHANGED
    return code, at, n_runs, n_unsure, with_qid, without_qid, increasing


@jit
def _starts_with(text: Any, at: Any, word: Any) -> Any:
    for k in range(len(word)):  # noqa: SIM110 - a generator does not compile
        if byte(text, at + k) != word[k]:
            return False
    return True


@jit
def _end_of_missing(text: Any, at: Any) -> Any:
    """One past a word for a missing value, or -1."""
    for word in (_NULL, _NAN):
        if _starts_with(text, at, word) and is_end(byte(text, at + len(word))):
            return at + len(word)
    return -1


@jit
def _same(text: Any, a: Any, a_length: Any, b: Any, b_length: Any) -> Any:
    return a_length == b_length and _starts_with(text, b, text[a : a + a_length])


@jit
def _docid(text: Any, at: Any) -> Any:
    """The span of the document id in a comment: X of ``#docid = X ...``, or all of ``# X``."""
    if byte(text, at) != HASH:
        return at, at
    begin = skip_space(text, at + 1)
    if _starts_with(text, begin, _DOCID):
        equals = skip_space(text, begin + len(_DOCID))
        if byte(text, equals) == _EQUALS:
            begin = end = skip_space(text, equals + 1)
            while not is_space(byte(text, end)):
                end += 1
            return begin, end
    end = begin
    while byte(text, end) != NEWLINE:
        end += 1
    while end > begin and is_space(byte(text, end - 1)):
        end -= 1
    return begin, end
