"""CoNLL-U and CoNLL-X files: a word a line, ten columns, a blank line after each sentence.

    # text = She saw it
    1    She  she  PRON  PRP  _  2  nsubj  _  _
    2    saw  see  VERB  VBD  _  0  root   _  _
    3    it   it   PRON  PRP  _  2  obj    _  _

Columns are separated by tabs. Comments (``#``), multiword tokens (``1-2``) and empty nodes
(``2.1``) are no words; they are kept as they are and written again. A block of comments alone is a
sentence without words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.files import PathName, read_lines, replace_when_done

__all__ = ["Field", "Sentence", "read", "write"]

N_COLUMNS = 10
MISSING = "_"

_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_LINE_END = re.compile(r"[\r\n]")
_PAIR = re.compile(r"([0-9]{1,9})([-.])([0-9]{1,9})", re.ASCII)


class Field(IntEnum):
    """The columns, by their names in CoNLL-U; UPOS and XPOS are CPOSTAG and POSTAG in CoNLL-X."""

    ID = 0
    FORM = 1
    LEMMA = 2
    UPOS = 3
    XPOS = 4
    FEATS = 5
    HEAD = 6
    DEPREL = 7
    DEPS = 8
    MISC = 9


@dataclass(frozen=True, eq=False)
class Sentence:
    """The lines of a sentence, and which of them are words."""

    lines: tuple[str, ...]
    token_lines: tuple[int, ...]
    path: PathName | None = None
    first_line: int = 1
    _rows: tuple[tuple[str, ...], ...] = field(default=(), repr=False)

    @classmethod
    def from_words(cls, words: Sequence[str]) -> Sentence:
        """A sentence of which nothing but the words is known.

        >>> Sentence.from_words(["She", "left"]).lines[1].split()
        ['2', 'left', '_', '_', '_', '_', '_', '_', '_', '_']
        """
        rows = tuple(
            (str(i), word, *[MISSING] * (N_COLUMNS - 2)) for i, word in enumerate(words, start=1)
        )
        _check(Field.FORM, words)
        return cls(tuple(map("\t".join, rows)), tuple(range(len(rows))), _rows=rows)

    def __len__(self) -> int:
        return len(self.token_lines)

    @property
    def words(self) -> tuple[str, ...]:
        """The form of each word."""
        return self.column(Field.FORM)

    @property
    def sent_id(self) -> str | None:
        """What a comment ``# sent_id = …`` calls the sentence.

        >>> Sentence.from_words(["Yes"]).with_comments(["sent_id = w-1"]).sent_id
        'w-1'
        """
        for line in self.lines:
            key, equals, value = line.removeprefix("#").partition("=")
            if line.startswith("#") and equals and key.strip() == "sent_id":
                return value.strip()
        return None

    def column(self, column: Field) -> tuple[str, ...]:
        """A column, one text per word."""
        return tuple(row[column] for row in self._rows)

    @cached_property
    def heads(self) -> NDArray[np.int64] | None:
        """The head of each word, from 1, or 0 for the root; None if the file leaves one open."""
        column = self.column(Field.HEAD)
        return None if MISSING in column else np.array(column, np.int64)

    def replaced(self, columns: Mapping[Field, Iterable[Any]]) -> Sentence:
        """The same sentence with other columns; comments and other lines stay."""
        rows = [list(row) for row in self._rows]
        for column, given in columns.items():
            values = [str(value) for value in given]
            if len(values) != len(rows):
                raise DataError(
                    f"expected {len(rows)} values, one per word, found {len(values)}",
                    field=column.name,
                )
            _check(column, values)
            for row, value in zip(rows, values):
                row[column] = value
        lines = list(self.lines)
        for at, row in zip(self.token_lines, rows):
            lines[at] = "\t".join(row)
        return replace(self, lines=tuple(lines), _rows=tuple(map(tuple, rows)))

    def with_comments(self, comments: Iterable[str]) -> Sentence:
        """The same sentence with more comments, after those that it has."""
        added = tuple(f"# {comment}" for comment in comments)
        for comment in added:
            if _LINE_END.search(comment):
                raise DataError(f"expected comments of one line, found {comment!r}")
        last = max((at for at, line in enumerate(self.lines) if line.startswith("#")), default=-1)
        lines = (*self.lines[: last + 1], *added, *self.lines[last + 1 :])
        moved = tuple(at + len(added) for at in self.token_lines)
        return replace(self, lines=lines, token_lines=moved)

    def fail(self, word: int, column: Field, problem: str) -> NoReturn:
        """Raise the error that names the file, the line of a word (from 0) and the column."""
        _fail(self.path, self.first_line + self.token_lines[word], column, problem)

    def check_tree(self) -> None:
        """Refuse heads that do not make a tree: left open, out of range, in a cycle, no root."""
        for word, text in enumerate(self.column(Field.HEAD)):
            if text == MISSING:
                self.fail(word, Field.HEAD, "expected the id of the head, or 0, found _")
            if int(text) > len(self):
                self.fail(word, Field.HEAD, f"expected a head up to {len(self)}, found {text}")
            if int(text) == word + 1:
                self.fail(word, Field.HEAD, f"word {text} is its own head")
        heads = [] if self.heads is None else self.heads.tolist()
        if heads and 0 not in heads:
            self.fail(0, Field.HEAD, "the sentence has no root: no word has the head 0")
        reaches_root = {0}
        for word in range(1, len(heads) + 1):
            path = [word]
            while (head := heads[path[-1] - 1]) not in reaches_root:
                if head in path:
                    cycle = " → ".join(map(str, [*path[path.index(head) :], head]))
                    self.fail(head - 1, Field.HEAD, f"the heads form a cycle, {cycle}")
                path.append(head)
            reaches_root.update(path)


def read(path: PathName, *, trees: bool = False) -> list[Sentence]:
    """Read the sentences of a file, plain or gzip; with ``trees`` the heads must form trees.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.conllu")
    >>> write([Sentence.from_words(["She", "left"]).replaced({Field.HEAD: [2, 0]})], path)
    >>> sentence, = read(path, trees=True)
    >>> sentence.words, sentence.heads
    (('She', 'left'), array([2, 0]))
    """
    sentences = list(_sentences(path, read_lines(path)))
    if not sentences:
        raise DataError("expected sentences, found none", path=path)
    if trees:
        for sentence in sentences:
            sentence.check_tree()
    return sentences


def write(sentences: Iterable[Sentence], path: PathName) -> None:
    """Write sentences, whole or not at all."""
    with replace_when_done(path) as file:
        for sentence in sentences:
            file.writelines(f"{line}\n" for line in sentence.lines)
            file.write("\n")


def _sentences(path: PathName, lines: Sequence[str]) -> Iterator[Sentence]:
    begin = 0
    for at in range(len(lines) + 1):
        if at == len(lines) or not lines[at].strip():
            if at > begin:
                yield _sentence(path, lines[begin:at], begin + 1)
            begin = at + 1


def _sentence(path: PathName, lines: Sequence[str], first_line: int) -> Sentence:
    rows: list[tuple[str, ...]] = []
    token_lines: list[int] = []
    reach = 0  # last word that a multiword token covers
    for at, line in enumerate(lines):
        if line.startswith("#"):
            continue
        fail = partial(_fail, path, first_line + at)
        row = tuple(line.split("\t"))
        if len(row) != N_COLUMNS:
            fail(None, f"expected {N_COLUMNS} columns separated by tabs, found {len(row)}")
        number = row[Field.ID]
        if number == str(len(rows) + 1):
            for column in (Field.FORM, Field.HEAD):
                if problem := _problem(column, row[column]):
                    fail(column, problem)
            rows.append(row)
            token_lines.append(at)
        elif (pair := _PAIR.fullmatch(number)) and pair[2] == "-":
            if int(pair[1]) != len(rows) + 1 or int(pair[3]) < int(pair[1]):
                fail(Field.ID, f"expected a range from {len(rows) + 1}, found {number!r}")
            reach = int(pair[3])
        elif pair:
            if int(pair[1]) != len(rows):
                fail(Field.ID, f"expected an empty node after word {len(rows)}, found {number!r}")
        else:
            fail(Field.ID, f"expected {len(rows) + 1}, found {number!r}")
    if reach > len(rows):
        last = first_line + len(lines) - 1
        problem = f"a multiword token reaches to {reach}, but the last word is {len(rows)}"
        _fail(path, last, Field.ID, problem)
    return Sentence(tuple(lines), tuple(token_lines), path, first_line, tuple(rows))


def _problem(column: Field, value: str) -> str | None:
    """What makes a value one that cannot be read again."""
    if "\t" in value or _LINE_END.search(value):
        return f"expected no tab and no line end, found {value!r}"
    if column is Field.FORM and not value:
        return "expected a word, found nothing"
    if column is Field.HEAD and value != MISSING and not _NUMBER.fullmatch(value):
        return f"expected the id of the head, 0 or _, found {value!r}"
    return None


def _check(column: Field, values: Iterable[str]) -> None:
    for value in values:
        if problem := _problem(column, value):
            raise DataError(problem, field=column.name)


def _fail(path: PathName | None, line: int, column: Field | None, problem: str) -> NoReturn:
    name = None if column is None else column.name
    raise DataError(problem, path=path, line=line, field=name)
