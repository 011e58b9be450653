"""Columns of text as NumPy arrays, and the text of a file that they are read from."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.files import PathName, read_text, stream_text

WIDEST = 256


def text_array(texts: Sequence[str]) -> NDArray[Any]:
    """Texts as fixed-width NumPy text, or as objects where a long one would waste memory.

    >>> text_array(["a", "bc"]).dtype
    dtype('<U2')
    """
    widest = max(map(len, texts), default=0)
    return np.array(texts, dtype=str if widest <= WIDEST else object)


def is_text(column: NDArray[Any]) -> bool:
    """Whether an array of text holds characters only; one from a file may hold anything.

    >>> is_text(np.array(["a"])), is_text(np.array([1 << 30], np.uint32).view("U1"))
    (True, False)
    """
    if column.dtype == object:
        try:
            return all(str(text).encode() is not None for text in column.tolist())
        except UnicodeEncodeError:
            return False
    if column.dtype.kind != "U":
        return True
    codes = np.ascontiguousarray(column).reshape(-1).view(np.uint32)
    return not np.any((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000)))


def first_repeated(texts: Sequence[str]) -> str | None:
    """The first text that stood before, if there is one.

    >>> first_repeated(["a", "b", "a"])
    'a'
    """
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return text
        seen.add(text)
    return None


def check_distinct(
    names: Sequence[str],
    kind: str = "column",
    *,
    path: PathName | None = None,
    line: int | None = None,
) -> None:
    """Refuse a name that stood before.

    >>> check_distinct(["a", "b", "a"])
    Traceback (most recent call last):
    didyma.errors.DataError: column 'a': expected columns with different names, found this one again
    """
    if (again := first_repeated(names)) is not None:
        problem = f"expected {kind}s with different names, found this one again"
        raise DataError(problem, path=path, line=line, field=f"{kind} {again!r}")


def distinct(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct rows of columns of text or integers by first appearance.

    Returns (the number of each row, the first row of each number).

    >>> distinct(np.array(["b", "a", "b"]), np.array([7, 7, 7]))
    (array([0, 1, 0]), array([0, 1]))
    """
    if any(column.dtype == object for column in columns):
        number_of: dict[tuple[Any, ...], int] = {}
        rows = zip(*(column.tolist() for column in columns))
        codes = np.array([number_of.setdefault(row, len(number_of)) for row in rows], np.int64)
        return codes, np.unique(codes, return_index=True)[1]
    from didyma._core.data import distinct as distinct_rows

    words = [
        np.ascontiguousarray(column).view(np.uint32).reshape(len(column), column.itemsize // 4)
        for column in columns
    ]
    codes, first = distinct_rows(np.hstack(words))
    return codes, first


BLOCK = 1 << 22  # bytes

_WORD = re.compile(rb"[^\s#]*")


@dataclass(frozen=True)
class TextBlock:
    """Lines of a file, always ending with a newline, and the same as an array for kernels."""

    path: PathName
    text: bytes
    codes: NDArray[np.uint8]
    first_line: int = 1

    @classmethod
    def open(cls, path: PathName) -> TextBlock:
        """Read a file, plain or gzip."""
        text = read_text(path)
        if not text.endswith(b"\n"):
            text += b"\n"
        return cls(path, text, np.frombuffer(text, np.uint8))

    @classmethod
    def blocks(cls, path: PathName, size: int = BLOCK) -> Iterator[TextBlock]:
        """The same a block of whole lines at a time, so that no more of it is in memory."""
        line = 1
        for text in stream_text(path, size):
            yield cls(path, text, np.frombuffer(text, np.uint8), line)
            line += text.count(b"\n")

    def pieces(self, size: int) -> Iterator[tuple[int, int]]:
        """Spans (start, stop) of whole lines, about ``size`` bytes each."""
        start = 0
        while start < len(self.text):
            stop = self.text.find(b"\n", min(start + size, len(self.text)) - 1) + 1
            yield start, stop
            start = stop

    def word(self, at: int) -> bytes:
        """The word at a place, up to white space or a comment."""
        match = _WORD.match(self.text, at)
        return match.group() if match else b""

    def line(self, at: int) -> int:
        """The number of the line, from 1, of a place."""
        return self.text.count(b"\n", 0, at) + self.first_line

    def fail(self, at: int, field: str | None, problem: str) -> NoReturn:
        """Raise the error that names the file, the line of a place, and the field."""
        line = self.text[self.text.rfind(b"\n", 0, at) + 1 : self.text.find(b"\n", at)]
        try:
            line.decode()
        except UnicodeDecodeError:
            problem = "expected UTF-8 text"
        raise DataError(problem, path=self.path, line=self.line(at), field=field)

    def texts(self, spans: NDArray[np.int64], field: str) -> NDArray[Any]:
        """The text of each span (start, stop)."""
        from didyma._core.data import gather

        widest = int(np.diff(spans).max())
        if widest <= WIDEST:
            letters = np.zeros((len(spans), widest), np.uint32)
            if gather(self.codes, np.ascontiguousarray(spans), letters):
                return letters.view(f"U{widest}").ravel()
        decoded = []
        for start, stop in spans.tolist():
            try:
                decoded.append(self.text[start:stop].decode())
            except UnicodeDecodeError:
                self.fail(start, field, "expected UTF-8 text")
        return text_array(decoded)

    def parse_numbers(
        self, spans: NDArray[np.int64], delimiter: bytes = b" "
    ) -> tuple[NDArray[np.float64], int]:
        """The number in each span, and which is the first that holds none, or −1."""
        from didyma._core.data import numbers

        codes = self.codes
        if delimiter != b" ":  # what ends a number for the parser
            codes = np.frombuffer(self.text.replace(delimiter, b" "), np.uint8)
        values, unsure = np.empty(len(spans)), np.empty(len(spans), np.int64)
        wrong, n_unsure = numbers(codes, np.ascontiguousarray(spans), values, unsure)
        for row in unsure[:n_unsure].tolist():
            values[row] = float(self.text[slice(*spans[row])])
        return values, int(wrong)

    def numbers(self, spans: NDArray[np.int64], field: str) -> NDArray[np.float64]:
        """The finite number in each span (start, stop)."""
        values, wrong = self.parse_numbers(spans)
        infinite = np.flatnonzero(np.isinf(values[: wrong if wrong >= 0 else None]))
        if wrong >= 0 or len(infinite):
            start, stop = spans[infinite[0] if len(infinite) else wrong].tolist()
            word = self.text[start:stop].decode(errors="backslashreplace")
            self.fail(start, field, f"expected a finite number, found {word!r}")
        return values
