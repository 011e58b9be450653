"""Queries, passages and judgements in any file or folder that users have, as `Lists` of texts.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp(), "judged.tsv")
>>> _ = path.write_text("query\\tpassage\\tlabel\\nwho?\\tJane.\\t1\\nwho?\\tIt is late.\\t0\\n")
>>> read(path)
Lists(2 rows of str, 1 queries)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from didyma.data.column_roles import Roles
from didyma.data.lists import Lists
from didyma.data.schema import FieldChoice, FieldOptions, Schema
from didyma.data.text_columns import text_array
from didyma.data.texts import collection, qa
from didyma.data.texts import json_lines as json_texts
from didyma.data.texts import table as text_table
from didyma.data.texts.collection import Engine, Retriever
from didyma.errors import DataError, placed
from didyma.files import PathName, format_suffix, stream_lines

DEPTH = 50
KNOWN = "JSON lines, a table with columns query and passage, question, sentence and label"


def read(
    path: PathName,
    *,
    part: str | None = None,
    run: PathName | Sequence[PathName] | None = None,
    first_stage: Retriever | Engine | None = None,
    depth: int = DEPTH,
    fields: Sequence[str] = (),
    signals: Sequence[str] = (),
    ignore: Sequence[str] = (),
    schema: Schema | None = None,
    **names: str | None,
) -> Lists:
    """Read texts, whatever their layout: name and first line of the path tell.

    ============================ ===============================================================
    ``.jsonl``, ``.json``        JSON lines, an object a query, a pair or a contrast
                                 (`didyma.data.texts.json_lines`)
    ``.csv``, ``.parquet``       a table with columns ``query``, ``passage``, ``label``, …
                                 (`didyma.data.texts.table`)
    ``triples*``                 query, positive and negative, as MS MARCO has them
    other files                  the same table with tabs, or WikiQA's: question, sentence and label
    folder with ``a.toks``       TREC QA
    other folders                BEIR, MS MARCO, … (`didyma.data.texts.collection`)
    ============================ ===============================================================

    All may be packed (``.gz``). Labels, scores of the first stage, and ids are there if the files
    have them. What cannot be used is counted, and a warning says so.

    Parameters
    ----------
    path : path
        A file or a folder.
    part : str, optional
        Of a folder with several: "train", "dev", "test".
    run : path or several, optional
        Candidates of a folder. Of several runs each is a signal of the first stage, named by its
        tag.
    first_stage : Retriever or SearchEngine, optional
        What finds candidates in a folder that has none, such as ``didyma.text.BM25()``. An engine
        of `didyma.text.retrieval`, or a `didyma.PassageIndex`, always does, among its own passages:
        the folder then needs no others.
    depth : int
        How many it finds for a query.
    fields, signals, ignore : sequence of str, optional
        Fields of passages that are texts, that are signals or categories, and that do not count.
        All others are told by their names and values (`didyma.data.Schema`).
    schema : Schema, optional
        That of the data that a model was trained on, instead of these.
    **names
        What columns or fields are called: ``query``, ``passage``, ``label``, ``score``, ``qid``,
        ``docid``. A teacher's scores are labels: ``label="score"``.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "train.jsonl")
    >>> _ = path.write_text('{"query": "who?", "passage": "Jane Austen.", "label": 1}\\n')
    >>> read(path)
    Lists(1 rows of str, 1 queries)
    """
    place, roles = Path(path), Roles(**names)
    choice = FieldChoice(fields, signals, ignore, schema)
    if place.is_dir():
        _check_nameless(path, roles)
        if any((place / name).exists() for name in qa.FILES):
            return qa.read_trecqa(place)
        indexed = isinstance(first_stage, Engine)
        texts = collection.read_folder(
            place, part=part, run=run, indexed=indexed, fields=choice.texts
        )
        if not texts.runs and first_stage is not None:
            texts = texts.with_candidates(first_stage, depth)
        return texts.lists(choice)
    if isinstance(first_stage, Engine):
        raise DataError("expected a folder of queries and judgements beside an index", path=path)
    suffix = format_suffix(path)
    if suffix in (".jsonl", ".json", ".ndjson"):
        return json_texts.read(path, roles, choice)
    if suffix in (".csv", ".parquet"):
        return text_table.read(path, roles, choice)
    if place.name.lower().startswith("triples"):
        _check_nameless(path, roles)
        return text_table.read_triples(path)
    return _read_tabs(path, roles, choice)


def read_files(
    *,
    queries: PathName,
    passages: PathName | None = None,
    qrels: PathName | None = None,
    run: PathName | Sequence[PathName] | None = None,
    first_stage: Retriever | Engine | None = None,
    depth: int = DEPTH,
    **options: Unpack[FieldOptions],
) -> Lists:
    """Read the files of a collection, such as one of TREC: texts by id, judgements, candidates.

    Queries and passages are lines of an id, a tab and a text, or JSON lines; without a run the
    candidates come from a first stage, as in `read`, which may have the passages as well. Runs and
    fields are as there.
    """
    if passages is None and not isinstance(first_stage, Engine):
        raise DataError("expected passages, or an index of them", path=queries, field="passages")
    choice = FieldChoice(**options)
    texts = collection.read_files(
        queries=queries, passages=passages, qrels=qrels, run=run, fields=choice.texts
    )
    if not texts.runs and first_stage is not None:
        texts = texts.with_candidates(first_stage, depth)
    return texts.lists(choice)


def from_frame(frame: Any, **options: Any) -> Lists:
    """Texts of a data frame with columns ``query``, ``passage``, ``label`` and so on.

    ``options`` are those of `read`: fields, signals, ignore, schema, and names of columns.

    >>> import polars
    >>> table = {"query": ["who?", "who?"], "passage": ["Jane Austen.", "Late."], "label": [1, 0]}
    >>> from_frame(polars.DataFrame(table))
    Lists(2 rows of str, 1 queries)
    """
    fields = {name: options.pop(name) for name in FieldChoice._fields if name in options}
    return text_table.from_frame(frame, Roles(**options), FieldChoice(**fields))


def _read_tabs(path: PathName, roles: Roles, choice: FieldChoice) -> Lists:
    first = next((line for line in stream_lines(path) if line.strip()), b"")
    if not first:
        raise DataError(f"expected {KNOWN}, found an empty file", path=path)
    if first.lstrip().startswith(b"{"):
        return json_texts.read(path, roles, choice)
    header = first.decode(errors="replace").split("\t")
    with placed(path, 1):
        columns = roles.among(header)
    if "query" in columns and ("passage" in columns or set(choice.texts) & set(header)):
        return text_table.read(path, roles, choice)
    if len(header) == len(qa.COLUMNS):
        _check_nameless(path, roles)
        lists = qa.read_wikiqa(path)
        names = text_array([str(n + 1) for n in range(len(lists.groups))])  # as below a header
        return replace(lists, qid=names[lists.groups.codes], grouping=None)
    raise DataError(f"expected {KNOWN}, found {len(header)} other fields", path=path, line=1)


def _check_nameless(path: PathName, roles: Roles) -> None:
    """Refuse names for what is read by its place rather than by a name."""
    if roles.given:
        raise DataError("its fields have no names that could be given", path=path)
