"""What the commands that train networks share: options, and progress on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli.interruption import end_if_interrupted
from didyma.cli.output import listed, print_json, say, terminal
from didyma.cli.progress import PAUSE, progress_bars
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.applications.networks.trainer import Step

__all__ = [
    "NETWORK",
    "BatchSize",
    "Checkpoint",
    "Device",
    "DeviceName",
    "Dimension",
    "Dropout",
    "Epochs",
    "FixedVectors",
    "LearningRate",
    "Patience",
    "Vectors",
    "conclude",
    "training",
]

TRAINING = "Training"
EVERY = 10.0  # seconds between lines within an epoch
NETWORK = "Network"


class DeviceName(StrEnum):
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


Epochs = Annotated[
    int,
    typer.Option("--epochs", min=1, rich_help_panel=TRAINING, help="Most passes over the data."),
]
LearningRate = Annotated[
    float,
    typer.Option(
        "--learning-rate",
        rich_help_panel=TRAINING,
        help="That of the first epoch; it decays after each epoch that is not the best on --dev.",
    ),
]
BatchSize = Annotated[
    int,
    typer.Option("--batch-size", min=1, rich_help_panel=TRAINING, help="Examples in each step."),
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience",
        min=1,
        rich_help_panel=TRAINING,
        help="Epochs without a better value on --dev after which training stops.",
    ),
]
Device = Annotated[
    DeviceName,
    typer.Option(
        "--device",
        rich_help_panel=TRAINING,
        help="Where to compute; auto takes a GPU if there is one.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        rich_help_panel=TRAINING,
        help="Saved after each epoch; if the file exists, training goes on from it.",
    ),
]


Dimension = Annotated[
    int,
    typer.Option(
        "--dimension", min=1, rich_help_panel=NETWORK, help="Size of word vectors, if learned."
    ),
]
Dropout = Annotated[
    float,
    typer.Option(
        "--dropout",
        min=0,
        max=0.99,
        rich_help_panel=NETWORK,
        help="Share of the units that a step of training leaves out.",
    ),
]
Vectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        metavar="FILE",
        help="Word vectors in the text format of word2vec or GloVe; those of other words are "
        "learned.",
    ),
]
FixedVectors = Annotated[
    bool, typer.Option("--fixed-vectors", help="Do not train --vectors further.")
]


@contextmanager
def training(measure: str) -> Iterator[Callable[[Step], None]]:
    """A callback that shows how training goes: a bar on a terminal, else lines."""
    if (console := terminal()) is None:
        yield _Lines(measure)
        return
    with progress_bars(console) as bars:
        task = bars.add_task("epoch 1", total=1.0, state="")
        shown = 0.0

        def show(step: Step) -> None:
            nonlocal shown
            if step.value is not None:
                bars.console.print(_line(step, measure), highlight=False)
            elif time.monotonic() < shown + PAUSE:
                return
            shown = time.monotonic()
            done = (step.epoch - 1 + step.step / step.n_steps) / step.n_epochs
            name = f"epoch {step.epoch} of {step.n_epochs}"
            bars.update(task, completed=done, description=name, state=f"loss {step.loss:.4g}")

        yield show


class _Lines:
    """Says how each epoch ended, and within a long one, from time to time, how far it is."""

    def __init__(self, measure: str) -> None:
        self.measure, self.said = measure, time.monotonic()

    def __call__(self, step: Step) -> None:
        if step.value is not None:
            say(_line(step, self.measure))
        elif time.monotonic() < self.said + EVERY or step.step == step.n_steps:
            return
        else:
            place = f"step {step.step} of {step.n_steps}"
            say(f"epoch {step.epoch:<4}{place}   loss {step.loss:.4g}   {step.seconds:.1f} s")
        self.said = time.monotonic()


def conclude(
    model: Any,
    output: Path,
    train: Mapping[str, Any],
    dev: Path | None,
    measure: str,
    choice: Mapping[str, str],
    *,
    as_json: bool,
) -> None:
    """Save a trained model and say how training went; exit code 130 or 143 if it was interrupted.

    ``train`` describes the data, ``choice`` what kind of model it is.
    """
    from didyma import model as model_file

    history = model.history_
    n_epochs = len(history.records)
    on_dev = None if dev is None else history.best_value
    kept = {
        "train": train,
        "dev": None if dev is None else {"path": str(dev), measure: on_dev},
        **choice,
        "epochs": n_epochs,
        "best_epoch": history.best_epoch,
        "status": history.status,
    }
    model_file.save(model, output, summary=kept)
    if as_json:
        seconds = sum(record["seconds"] for record in history.records)
        print_json({"model": str(output), **kept, "seconds": seconds})
    else:
        lines = {
            **{
                name: f"{kind}, epoch {history.best_epoch} of {n_epochs}"
                for name, kind in choice.items()
            },
            **({} if on_dev is None else {f"dev {measure}": decimal(on_dev)}),
            "saved to": str(output),
        }
        typer.echo(listed(lines))
    end_if_interrupted(history.status == "interrupted", "epoch")


def _line(step: Step, measure: str) -> str:
    text = f"epoch {step.epoch:<4}loss {step.loss:.4g}"
    if step.value == step.value:  # not NaN: there is held-out data
        mark = " *" if step.improved else ""
        text += f"   dev {measure} {step.value:.4f}{mark}"
    return f"{text}   {step.seconds:.1f} s"
