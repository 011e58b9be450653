"""Commands that train outlive their process: a checkpoint beside the model, and --resume."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import typer

from didyma.cli import options
from didyma.cli.output import print_message
from didyma.errors import DataError

FREE = ("as_json", "jobs", "resume", "checkpoint_every")  # what a resumed run need not repeat


@dataclass(frozen=True)
class Checkpointing:
    """Where and how often training is saved, and whether it goes on from there."""

    PANEL: ClassVar[str] = "Checkpoint"

    context: typer.Context
    checkpoint: Annotated[
        Path | None,
        options.text(
            "FOLDER",
            "Folder of checkpoints; removed when training is done.",
            default="the model's name with .checkpoint",
        ),
    ] = None
    checkpoint_every: Annotated[
        float, options.number("Time between checkpoints.", min=0, metavar="SECONDS")
    ] = 300
    resume: Annotated[
        bool,
        options.flag(
            "--resume", "Go on from the checkpoint, if there is one: same data, same options."
        ),
    ] = False

    @contextmanager
    def saving(self, output: Path, **data: Any) -> Iterator[None]:
        """Whatever is trained in the block goes on where it was, if the process dies.

        All options of the command and the ``data`` must be the same in a run that goes on.
        """
        from didyma.checkpoints import Checkpoint, checkpointing, fingerprint

        folder = self.checkpoint or output.with_name(f"{output.name}.checkpoint")
        if folder.exists() and not folder.is_dir():
            raise DataError("expected a folder for checkpoints, found a file", path=folder)
        if not folder.resolve().parent.is_dir():
            raise DataError("cannot be made, as the folder around it does not exist", path=folder)
        flags = {parameter.name: parameter.opts[0] for parameter in self.context.command.params}
        hints = self.context.command.callback.__annotations__
        identity: dict[str, Any] = {
            flags[name]: value
            for name, value in self.context.params.items()
            if not (name in FREE or value is None or _is_path(hints[name]))
        }
        identity |= {name: partial(fingerprint, value) for name, value in data.items()}
        saved = Checkpoint(folder, identity, every=self.checkpoint_every, resume=self.resume)
        if self.resume:
            state = "going on from here" if saved.exists else "no checkpoint, so from the start"
            print_message(f"{folder}: {state}")
        elif saved.exists:
            print_message(f"{folder}: a checkpoint that is not used; --resume would go on from it")
        with checkpointing(saved):
            yield
        if saved.interrupted and saved.exists:
            print_message(f"{folder}: --resume goes on from here")


def _is_path(hint: Any) -> bool:
    """Whether an option is a file, or files: a run that goes on knows them by what they hold."""
    return hint is Path or any(map(_is_path, get_args(hint)))
