"""CSV and TSV by the standard library: a header, then one row of fields a line.

Fields may stand in double quotes, and must where they hold the delimiter, a quote (written twice)
or a line end; in a file that is not ``quoted`` a quote is a sign as any other. Blank lines are
skipped. Numbers are those of ``float()``, to the last bit.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.categories import TextFoundError, number_in
from didyma.data.text_columns import TextBlock, check_distinct, text_array
from didyma.errors import DataError
from didyma.files import PathName, replace_when_done, stream_lines

__all__ = ["DelimitedFile", "tab_separated", "write"]

BLOCK = 4096  # rows that are held as texts
PIECE = 1 << 20  # bytes of plain text that are parsed at a time
LARGE = 1 << 20  # bytes from which compiled code, which takes time to load, is worth it
MISSING = ("", "null", "nan")  # in lower case

NumberedRow: TypeAlias = tuple[int, list[str]]  # the line on which it begins, and its fields
TableColumns: TypeAlias = tuple[NDArray[np.float64], list[NDArray[Any]]]


class DelimitedFile:
    """A file whose header has been read; `columns` or `rows` read the rest.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.csv")
    >>> _ = path.write_text('x,name,y\\n1,"a, b",2\\n')
    >>> reader = DelimitedFile(path, ",")
    >>> reader.header
    ['x', 'name', 'y']
    >>> reader.columns(["y", "x"], ["name"])
    (array([[2., 1.]]), [array(['a, b'], dtype='<U4')])
    """

    def __init__(self, path: PathName, delimiter: str, *, quoted: bool = True) -> None:
        self.path, self._delimiter, self._quoted = path, delimiter, quoted
        self._rows = self._parsed(_decoded(stream_lines(path, PIECE), path))
        nothing: tuple[int, list[str]] = (1, [])
        line, self.header = next(self._rows, nothing)
        if not self.header:
            raise DataError("expected a line with the names of the columns, found none", path=path)
        check_distinct(self.header, path=path, line=line)

    def rows(self) -> Iterator[NumberedRow]:
        """The rows below the header one by one, each with the line on which it begins."""
        return self._checked(self._rows)

    def _parsed(self, lines: Iterator[str], first_line: int = 1) -> Iterator[NumberedRow]:
        if self._quoted:
            return _rows(lines, self.path, self._delimiter, first_line)
        return _split(lines, self._delimiter, first_line)

    def _checked(self, rows: Iterable[NumberedRow]) -> Iterator[NumberedRow]:
        for line, row in rows:
            if len(row) != len(self.header):
                problem = f"expected {len(self.header)} fields, found {len(row)}"
                raise DataError(problem, path=self.path, line=line)
            yield line, row

    def columns(self, numeric: Sequence[str], textual: Sequence[str]) -> TableColumns:
        """Columns of finite numbers, as a matrix (n_rows, n_columns), and columns of texts."""
        numbers, texts = zip(*self.blocks(numeric, textual))
        return np.concatenate(numbers), [np.concatenate(parts) for parts in zip(*texts)]

    def blocks(
        self,
        numeric: Sequence[str],
        textual: Sequence[str],
        optional: Collection[str] = (),
        required: Collection[str] = (),
    ) -> Iterator[TableColumns]:
        """The same some rows at a time: plain text by compiled code, any other by `csv`.

        Values of ``optional`` columns of numbers may be missing: they are NaN. Texts may be empty,
        but for those of ``required`` columns.
        """
        rows, n_rows = self._rows, 0
        if os.path.getsize(self.path) >= LARGE:
            sources = TextBlock.blocks(self.path, PIECE)
            for source in sources:
                plain = _plain_columns(
                    *(source, self._delimiter, self.header, numeric, textual, optional, required),
                    quoted=self._quoted,
                )
                if plain is None:
                    rows = self._rows_from(source, sources)
                    break
                n_rows += len(plain[0])
                yield plain
            else:
                return
        place = {name: k for k, name in enumerate(self.header)}
        pick = _getter([place[name] for name in textual])
        pick_numeric = _getter([place[name] for name in numeric])
        rows = self._checked(rows)
        while block := list(islice(rows, BLOCK)):
            words = list(chain.from_iterable(pick_numeric(row) for _, row in block))
            texts = [text_array(column) for column in zip(*(pick(row) for _, row in block))]
            for name, column in zip(textual, texts):
                if name in required and "" in column:
                    line = block[int(np.argmax(column == ""))][0]
                    raise DataError(
                        "expected text, found none", path=self.path, line=line, field=name
                    )
            n_rows += len(block)
            yield self._numbers(words, block, numeric, optional), texts
        if not n_rows:
            raise DataError("expected at least one row, found none", path=self.path)

    def _rows_from(self, first: TextBlock, others: Iterable[TextBlock]) -> Iterator[NumberedRow]:
        """The rows from a block of lines on, without the header."""
        lines = chain.from_iterable(
            _decoded(source.text[:-1].split(b"\n"), self.path, source.first_line)
            for source in chain([first], others)
        )
        rows = self._parsed(lines, first.first_line)
        return islice(rows, int(first.first_line == 1), None)

    def _numbers(
        self,
        words: list[str],
        block: list[NumberedRow],
        names: Sequence[str],
        optional: Collection[str],
    ) -> NDArray[np.float64]:
        try:
            values = np.fromiter(map(float, words), np.float64, len(words))
            joined = "".join(words)
            # float() also takes 1_000, digits of other scripts and nan.
            if "_" in joined or not joined.isascii() or not np.isfinite(values).all():
                raise ValueError
        except ValueError:
            numbers = (
                math.nan
                if word.strip().lower() in MISSING and names[k % len(names)] in optional
                else self._number(word, block, k, names)
                for k, word in enumerate(words)
            )
            values = np.fromiter(numbers, np.float64, len(words))
        return values.reshape(len(block), len(names))

    def _number(self, word: str, block: list[NumberedRow], k: int, names: Sequence[str]) -> float:
        """A number that is not plain, or the error that says where it stands."""
        if not math.isnan(number := number_in(word)):
            return number
        row, column = divmod(k, len(names))
        word_shown = f"{word!r:.40}" if word.strip() else "none"
        raise (TextFoundError if _is_text(word) else DataError)(
            f"expected a finite number, found {word_shown}",
            path=self.path,
            line=block[row][0],
            field=names[column],
        )


def _is_text(word: str) -> bool:
    """Whether a field holds anything but a number, be it infinite."""
    try:
        float(word.strip() or 0)
    except ValueError:
        return True
    return False


def _plain_columns(
    source: TextBlock,
    delimiter: str,
    header: Sequence[str],
    numeric: Sequence[str],
    textual: Sequence[str],
    optional: Collection[str] = (),
    required: Collection[str] = (),
    *,
    quoted: bool = True,
) -> TableColumns | None:
    """What `DelimitedFile.columns` finds in some lines, faster; None unless every field is plain.

    There must be no quote that means one, no blank line, as many fields in each line, and nothing
    but plain numbers where there should be numbers, or nothing in ``optional`` columns, and nothing
    empty in ``required`` ones: then separators alone say where fields stand.
    """
    if (quoted and b'"' in source.text) or not _is_utf8(source.text):
        return None
    separator, newline, width = ord(delimiter), ord("\n"), len(header)
    ends = np.flatnonzero((source.codes == separator) | (source.codes == newline))
    first = int(source.first_line == 1)  # the row after the header
    if len(ends) % width or len(ends) <= first * width:
        return None
    starts = np.concatenate([[0], ends[:-1] + 1]).reshape(-1, width)
    stops = ends.reshape(-1, width)
    signs = source.codes[stops]
    if np.any(signs[:, -1] != newline) or np.any(signs[:, :-1] != separator):
        return None
    spans = np.stack([starts, stops], axis=2)[first:]
    place = {name: k for k, name in enumerate(header)}
    wanted = spans[:, [place[name] for name in numeric]].reshape(-1, 2)
    filled: Any = slice(None)
    if optional:
        always = np.tile([name not in optional for name in numeric], len(spans))
        filled = always | (wanted[:, 0] < wanted[:, 1])
    found, wrong = source.parse_numbers(wanted[filled], delimiter.encode())
    if wrong >= 0 or not np.isfinite(found).all():
        return None
    needed = spans[:, [place[name] for name in required]]
    if np.any(needed[..., 0] == needed[..., 1]):
        return None
    values = np.full(len(wanted), np.nan)
    values[filled] = found
    texts = [source.texts(np.ascontiguousarray(spans[:, place[name]]), name) for name in textual]
    return values.reshape(-1, len(numeric)), texts


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def write(rows: Iterable[Sequence[Any]], path: PathName, delimiter: str) -> None:
    """Write rows of texts and numbers, the first a header: a `DelimitedFile` gives them back."""
    with replace_when_done(path) as file:
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)


def _rows(
    lines: Iterator[str], path: PathName, delimiter: str, first_line: int = 1
) -> Iterator[NumberedRow]:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    begun = first_line
    try:
        for row in reader:
            if row:
                yield begun, row
            begun = reader.line_num + first_line
    except csv.Error as error:
        raise DataError(f"expected separated values ({error})", path=path, line=begun) from None


def tab_separated(path: PathName, names: Sequence[str]) -> Iterator[NumberedRow]:
    """Lines without a header, which have these fields with tabs between them."""
    for number, fields in _split(_decoded(stream_lines(path), path), "\t"):
        if len(fields) != len(names):
            problem = f"expected {len(names)} fields ({', '.join(names)}), found {len(fields)}"
            raise DataError(problem, path=path, line=number)
        yield number, fields


def _split(lines: Iterator[str], delimiter: str, first_line: int = 1) -> Iterator[NumberedRow]:
    for number, line in enumerate(lines, first_line):
        if line != "\n":
            yield number, line.removesuffix("\n").split(delimiter)


def _decoded(lines: Iterable[bytes], path: PathName, first_line: int = 1) -> Iterator[str]:
    for number, line in enumerate(lines, first_line):
        try:
            yield line.decode() + "\n"
        except UnicodeDecodeError:
            raise DataError("expected UTF-8 text", path=path, line=number) from None


def _getter(places: Sequence[int]) -> Callable[[list[str]], tuple[str, ...]]:
    """The fields at some places of a row, as a tuple also if there is one or none."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda row: tuple(row[place] for place in places)
