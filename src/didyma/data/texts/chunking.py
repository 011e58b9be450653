"""Documents cut into passages: text and markdown files, at headings and between paragraphs.

A passage has at most `LONGEST` words, as many whole paragraphs as that allows, and no more than one
section. The headings that it stands under go before it. A longer paragraph is cut after sentences,
a longer sentence between words. In scripts without spaces each character counts as a word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from didyma.data.passage import Passage
from didyma.errors import DataError, warn_left_out
from didyma.files import PathName, read_lines

LONGEST = 200  # words, as many as a reranker reads at a time
SUFFIXES = (".txt", ".text", ".md", ".markdown", ".rst")

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)[\s#]*")
_UNDERLINE = re.compile(r"(=+|-+|~+|\^+|\*+)\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
_SENTENCE = re.compile(r"(?<=[.!?])(?=\s)|(?<=[。！？])")


class Paragraph(NamedTuple):
    """A part of a document: the headings above it, the line that it begins on, its text."""

    titles: tuple[str, ...]
    line: int
    text: str


def files(folder: PathName) -> tuple[list[Path], int]:
    """Text files below a folder in order, and how many others there are.

    What is hidden, its name beginning with a dot, is left out.
    """
    texts, others = [], 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            if Path(name).suffix.lower() in SUFFIXES:
                texts.append(Path(root, name))
            else:
                others += 1
    return texts, others


def read_folder(folder: PathName) -> Iterator[Passage]:
    """The passages of all text files below a folder."""
    paths, others = files(folder)
    if not paths:
        raise DataError(f"expected a corpus, or text files ({', '.join(SUFFIXES)})", path=folder)
    if others:
        warn_left_out(f"left out {others} files that are no texts by name", folder)
    for path in paths:
        yield from read(path, path.relative_to(folder).as_posix())


def read(path: PathName, name: str | None = None) -> Iterator[Passage]:
    """The passages of a document, whose ids are its ``name`` and their number."""
    name = Path(path).name if name is None else name
    for number, paragraph in enumerate(passages(read_lines(path)), 1):
        text = "\n\n".join(filter(None, [" › ".join(paragraph.titles), paragraph.text]))
        yield Passage(text, f"{name}#{number}", {"file": name, "line": paragraph.line})


def passages(lines: list[str]) -> Iterator[Paragraph]:
    """The lines of a document as passages.

    >>> for found in passages(["# Cats", "", "They purr.", "", "They sleep.", "## Food", "Fish."]):
    ...     print(found)
    Paragraph(titles=('Cats',), line=3, text='They purr.\\n\\nThey sleep.')
    Paragraph(titles=('Cats', 'Food'), line=7, text='Fish.')
    """
    held: list[Paragraph] = []
    size = 0
    for paragraph in _paragraphs(lines):
        for piece in _pieces(paragraph):
            n_words = _n_words(piece.text)
            if held and (size + n_words > LONGEST or held[0].titles != piece.titles):
                yield _joined(held)
                held, size = [], 0
            held.append(piece)
            size += n_words
    if held:
        yield _joined(held)


def _joined(held: list[Paragraph]) -> Paragraph:
    return held[0]._replace(text="\n\n".join(paragraph.text for paragraph in held))


def _n_words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))


def _paragraphs(lines: list[str]) -> Iterator[Paragraph]:
    titles: list[tuple[int, str]] = []
    underlines: list[str] = []  # signs of underlined headings, by level
    held: list[str] = []
    first, fence = 0, None

    def paragraph() -> Iterator[Paragraph]:
        if held:
            yield Paragraph(tuple(title for _, title in titles), first, "\n".join(held))
            held.clear()

    def begin(level: int, title: str) -> None:
        titles[:] = [*(above for above in titles if above[0] < level), (level, title)]

    for number, line in enumerate(lines, 1):
        fenced = _FENCE.match(line)
        if fence is not None:
            held.append(line)
            fence = None if fenced and fenced[1] == fence else fence
        elif heading := _HEADING.fullmatch(line):
            yield from paragraph()
            begin(len(heading[1]), heading[2])
        elif drawn := _underline(held, line):
            if drawn not in underlines:
                underlines.append(drawn)
            begin(1 + underlines.index(drawn), held.pop().strip())
            held.clear()
        elif line.strip():
            first = first if held else number
            held.append(line)
            fence = fenced[1] if fenced else None
        else:
            yield from paragraph()
    yield from paragraph()


def _underline(held: list[str], line: str) -> str | None:
    """The sign that makes a heading of the one line that is held, which may have a line above."""
    if len(held) == 2 and _UNDERLINE.fullmatch(held[0]):
        held = held[1:]
    match = _UNDERLINE.fullmatch(line)
    return match[1][0] if match and len(held) == 1 and len(match[1]) > 2 else None


def _pieces(paragraph: Paragraph) -> Iterator[Paragraph]:
    """The paragraph, or its sentences in runs that are short enough."""
    if _n_words(paragraph.text) <= LONGEST:
        yield paragraph
        return
    begin = end = size = 0
    text = paragraph.text
    for cut in _cuts(text):
        n_words = _n_words(text[end:cut])
        if size and size + n_words > LONGEST:
            yield _part(paragraph, begin, end)
            begin, size = end, 0
        end, size = cut, size + n_words
    yield _part(paragraph, begin, len(text))


def _cuts(text: str) -> Iterator[int]:
    """Places after sentences, and within one that is too long after words."""
    begin = 0
    for end in [*(match.start() for match in _SENTENCE.finditer(text)), len(text)]:
        words = [match.end() for match in _WORD.finditer(text, begin, end)]
        yield from words[LONGEST - 1 : -1 : LONGEST]
        if end > begin:
            yield end
        begin = end


def _part(paragraph: Paragraph, begin: int, end: int) -> Paragraph:
    line = paragraph.line + paragraph.text.count("\n", 0, begin)
    return paragraph._replace(line=line, text=paragraph.text[begin:end].strip())
