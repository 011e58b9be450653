"""Judged results in the format that a file's name tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from didyma.data import letor, lists_folder, numpy_file, table
from didyma.data.lists import Lists
from didyma.data.matrix import Columns
from didyma.data.schema import Schema
from didyma.data.text_columns import is_text
from didyma.errors import DataError, warn_left_out
from didyma.files import PathName, format_suffix

BY_SUFFIX = {
    **dict.fromkeys((".csv", ".tsv", ".parquet", ".jsonl"), table),
    ".npz": numpy_file,
}


def read(path: PathName, *, like: Any = None, **options: Any) -> Lists:
    """Read judged results in the format that the name tells; ``options`` are those of its reader.

    ``.csv``, ``.tsv``, ``.parquet`` and ``.jsonl`` are tables, ``.npz`` is NumPy's, all others are
    LETOR / svmlight; a final ``.gz`` does not count. A folder, such as ``train.lists``, is one that
    `write` or ``didyma convert`` has made; it is mapped into memory, not loaded.

    ``like`` is other data, or a fitted model, whose columns these must become: matched by name
    where both have names, by index otherwise. Every file but the first of a collection should be
    read like it, since a LETOR file may lack the first feature, or the last. Values may be missing
    where it is a model that knows what to make of them, or data that lack some.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.txt").write_text("1 qid:a 0:7 1:5\\n")
    >>> _ = (folder / "test.txt").write_text("1 qid:b 1:5\\n")
    >>> train = read(folder / "train.txt")
    >>> read(folder / "test.txt", like=train).X.tolist()
    [[0.0, 5.0]]
    """
    reader = format_of(path)
    data: Lists = reader.read(path, **_options(reader, like, options))
    return data if like is None else Columns.of(like).arrange(data, path)


def blocks(path: PathName, *, like: Any = None, **options: Any) -> Iterator[Lists]:
    """The rows that `read` gives, in their order but some at a time, in constant memory.

    A query may go on in the next block (`didyma.data.row_blocks.whole_queries`). A ``.npz`` file is
    one block.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "train.txt")
    >>> _ = path.write_text("1 qid:a 1:7\\n0 qid:a 1:5\\n")
    >>> sum(len(part) for part in blocks(path))
    2
    """
    reader = format_of(path)
    for part in reader.blocks(path, **_options(reader, like, options)):
        yield part if like is None else Columns.of(like).arrange(part, path)


def _options(reader: ModuleType, like: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a reader, and those that make it read what is like something else."""
    if like is None:
        return options
    features = Columns.of(like)
    if reader is not numpy_file:
        options = {"missing": _may_be_missing(like), **options}
    if reader is letor:
        options |= {"n_features": features.count}
        if features.zero_based is not None:
            options |= {"zero_based": features.zero_based}
    elif reader is table:
        names, texts = features.names, features.categories
        known = {n: t for n, t in zip(names or (), texts or ()) if t is not None}
        options |= {"features": names, "categorical": known}
    return options


def _may_be_missing(like: Any) -> bool:
    """Whether this is a model that knows missing values, or data that have some."""
    if isinstance(like, Lists):
        return isinstance(like.X, np.ndarray) and bool(np.isnan(np.min(like.X, initial=0.0)))
    if hasattr(like, "allows_missing"):
        return bool(like.allows_missing)
    final = like.steps[-1][1] if hasattr(like, "steps") else like
    return bool(getattr(final, "_allows_missing", False))


def write(data: Lists, path: PathName) -> None:
    """Write judged results in the format that the name tells, as in `read`.

    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp(), "train.csv")
    >>> lists = Lists(np.array([[0.5]]), np.ones(1), np.array(["q"]), feature_names=("bm25",))
    >>> write(lists, path)
    >>> read(path)
    Lists(1 rows, 1 features, 1 queries)
    """
    _check_ids(data, path)
    _warn_of_attributes(data, path)
    format_of(path).write(data, path)


def write_blocks(parts: Iterable[Lists], path: PathName) -> None:
    """The same of rows that come some at a time, in constant memory unless it is a ``.npz`` file.

    Those of a query need not stand together, and only in a folder are they put together.

    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("label,qid,bm25\\n1,apple,2.5\\n0,apple,1.0\\n")
    >>> write_blocks(blocks(folder / "a.csv"), folder / "b.csv")
    >>> read(folder / "b.csv")
    Lists(2 rows, 1 features, 1 queries)
    """
    format_of(path).write_blocks(_alike(parts, path), path)


def _alike(parts: Iterable[Lists], path: PathName) -> Iterator[Lists]:
    """The same, if all have the columns of the first."""
    first = None
    for part in parts:
        columns = part.features, part.docid is None
        if first not in (None, columns):
            raise DataError("expected the columns of the first rows, found others", path=path)
        if first is None:
            _warn_of_attributes(part, path)
        first = columns
        _check_ids(part, path)
        yield part


def _warn_of_attributes(data: Lists, path: PathName) -> None:
    """Say that a file of features keeps nothing else of the documents."""
    if data.attributes and format_of(path) is not lists_folder:  # which refuses them
        names = ", ".join(field.name for field in Schema.of(data.attributes).fields)
        warn_left_out(f"features are written, fields of documents are not: {names}", path)


def _check_ids(data: Lists, path: PathName) -> None:
    """Refuse ids that no reader would take, and codes of texts, which no format holds."""
    if data.categories is not None:
        raise DataError("expected numbers, found categories that are texts", path=path)
    for field, column in (("qid", data.qid), ("docid", data.docid)):
        if column is not None and not is_text(column):
            problem = "expected text, found what no character has as its code"
            raise DataError(problem, path=path, field=field)


def format_of(path: PathName) -> ModuleType:
    """The module that reads and writes what has this name.

    >>> format_of("train.csv").__name__, format_of("train.txt").__name__
    ('didyma.data.table', 'didyma.data.letor')
    """
    if lists_folder.is_lists_folder(path):
        return lists_folder
    return BY_SUFFIX.get(format_suffix(path), letor)
