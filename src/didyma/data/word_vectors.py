"""Word vectors in the text format of word2vec and GloVe: a word and its numbers a line.

A first line with two whole numbers, how many words and of what dimension, may precede them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.files import PathName, read_lines

__all__ = ["read"]

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)


def read(
    path: PathName, keep: Collection[str] | None = None
) -> tuple[list[str], NDArray[np.float32]]:
    """The words and their vectors (n_words, dimension), of ``keep`` only if it is given.

    A word that occurs twice keeps its first vector. Plain or gzip.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "vectors.txt")
    >>> _ = path.write_text("2 3\\nking 1 0 .5\\nqueen 1 1 .5\\n")
    >>> read(path, keep={"queen"})
    (['queen'], array([[1. , 1. , 0.5]], dtype=float32))
    """
    lines = read_lines(path)
    header = lines[0].split()
    first = 1 if len(header) == 2 and all(map(_COUNT.fullmatch, header)) else 0
    width: int | None = int(header[1]) if first else None
    vectors: dict[str, NDArray[np.float32]] = {}
    for number, line in enumerate(lines[first:], start=first + 1):
        word, *values = line.rstrip().split(" ")
        if not values:
            raise DataError("expected a word and its vector", path=path, line=number)
        if width is None:
            width = len(values)
        if len(values) != width:
            problem = f"expected {width} numbers after the word, found {len(values)}"
            raise DataError(problem, path=path, line=number)
        if word in vectors or (keep is not None and word not in keep):
            continue
        try:
            vectors[word] = np.array(values, dtype=np.float32)
        except ValueError as error:
            raise DataError(f"expected numbers ({error})", path=path, line=number) from None
        if not np.isfinite(vectors[word]).all():
            raise DataError("expected finite numbers", path=path, line=number)
    if not width:
        raise DataError("expected words and their vectors, found none", path=path)
    rows = list(vectors.values())
    return list(vectors), np.vstack(rows) if rows else np.zeros((0, width), np.float32)
