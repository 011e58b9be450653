"""What commands read: judged results and models."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from didyma.errors import DataError, ModelFileError
from didyma.files import format_suffix

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.model import Model

__all__ = ["InputColumns", "is_model", "read_data", "read_model", "reader_options"]

TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
LISTS = ".lists"


@dataclass(frozen=True)
class InputColumns:
    """Where a file has its labels and queries: columns of a table, sizes of groups."""

    label: str = "label"
    qid: str = "qid"
    docid: str | None = None
    group: Path | None = None
    missing: bool = False


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


def read_data(path: Path, columns: InputColumns, *, like: Any = None, judged: bool = True) -> Lists:
    """Judged results in any format that the library reads, with the columns of ``like``.

    Without ``judged``, a table needs no labels.
    """
    from didyma.data.formats import read as read_lists

    return read_lists(path, like=like, **reader_options(path, columns, judged))


def reader_options(path: Path, columns: InputColumns, judged: bool = True) -> dict[str, Any]:
    """What the reader of a file takes of the options of a command."""
    if is_model(path):
        raise DataError("expected judged results, found a model", path=path)
    kind = LISTS if path.is_dir() else format_suffix(path)
    if columns.group is not None and kind in (*TABLES, ".npz", LISTS):
        raise DataError("expected no sizes of groups, as the file names its queries", path=path)
    options: dict[str, Any] = {}
    if kind in TABLES:
        roles = {"label": columns.label, "qid": columns.qid, "docid": columns.docid}
        return {**roles, "judged": judged}
    if kind not in (".npz", LISTS):
        options["group"] = columns.group
    if columns.missing and kind != ".npz":
        options["missing"] = True
    return options


def read_model(path: Path) -> Model:
    """A model that ranks rows of features."""
    from didyma.model import Model

    model = Model.read(path)
    if not model.ranks:
        raise ModelFileError(f"{path}: holds a {model.name}, which does not rank")
    return model
