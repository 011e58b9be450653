"""Passages alone, to be searched: a corpus in any file or folder that users have.

    .jsonl, .json, .ndjson    an object a line, with a text and perhaps an id, a title and more
    .csv, .parquet            a table with a column passage or text (`didyma.data.column_roles`)
    .txt, .md, .rst, …        a document, cut into passages (`didyma.data.texts.chunking`)
    other files               the same table with tabs, or lines of an id, a tab and a text
    folders                   with a file corpus, collection, passages or documents, as of BEIR;
                              or with text files, at any depth

Files may be packed (``.gz``), documents excepted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from didyma.data import frame
from didyma.data.column_roles import known_as
from didyma.data.delimited import DelimitedFile, tab_separated
from didyma.data.json_lines import objects
from didyma.data.passage import Passage, flattened
from didyma.data.texts import chunking, collection
from didyma.errors import DataError, placed
from didyma.files import PathName, format_suffix, stream_lines


def read(path: PathName) -> Iterator[Passage]:
    """The passages at a path, one after the other; those without an id have None.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "passages.tsv")
    >>> _ = path.write_text("7\\tJane Austen wrote Emma.\\n")
    >>> list(read(path))
    [Passage(text='Jane Austen wrote Emma.', id='7', metadata={}, fields={})]
    """
    place = source(path)
    if place.is_dir():
        yield from chunking.read_folder(place)
        return
    if Path(place).suffix.lower() in chunking.SUFFIXES:
        yield from chunking.read(place)
        return
    empty = True
    for line, record in _records(place):
        empty = False
        with placed(place, line):
            passage = Passage.of(record)
        yield passage._replace(metadata=flattened(passage.metadata, passage.fields))
    if empty:
        raise DataError("expected passages, found none", path=place)


def source(path: PathName) -> Path:
    """The file that a path leads to, or a folder of text files."""
    place = Path(path)
    return (collection.corpus_of(place) or place) if place.is_dir() else place


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Lines, or rows of a table, and what stands in them."""
    suffix = format_suffix(path)
    if suffix in (".jsonl", ".json", ".ndjson"):
        return objects(path)
    if suffix == ".parquet":
        with placed(path):
            return enumerate(frame.opened(frame.read_parquet(path)).iter_rows(named=True), 1)
    if suffix == ".csv":
        return _rows(DelimitedFile(path, ","))
    first = next((line for line in stream_lines(path) if line.strip()), b"")
    if first.lstrip().startswith(b"{"):
        return objects(path)
    if known_as("passage", first.decode(errors="replace").split("\t")) is not None:
        return _rows(DelimitedFile(path, "\t", quoted=False))
    rows = tab_separated(path, ("id", "text"))
    return ((line, {"id": name.strip(), "text": text}) for line, (name, text) in rows)


def _rows(file: DelimitedFile) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return ((line, dict(zip(file.header, row))) for line, row in file.rows())
