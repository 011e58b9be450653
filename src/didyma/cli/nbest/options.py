"""Options that the commands of `didyma nbest` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from didyma.cli import options
from didyma.cli.groups import Option, ParametersOf
from didyma.cli.output import print_message, waiting

if TYPE_CHECKING:
    from didyma.data.lists import Lists

DATA = "N-best lists: JSON lines, or Moses style (id ||| text ||| features ||| total)."
PANEL = "Lists"
LOSS = Option("loss", sentences=2)
RERANKER = "didyma.nbest.reranker.NBestReranker"

Data = Annotated[Path, options.argument("DATA", DATA)]
Model = Annotated[Path, options.argument("MODEL", "A model that didyma nbest fit has saved.")]
Inputs = Annotated[Path | None, options.file("Inputs, a line for each list.", panel=PANEL)]
Loss = Annotated[dict[str, Any], ParametersOf(RERANKER, {PANEL: [LOSS]})]


@dataclass(frozen=True)
class ListFiles:
    """Where lists have their inputs, references and losses."""

    loss_column: Annotated[
        str,
        options.text("NAME", "Field or feature of a candidate that holds its loss.", panel=PANEL),
    ] = "loss"
    inputs: Inputs = None
    references: Annotated[
        Path | None, options.file("Reference outputs, a line for each list.", panel=PANEL)
    ] = None

    def read(self, path: Path) -> Lists:
        """The lists of a file, and a line on what it holds."""
        return read_lists(path, self.inputs, self.references, self.loss_column)


def read_lists(
    path: Path, inputs: Path | None, references: Path | None, loss_column: str = "loss"
) -> Lists:
    """Read a file and say what it holds."""
    from didyma.nbest import formats as nbest

    with waiting(f"reading {path}"):
        lists = nbest.read(path, inputs=inputs, references=references, loss=loss_column)
    n_empty = int((lists.groups.sizes == 0).sum())
    empty = f", {n_empty} without any" if n_empty else ""
    print_message(f"{path}: {len(lists.groups)} lists, {len(lists)} candidates{empty}")
    return lists
