"""LETOR files that are short and plain, by regular expressions.

The compiled reader (`didyma.formats.letor`) takes every file, but its kernels must be loaded first,
which takes longer than all of a short file. This one reads what needs no second look, to the same
result; it has no errors of its own and gives nothing back where a line is unusual or wrong.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.formats.text import text_array

__all__ = ["SHORT", "Short", "parse"]

SHORT = 1 << 20  # bytes

_NUMBER = rb"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?"
_LINE = re.compile(
    rb"\s*(" + _NUMBER + rb")\s+qid:([^\s#]+)"
    rb"((?:\s+\d{1,9}:" + _NUMBER + rb")*)\s*(?:#\s*(.*?)\s*)?"
)
_DOCID = re.compile(rb"docid\s*=\s*(\S*)")


class Short(NamedTuple):
    """Columns of the file; ``zero_based`` says whether its features count from 0."""

    X: NDArray[Any]
    y: NDArray[np.float64]
    qid: NDArray[Any]
    docid: NDArray[Any] | None
    zero_based: bool


def parse(
    text: bytes,
    n_features: int | None,
    zero_based: bool | Literal["auto"],
    dtype: np.dtype[Any],
    dense_from: float,
) -> Short | None:
    """Read lines that all have a query, into a dense matrix if that suits; else None.

    A dense matrix suits if the file lists a share of at least ``dense_from`` of all entries.
    """
    labels, queries, documents = [], [], []
    rows: list[list[int]] = []
    values: list[float] = []
    for line in text.split(b"\n"):
        if not line or line.isspace() or line.lstrip().startswith(b"#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            return None
        label, query, entries, comment = found.groups(b"")
        parts = entries.replace(b":", b" ").split()
        columns = list(map(int, parts[::2]))
        if len(set(columns)) < len(columns):
            return None
        labels.append(float(label))
        queries.append(query)
        named = _DOCID.match(comment)
        documents.append(named[1] if named else comment)
        rows.append(columns)
        values += map(float, parts[1::2])
    if not values:
        return None
    least, greatest = min(map(min, filter(None, rows))), max(map(max, filter(None, rows)))
    if zero_based == "auto":
        zero_based = least == 0
    base = 0 if zero_based else 1
    width = greatest - base + 1 if n_features is None else n_features
    if least < base or greatest - base >= width or len(values) < dense_from * len(rows) * width:
        return None
    if max(map(abs, values)) > float(np.finfo(dtype).max) or max(map(abs, labels)) == np.inf:
        return None
    X = np.zeros((len(rows), width), dtype)
    row = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    X[row, np.concatenate(rows).astype(np.int64) - base] = values
    y = np.array(labels)
    try:
        qid, docid = (text_array([t.decode() for t in texts]) for texts in (queries, documents))
    except UnicodeDecodeError:
        return None
    return Short(X, y, qid, docid if any(documents) else None, base == 0)
