"""Answer sentence selection: questions, the candidate sentences of each, and which answer it.

Readers give `Lists` of sentences in the order of the file, whose queries are the questions, with
labels 0 or 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.files import PathName, read_lines

__all__ = ["read_trecqa", "read_wikiqa"]

COLUMNS = ("question", "sentence", "label")
FILES = ("id.txt", "a.toks", "b.toks", "sim.txt")


def read_wikiqa(path: PathName) -> Lists:
    """Read WikiQA: tab-separated question, sentence and label; rows of a question are contiguous.

    A header, as in the original release, may name these columns among others (``Question``,
    ``Sentence``, ``Label``, and ``QuestionID`` to tell questions apart). Plain or gzip.
    """
    return _lists(_rows(path))


def read_trecqa(path: PathName, *, lowercase: bool = True) -> Lists:
    """Read TREC QA: a table with a header as in `read_wikiqa`, or a folder of parallel files.

    The folder has a line for each pair in ``a.toks`` (question), ``b.toks`` (sentence), ``sim.txt``
    (label) and ``id.txt`` (question id). Dev and test sets are distributed in lower case and the
    training set is not, so all text is put in lower case unless ``lowercase=False``.

    Answers stand before other candidates in these files: their order gives the labels away.
    """
    rows = _parallel(Path(path)) if Path(path).is_dir() else _rows(path)
    if not lowercase:
        return _lists(rows)
    lowered = (
        row._replace(question=row.question.lower(), sentence=row.sentence.lower()) for row in rows
    )
    return _lists(lowered)


class _Row(NamedTuple):
    key: str
    question: str
    sentence: str
    label: int


def _lists(rows: Iterable[_Row]) -> Lists:
    question_texts, sentences, labels = [], [], []
    for _, group in groupby(rows, key=lambda row: row.key):
        _, questions, group_sentences, judged = zip(*group)
        question_texts.append(questions[0])
        sentences.append(group_sentences)
        labels.append(judged)
    return Lists.of_texts(question_texts, sentences, labels)


def _rows(path: PathName) -> Iterator[_Row]:
    lines = _lines(path)
    names = [name.strip().lower().replace("_", "") for name in lines[0].split("\t")]
    has_header = "label" in names
    if not has_header:
        names = list(COLUMNS)
    elif missing := [name for name in COLUMNS if name not in names]:
        raise DataError(f"expected a column {missing[0]!r} in the header", path=path, line=1)
    for number, line in enumerate(lines[has_header:], start=1 + has_header):
        fields = line.split("\t")
        if len(fields) != len(names):
            raise DataError(
                f"expected {len(names)} fields ({', '.join(names)}), found {len(fields)}",
                path=path,
                line=number,
            )
        row = dict(zip(names, fields))
        yield _Row(
            row.get("questionid", row["question"]),
            _text(row["question"], "question", path, number),
            _text(row["sentence"], "sentence", path, number),
            _label(row["label"], path, number),
        )


def _parallel(folder: Path) -> Iterator[_Row]:
    if absent := [name for name in FILES if not (folder / name).is_file()]:
        raise DataError(f"expected a file {absent[0]}", path=folder)
    columns = [_lines(folder / name) for name in FILES]
    for name, column in zip(FILES, columns):
        if len(column) != len(columns[0]):
            raise DataError(
                f"expected {len(columns[0])} lines, as in {FILES[0]}, found {len(column)}",
                path=folder / name,
            )
    for number, (key, question, sentence, label) in enumerate(zip(*columns), start=1):
        yield _Row(
            _text(key, "question id", folder / FILES[0], number),
            _text(question, "question", folder / FILES[1], number),
            _text(sentence, "sentence", folder / FILES[2], number),
            _label(label, folder / FILES[3], number),
        )


def _lines(path: PathName) -> list[str]:
    lines = read_lines(path)
    if lines == [""]:
        raise DataError("expected lines of question, sentence and label, found none", path=path)
    return lines


def _text(text: str, field: str, path: Any, line: int) -> str:
    if not (stripped := text.strip()):
        raise DataError("expected some text, found none", path=path, line=line, field=field)
    return stripped


def _label(text: str, path: Any, line: int) -> int:
    if text.strip() not in ("0", "1"):
        raise DataError(f"expected 0 or 1, found {text!r}", path=path, line=line, field="label")
    return int(text)
