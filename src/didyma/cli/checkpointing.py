"""Commands that train outlive their process: a checkpoint beside the model, and --resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli.output import say
from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.checkpoints import Checkpoint

__all__ = ["Every", "Folder", "Resume", "surviving"]

PANEL = "Checkpoint"
FREE = ("as_json", "jobs", "resume", "checkpoint_every")  # what a resumed run need not repeat

Folder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FOLDER",
        rich_help_panel=PANEL,
        help="Folder of checkpoints; removed when training is done.",
        show_default="the model's name with .checkpoint",
    ),
]
Every = Annotated[
    float,
    typer.Option(
        "--checkpoint-every",
        metavar="SECONDS",
        min=0,
        rich_help_panel=PANEL,
        help="Time between checkpoints.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        rich_help_panel=PANEL,
        help="Go on from the checkpoint, if there is one: same data, same options.",
    ),
]


@contextmanager
def surviving(context: typer.Context, output: Path, **data: Any) -> Iterator[Checkpoint]:
    """Whatever is trained in the block goes on where it was, if the process dies.

    The options of a command, which are in its context, say where the checkpoint is. They and the
    ``data`` must be the same in a run that goes on.
    """
    from didyma.checkpoints import Checkpoint, checkpointing, fingerprint

    given = context.params
    folder = given["checkpoint"] or output.with_name(f"{output.name}.checkpoint")
    if folder.exists() and not folder.is_dir():
        raise DataError("expected a folder for checkpoints, found a file", path=folder)
    if not folder.resolve().parent.is_dir():
        raise DataError("cannot be made, as the folder around it does not exist", path=folder)
    flags = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    identity: dict[str, Any] = {
        flags[name]: value
        for name, value in given.items()
        if not (name in FREE or value is None or isinstance(value, Path))
    }

    def teller(value: Any) -> Callable[[], str]:
        return lambda: fingerprint(value)

    identity |= {name: teller(value) for name, value in data.items()}
    every, resume = given["checkpoint_every"], given["resume"]
    kept = Checkpoint(folder, identity, every=every, resume=resume)
    if resume:
        found = "going on from here" if kept.exists else "no checkpoint, so from the start"
        say(f"{folder}: {found}")
    elif kept.exists:
        say(f"{folder}: a checkpoint that is not used; --resume would go on from it")
    with checkpointing(kept):
        yield kept
    if kept.interrupted and kept.exists:
        say(f"{folder}: --resume goes on from here")
