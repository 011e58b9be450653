"""What the commands that train networks share: options, and progress on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from didyma import cli
from didyma.cli import options
from didyma.files import format_suffix
from didyma.report import decimal, listed

if TYPE_CHECKING:
    from didyma.applications.networks.trainer import Step

EVERY = 10.0  # seconds between lines within an epoch
PAUSE = 0.2  # seconds between updates of the bar
# Of all networks.
TRAINING: dict[str | None, list[str | cli.Option]] = {
    "Training": ["epochs", "learning_rate", "batch_size", "patience", "device", "checkpoint"]
}
PICTURES = (".html", ".svg")
FIXED_VECTORS = cli.Option(
    "tune_vectors", ("--fixed-vectors",), help="Do not train --vectors further.", sets=False
)
Device = Annotated[
    Literal["auto", "cpu", "cuda", "mps"],
    typer.Option(
        help="Where to compute; auto takes a GPU if there is one.", rich_help_panel="Training"
    ),
]
Vectors = Annotated[
    Path | None,
    options.file(
        "Word vectors in the text format of word2vec or GloVe; those of other words are learned."
    ),
]


def check_files(
    parameters: Mapping[str, Any], output: Path, *inputs: Path | None, vectors: Path | None = None
) -> None:
    """Refuse, before any work is done, files that cannot be written, and missing vectors."""
    if vectors is None and not parameters.get("tune_vectors", True):
        raise typer.BadParameter("there are none without --vectors", param_hint="--fixed-vectors")
    cli.check_output(output, *inputs, vectors)
    cli.check_output(parameters["checkpoint"], *inputs, vectors, output)


def network_options(
    path: str, choices: Sequence[str | cli.Option], sizes: Sequence[str | cli.Option]
) -> cli.ParametersOf:
    """Options of an estimator with a network: choices of its own, sizes of layers, training."""
    return cli.ParametersOf(path, {None: [*choices, cli.SEED], "Network": sizes, **TRAINING})


def check_shown(
    output: Path | None, shown: Path | None, what: str, *inputs: Path, option: str
) -> str:
    """The suffix of the file that shows ``what``, drawn or as data ("" if there is none).

    Refuses, before any work is done, a call without any output and files that cannot be written.
    """
    if output is None and shown is None:
        raise typer.BadParameter("expected a file to write to", param_hint="--output")
    suffix = "" if shown is None else format_suffix(shown)
    if shown is not None and suffix not in (*PICTURES, ".jsonl"):
        raise typer.BadParameter(
            "expected a name that ends in .html, .svg or .jsonl", param_hint=option
        )
    cli.check_output(output, *inputs)
    cli.check_output(shown, *inputs, output)
    if suffix in PICTURES:
        from didyma.report.plots import require_matplotlib

        require_matplotlib(f"drawing {what}")
    return suffix


@contextmanager
def training(measure: str) -> Iterator[Callable[[Step], None]]:
    """A callback that shows how training goes: a bar on a terminal, else lines."""
    if (console := cli.terminal()) is None:
        yield _Lines(measure)
        return
    with cli.progress_bars(console) as bars:
        task = bars.add_task("epoch 1", total=1.0, state="")
        last = 0.0

        def show(step: Step) -> None:
            nonlocal last
            if step.value is not None:
                bars.console.print(_line(step, measure), highlight=False)
            elif time.monotonic() < last + PAUSE:
                return
            last = time.monotonic()
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
            cli.print_message(_line(step, self.measure))
        elif time.monotonic() < self.said + EVERY or step.step == step.n_steps:
            return
        else:
            place = f"step {step.step} of {step.n_steps}"
            cli.print_message(
                f"epoch {step.epoch:<4}{place}   loss {step.loss:.4g}   {step.seconds:.1f} s"
            )
        self.said = time.monotonic()


def save_trained(
    model: Any,
    output: Path,
    train: Mapping[str, Any],
    dev: Path | None,
    measure: str,
    choice: str,
    *,
    as_json: bool,
) -> None:
    """Save a trained model and print how training went; exit code 130 or 143 if it was interrupted.

    ``train`` describes the data; ``choice`` is the parameter that says what kind of model it is.
    """
    from didyma import model as model_file

    history = model.history_
    n_epochs = len(history.records)
    on_dev = None if dev is None else history.best_value
    summary = {
        "train": train,
        "dev": None if dev is None else {"path": str(dev), measure: on_dev},
        choice: getattr(model, choice),
        "epochs": n_epochs,
        "best_epoch": history.best_epoch,
        "status": history.status,
    }
    model_file.save(model, output, summary=summary)
    if as_json:
        seconds = sum(record["seconds"] for record in history.records)
        cli.print_json({"model": str(output), **summary, "seconds": seconds})
    else:
        lines = {choice: f"{summary[choice]}, epoch {history.best_epoch} of {n_epochs}"}
        if on_dev is not None:
            lines[f"dev {measure}"] = decimal(on_dev)
        typer.echo(listed({**lines, "saved to": str(output)}))
    cli.end_if_interrupted(history.status == "interrupted", "epoch")


def _line(step: Step, measure: str) -> str:
    text = f"epoch {step.epoch:<4}loss {step.loss:.4g}"
    if step.value == step.value:  # not NaN: there is held-out data
        mark = " *" if step.improved else ""
        text += f"   dev {measure} {step.value:.4f}{mark}"
    return f"{text}   {step.seconds:.1f} s"
