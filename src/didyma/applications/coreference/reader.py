"""Coreference files in the style of CoNLL-2012: one token a line, mentions as brackets in the end.

    #begin document (emma); part 0
    emma  0  0  Emma   _  _  _  _  _  _  _  _  (3)
    emma  0  1  met    _  _  _  _  _  _  _  _  -
    emma  0  2  her    _  _  _  _  _  _  _  _  (5|(3)
    emma  0  3  uncle  _  _  _  _  _  _  _  _  5)
                                                        (a blank line ends a sentence)
    #end document

Columns are separated by tabs or, in a line without one, by spaces. The fourth is the word (the
second of three: number, word, brackets), the tenth of eleven or more the speaker, the last one the
brackets: ``(3`` opens a mention of cluster
3, ``3)`` closes the one opened last, ``(3)`` is a mention of one word, ``|`` separates several,
and ``-``, ``_`` or nothing means none. Mentions may be nested or cross; they end within their
sentence.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma import DataError
from didyma.files import PathName, read_lines, replace_when_done, stream_lines

NONE = ("", "-", "_")
SPEAKER = 9
FEWEST = 5  # document, part, number, word, brackets
SHORT = 3  # number, word, brackets

_BEGINS, _ENDS = re.compile(r"#\s*begin document\b"), re.compile(r"#\s*end document\b")
_BEGIN = re.compile(r"#\s*begin document\s+\(?(?P<name>.*?)\)?;?(?:\s+part\s+(?P<part>\S+))?\s*$")
_BRACKET = re.compile(r"(?P<opens>\()?(?P<cluster>[^()|\s]+)(?P<closes>\))?$")
_SPACES = re.compile(r" +")


class Mention(NamedTuple):
    """Tokens ``start`` to ``stop - 1`` of a document, which refer to what ``cluster`` names."""

    start: int
    stop: int
    cluster: str


@dataclass(frozen=True, eq=False)
class Document:
    """Words in sentences, and the mentions among them in the order in which they begin.

    ``sentences`` gives the sentence of each word, ``speakers`` who says it, "" where nobody is
    named. A mention that contains another one with the same beginning comes first.
    """

    name: str
    part: str
    words: tuple[str, ...]
    sentences: NDArray[np.int64]
    speakers: tuple[str, ...]
    mentions: tuple[Mention, ...]
    path: PathName | None = None
    lines: tuple[str, ...] = field(default=(), repr=False)
    token_lines: tuple[int, ...] = field(default=(), repr=False)

    @property
    def labels(self) -> NDArray[np.int64]:
        """Gold cluster of each mention, numbered from 0 by first appearance."""
        number: dict[str, int] = {}
        clusters = (mention.cluster for mention in self.mentions)
        return np.array([number.setdefault(cluster, len(number)) for cluster in clusters], np.int64)

    def text(self, mention: Mention) -> str:
        """The words of a mention."""
        return " ".join(self.words[mention.start : mention.stop])


def find(path: PathName) -> list[Path]:
    """The file itself, or those of a folder, sorted by name.

    They are those with "conll" in their names, and any other that begins with ``#begin document``.

    >>> find("emma.conll")
    [PosixPath('emma.conll')]
    """
    place = Path(path)
    if not place.is_dir():
        return [place]
    present = sorted(file for file in place.iterdir() if file.is_file())
    files = [file for file in present if "conll" in file.name or _begins_document(file)]
    if not files:
        raise DataError(
            "expected files that begin with '#begin document', or with 'conll' in their names, "
            "found none",
            path=path,
        )
    return files


def _begins_document(path: Path) -> bool:
    """Whether the first line that is not blank begins a document."""
    if path.name.startswith("."):
        return False
    try:
        first = next((line for line in stream_lines(path) if line.strip()), b"")
    except DataError:  # damaged, or not a text
        return False
    return _BEGINS.match(first.decode(errors="replace")) is not None


def read(path: PathName) -> list[Document]:
    """Read the documents of a file, plain or gzip.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "emma.conll")
    >>> _ = path.write_text('''#begin document (emma); part 0
    ... emma 0 0 Emma (3)
    ... emma 0 1 met -
    ... emma 0 2 her (5|(3)
    ... emma 0 3 uncle 5)
    ...
    ... #end document
    ... ''')
    >>> document, = read(path)
    >>> [(document.text(mention), mention.cluster) for mention in document.mentions]
    [('Emma', '3'), ('her uncle', '5'), ('her', '3')]
    """
    documents = list(_documents(path, read_lines(path)))
    if not documents:
        raise DataError(
            "expected documents that start with '#begin document', found none", path=path
        )
    return documents


def write(
    documents: Sequence[Document], path: PathName, labels: Sequence[ArrayLike] | None = None
) -> None:
    """Write documents as they were read, with the clusters that ``labels`` give their mentions.

    Every other column, comment and blank line stays as it is. Without labels the gold clusters are
    written.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "two.conll")
    >>> _ = path.write_text("#begin document (a); part 0\\na 0 0 She (3)\\n\\n#end document\\n")
    >>> write(read(path), path, [[7]])
    >>> path.read_text().splitlines()[1].split()
    ['a', '0', '0', 'She', '(7)']
    """
    clusterings = [document.labels for document in documents] if labels is None else labels
    if len(clusterings) != len(documents):
        raise DataError(
            f"expected labels for {len(documents)} documents, found {len(clusterings)}",
            field="labels",
        )
    with replace_when_done(path) as file:
        for document, clusters in zip(documents, clusterings):
            file.writelines(f"{line}\n" for line in _relabelled(document, np.asarray(clusters)))


def _documents(path: PathName, lines: Sequence[str]) -> Iterator[Document]:
    begin: int | None = None
    for at, line in enumerate(lines):
        if _BEGINS.match(line):
            if begin is not None:
                raise DataError(
                    "expected '#end document' before the next document", path=path, line=at + 1
                )
            begin = at
        elif _ENDS.match(line):
            if begin is None:
                raise DataError("no document was begun before this end", path=path, line=at + 1)
            yield _Reader(path, lines, begin, at).document()
            begin = None
        elif begin is None and line.strip() and not line.startswith("#"):
            raise DataError(
                "expected '#begin document (name); part 0' before tokens", path=path, line=at + 1
            )
    if begin is not None:
        raise DataError("expected '#end document', found none", path=path, line=begin + 1)


class _Reader:
    """One document, from the line of its beginning to that of its end."""

    def __init__(self, path: PathName, lines: Sequence[str], begin: int, end: int) -> None:
        self.path, self.lines, self.begin = path, lines[begin : end + 1], begin
        self.words: list[str] = []
        self.sentences: list[int] = []
        self.speakers: list[str] = []
        self.token_lines: list[int] = []
        self.mentions: list[Mention] = []
        self.open: dict[str, list[int]] = defaultdict(list)

    def document(self) -> Document:
        head = _BEGIN.match(self.lines[0])
        if head is None or not head["name"]:
            self.fail(
                0, "document", f"expected '#begin document (name); part 0', found {self.lines[0]!r}"
            )
        sentence = 0
        for at, line in enumerate(self.lines):
            if line.startswith("#"):
                continue
            if line.strip():
                self.token(at, line, sentence)
            elif self.sentences and self.sentences[-1] == sentence:
                self.close_sentence()
                sentence += 1
        self.close_sentence()
        self.mentions.sort(key=lambda mention: (mention.start, -mention.stop))
        return Document(
            head["name"],
            head["part"] or "0",
            tuple(self.words),
            np.array(self.sentences, np.int64),
            tuple(self.speakers),
            tuple(self.mentions),
            self.path,
            tuple(self.lines),
            tuple(self.token_lines),
        )

    def token(self, at: int, line: str, sentence: int) -> None:
        columns = line.split("\t") if "\t" in line else _SPACES.split(line.strip(" "))
        if len(columns) < FEWEST and len(columns) != SHORT:
            self.fail(
                at,
                None,
                f"expected at least {FEWEST} columns 'document part number word … coreference', "
                f"or {SHORT} 'number word coreference', found {len(columns)}",
            )
        speaker = columns[SPEAKER] if len(columns) > SPEAKER + 1 else ""
        token = len(self.words)
        self.words.append(columns[1 if len(columns) == SHORT else 3])
        self.sentences.append(sentence)
        self.speakers.append("" if speaker in NONE else speaker)
        self.token_lines.append(at)
        if columns[-1].strip() not in NONE:
            for bracket in columns[-1].strip().split("|"):
                self.bracket(at, bracket, token)

    def bracket(self, at: int, bracket: str, token: int) -> None:
        match = _BRACKET.match(bracket)
        if match is None or not (match["opens"] or match["closes"]):
            self.fail(at, "coreference", f"expected '(3', '3)' or '(3)', found {bracket!r}")
        cluster = match["cluster"]
        if not match["closes"]:
            self.open[cluster].append(token)
            return
        if not match["opens"] and not self.open[cluster]:
            self.fail(
                at, "coreference", f"a mention of cluster {cluster} ends here, but none was begun"
            )
        start = token if match["opens"] else self.open[cluster].pop()
        self.mentions.append(Mention(start, token + 1, cluster))

    def close_sentence(self) -> None:
        for cluster, starts in self.open.items():
            if starts:
                self.fail(
                    self.token_lines[starts[-1]],
                    "coreference",
                    f"the mention of cluster {cluster} that begins here does not end in its "
                    "sentence",
                )
        self.open.clear()

    def fail(self, at: int, field: str | None, problem: str) -> NoReturn:
        raise DataError(problem, path=self.path, line=self.begin + at + 1, field=field)


def _relabelled(document: Document, labels: NDArray[Any]) -> list[str]:
    """The lines of a document with the brackets of other clusters."""
    if labels.shape != (len(document.mentions),):
        raise DataError(
            f"expected {len(document.mentions)} labels, one per mention of {document.name}, found "
            f"shape {labels.shape}",
            field="labels",
        )
    brackets: dict[int, list[str]] = defaultdict(list)
    clusters = _uncrossed(document, labels)
    spans = [(m.start, m.stop - 1, label) for m, label in zip(document.mentions, clusters)]
    for first, last, label in spans:
        if first < last:
            brackets[first].append(f"({label}")
    for first, last, label in sorted(spans, key=lambda span: -span[0]):
        if first == last:
            brackets[first].append(f"({label})")
        else:
            brackets[last].append(f"{label})")
    lines = list(document.lines)
    none = _none(document)
    for token, at in enumerate(document.token_lines):
        start, column = _last_column(lines[at])
        blank = column if column in NONE else none
        lines[at] = lines[at][:start] + ("|".join(brackets[token]) or blank)
    return lines


def _last_column(line: str) -> tuple[int, str]:
    """Where the last column begins, and what it says."""
    separated, line = ("\t", line) if "\t" in line else (" ", line.rstrip(" "))
    start = line.rfind(separated) + 1
    return start, line[start:]


def _none(document: Document) -> str:
    """How this document writes that there is no bracket."""
    for at in document.token_lines:
        column = _last_column(document.lines[at])[1]
        if column in NONE:
            return column
    return "-"


def _uncrossed(document: Document, labels: NDArray[Any]) -> list[int]:
    """Labels such that no two mentions of a cluster cross.

    Brackets cannot say which of two such mentions ends first: read again, they would be nested.
    """
    mentions, clusters = document.mentions, labels.tolist()
    fresh = max(clusters, default=-1) + 1
    for k, mention in enumerate(mentions):
        for other in range(k + 1, len(mentions)):
            start, stop, _ = mentions[other]
            if start >= mention.stop:
                break
            if clusters[other] == clusters[k] and mention.start < start and mention.stop < stop:
                warnings.warn(
                    f"document {document.name}: {document.text(mention)!r} and "
                    f"{document.text(mentions[other])!r} cross, which the format cannot write for "
                    "mentions of one cluster; the second was written as a cluster of its own",
                    stacklevel=4,
                )
                clusters[other], fresh = fresh, fresh + 1
    return clusters
