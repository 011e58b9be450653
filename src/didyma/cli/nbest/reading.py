"""How the commands of `didyma nbest` read lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from didyma.cli.output import say, waiting

if TYPE_CHECKING:
    from didyma.data.lists import Lists

__all__ = ["read_lists"]


def read_lists(
    path: Path, inputs: Path | None, references: Path | None, loss_column: str = "loss"
) -> Lists:
    """Read a file and say what it holds."""
    from didyma.nbest import formats as nbest

    with waiting(f"reading {path}"):
        lists = nbest.read(path, inputs=inputs, references=references, loss=loss_column)
    n_empty = int((lists.groups.sizes == 0).sum())
    empty = f", {n_empty} without any" if n_empty else ""
    say(f"{path}: {len(lists.groups)} lists, {len(lists)} candidates{empty}")
    return lists
