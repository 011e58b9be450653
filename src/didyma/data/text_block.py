"""The text of a file, and the way from a place in it back to its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from didyma.data.text_columns import WIDEST, text_array
from didyma.errors import DataError
from didyma.files import PathName, read_text, stream_text

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

    def numbers(self, spans: NDArray[np.int64], field: str) -> NDArray[np.float64]:
        """The finite number in each span (start, stop)."""
        from didyma._core.data import numbers

        values, unsure = np.empty(len(spans)), np.empty(len(spans), np.int64)
        wrong, n_unsure = numbers(self.codes, np.ascontiguousarray(spans), values, unsure)
        for row in unsure[:n_unsure].tolist():
            values[row] = float(self.text[slice(*spans[row])])
        infinite = np.flatnonzero(np.isinf(values[: wrong if wrong >= 0 else None]))
        if wrong >= 0 or len(infinite):
            start, stop = spans[infinite[0] if len(infinite) else wrong].tolist()
            word = self.text[start:stop].decode(errors="backslashreplace")
            self.fail(start, field, f"expected a finite number, found {word!r}")
        return values
