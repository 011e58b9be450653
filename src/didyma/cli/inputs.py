"""What commands read: judged results and models."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeVar

from didyma.cli import options
from didyma.errors import DataError, ModelFileError
from didyma.files import format_suffix, replace_when_done

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.model import Model


TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
LISTS = ".lists"
COLUMNS = "Columns of a table (.csv, .tsv, .parquet, .jsonl)"


@dataclass(frozen=True)
class InputColumns:
    """Where a file has its labels and queries: columns of a table, sizes of groups."""

    label: Annotated[str, options.text("NAME", "Relevance.", panel=COLUMNS)] = "label"
    qid: Annotated[str, options.text("NAME", "Query.", panel=COLUMNS)] = "qid"
    docid: Annotated[
        str | None,
        options.text("NAME", "Document.", default="docid, if there is one", panel=COLUMNS),
    ] = None
    group: Annotated[
        Path | None,
        options.file(
            "Number of rows of each query, one a line, for a LETOR file without qid. DATA.query "
            "and DATA.group are found without it."
        ),
    ] = None


def is_model(path: Path) -> bool:
    """Whether a file is in safetensors format: by its name, or a length and a ``{`` up front."""
    if path.suffix == ".safetensors":
        return True
    if path.is_dir():
        return False
    with open(path, "rb") as file:
        head = file.read(9)
    length = int.from_bytes(head[:8], "little")
    return head[8:] == b"{" and 8 + length <= os.path.getsize(path)


def read_data(
    path: Path,
    columns: InputColumns,
    *,
    like: Any = None,
    judged: bool = True,
    missing: bool = False,
) -> Lists:
    """Judged results in any format that the library reads, with the columns of ``like``.

    Without ``judged``, a table needs no labels; with ``missing``, values may be missing.
    """
    from didyma.data.formats import read as read_lists

    return read_lists(path, like=like, **reader_options(path, columns, judged, missing))


def reader_options(
    path: Path, columns: InputColumns, judged: bool = True, missing: bool = False
) -> dict[str, Any]:
    """What the reader of a file takes of the options of a command."""
    if is_model(path):
        raise DataError("expected judged results, found a model", path=path)
    kind = LISTS if path.is_dir() else format_suffix(path)
    if columns.group is not None and kind in (*TABLES, ".npz", LISTS):
        raise DataError("expected no sizes of groups, as the file names its queries", path=path)
    if kind in TABLES:
        roles = {"label": columns.label, "qid": columns.qid, "docid": columns.docid}
        return {**roles, "judged": judged}
    grouped = {} if kind in (".npz", LISTS) else {"group": columns.group}
    return grouped | ({"missing": True} if missing and kind != ".npz" else {})


def read_model(path: Path) -> Model:
    """A model that ranks rows of features."""
    from didyma.model import Model

    model = Model.read(path)
    if not model.ranks:
        raise ModelFileError(f"{path}: holds a {model.name}, which does not rank")
    return model


T = TypeVar("T")


def scored(
    model: Model,
    path: Path,
    columns: InputColumns,
    use: Callable[[Iterator[Lists]], T],
    *,
    judged: bool = True,
    by_query: bool = True,
    again: bool = True,
) -> T:
    """What ``use`` makes of the rows of a file, with a score as their only feature, in constant
    memory.

    They come in blocks, of whole queries with ``by_query``. Where queries are needed and their rows
    do not stand together, ``use`` is called again with all rows at once, unless it must not be.
    """
    from didyma.data.formats import blocks
    from didyma.data.row_blocks import ScatteredError, whole_queries
    from didyma.errors import placed

    options = reader_options(path, columns, judged)
    try:
        parts = model.predict_blocks(blocks(path, like=model, **options))
        return use(whole_queries(parts) if by_query else parts)
    except ScatteredError as error:
        if not again:
            with placed(path):
                raise error
    rows = read_data(path, columns, like=model, judged=judged)
    return use(iter([rows.with_items(model.predict(rows)[:, None])]))


def is_stdout(output: Path | None) -> bool:
    """Whether results go to stdout: there is no file, or it is called ``-``."""
    return output is None or str(output) == "-"


def written(output: Path | None) -> AbstractContextManager[IO[Any]]:
    """Where results are written as they come: a file that is whole or not there, or stdout."""
    return nullcontext(sys.stdout) if is_stdout(output) else replace_when_done(str(output))
