"""Files of MS MARCO that hold the texts themselves.

Lines of ``top1000`` have qid, docid, query and passage, those of ``triples`` query, a relevant
passage and another, with tabs between them. All other files of it are as in
`didyma.data.texts.by_id` and `didyma.data.trec`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from didyma.data.delimited import tab_separated
from didyma.data.lists import Lists
from didyma.data.text_columns import text_array
from didyma.data.texts.rows import TextRows
from didyma.data.trec import Run
from didyma.errors import DataError
from didyma.files import PathName, stream_lines

TOP = ("qid", "docid", "query", "passage")
TRIPLE = ("query", "positive", "negative")


def has_texts(path: PathName) -> bool:
    """Whether candidates stand there with their texts: four fields, the last of several words."""
    line = next((line for line in stream_lines(path) if line.strip()), b"")
    fields = line.split(b"\t")
    return len(fields) == len(TOP) and b" " in fields[3].strip()


def read_top(path: PathName) -> tuple[dict[str, str], dict[str, str], Run]:
    """Queries and passages by id, and candidates, whose scores are not known: all are 0."""
    queries: dict[str, str] = {}
    passages: dict[str, str] = {}
    pairs: dict[tuple[str, str], None] = {}
    for number, (qid, docid, query, passage) in tab_separated(path, TOP):
        for field, texts, name, text in (
            ("query", queries, qid, query),
            ("passage", passages, docid, passage),
        ):
            if texts.setdefault(name, text) != text:
                problem = f"expected the text that {name!r:.40} had before"
                raise DataError(problem, path=path, line=number, field=field)
        if (qid, docid) in pairs:
            problem = f"expected each passage once a query, found {docid!r:.40} again"
            raise DataError(problem, path=path, line=number, field="docid")
        pairs[qid, docid] = None
    if not pairs:
        raise DataError(f"expected lines of {', '.join(TOP)}, found none", path=path)
    qids, docids = (text_array([pair[k] for pair in pairs]) for k in (0, 1))
    return queries, passages, Run(qids, docids, np.zeros(len(pairs)), Path(path).name)


def read_triples(path: PathName) -> Lists:
    """Lists of the passages that stand beside each query, labelled 1 or 0.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "triples.tsv")
    >>> _ = path.write_text("who?\\tJane.\\tNo.\\nwho?\\tJane.\\tLate.\\n")
    >>> lists = read_triples(path)
    >>> lists.items, lists.labels.tolist()
    (['Jane.', 'No.', 'Late.'], [1.0, 0.0, 0.0])
    """
    rows = TextRows(path)
    for number, (query, positive, negative) in tab_separated(path, TRIPLE):
        rows.add_once(number, query, positive, label=1.0)
        rows.add_once(number, query, negative, label=0.0)
    return rows.lists()
