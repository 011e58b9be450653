"""Scores of a model as they come: a block of rows is read at a time, and what it gives written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from didyma.cli.inputs import InputColumns, read_data, reader_options
from didyma.files import replace_when_done

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.model import Model

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
