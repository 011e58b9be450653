"""`didyma nbest fit`: train a reranker and save it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import checkpointing
from didyma.cli import options as common
from didyma.cli.interruption import end_if_interrupted
from didyma.cli.nbest import options
from didyma.cli.nbest.options import FeatureSet, LossName, ModelName, View
from didyma.cli.nbest.reading import read_lists
from didyma.cli.output import check_output, listed, print_json, say, terminal
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.nbest.reranker import NBestReranker

__all__ = ["fit"]

EVERY = {"low-rank": 1, "boosting": 100, "ridge-boosting": 100}  # rounds between lines


def fit(
    context: typer.Context,
    train: options.Train,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("nbest.didyma.safetensors"),
    dev: options.Dev = None,
    model: Annotated[
        ModelName, typer.Option("--model-type", help="Model to train.")
    ] = ModelName.low_rank,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Parameter of the model, as tau=0.9; of several values, as C=1,10,100, the best "
            "on --dev is taken.",
        ),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(
            "--weight",
            min=0,
            max=100,
            help="Weight of the model against the decoder's score, in per cent.",
            show_default="the best on --dev",
        ),
    ] = None,
    features: options.Joint = FeatureSet.auto,
    input_view: options.InputView = View.auto,
    output_view: options.OutputView = View.auto,
    min_count: options.MinCount = 1,
    loss: options.Loss = LossName.auto,
    loss_column: options.LossColumn = "loss",
    inputs: options.Inputs = None,
    references: options.References = None,
    dev_inputs: options.DevInputs = None,
    dev_references: options.DevReferences = None,
    jobs: common.Jobs = None,
    checkpoint: checkpointing.Folder = None,
    checkpoint_every: checkpointing.Every = 300,
    resume: checkpointing.Resume = False,
    as_json: common.Json = False,
) -> None:
    """Train a reranker on lists with references or losses, and save it.

    The decoder must not have been trained on the inputs of TRAIN: its lists of
    them would be better than those of new inputs (see didyma tag nbest
    --jackknife). If the process dies, the same command with --resume goes on
    where it was.

    [bold]Examples[/bold]

    didyma nbest fit train.jsonl --dev dev.jsonl -o low-rank.safetensors

    didyma nbest fit train.jsonl --dev dev.jsonl --set tau=0.5,0.9
    --set n_components=25,50

    didyma nbest fit train.nbest --inputs train.de --references train.en
    --model-type svm

    didyma nbest fit train.jsonl --loss-column bleu_loss --model-type boosting
    """
    parameters = _read_settings(settings or [])
    if dev is None and (dev_inputs or dev_references):
        raise typer.BadParameter("given without --dev", param_hint="--dev-inputs")
    check_output(output, train, dev)
    lists = read_lists(train, inputs, references, loss_column)
    held_out = None
    if dev is not None:
        held_out = read_lists(dev, dev_inputs, dev_references, loss_column)

    from didyma import model as model_file
    from didyma.nbest.reranker import NBestReranker

    with checkpointing.surviving(context, output, TRAIN=lists, dev=held_out):
        with _reporting(model) as callback:
            reranker = NBestReranker(
                model.value,
                parameters,
                features=features.value,
                input_view=input_view.value,
                output_view=output_view.value,
                min_count=min_count,
                loss=loss.value,
                weight=weight,
                callback=callback,
            ).fit(lists, held_out)
        best = min(reranker.tuning_, key=lambda record: record["loss"] or 0.0)
        summary = {
            "train": {"path": str(train), "lists": len(lists.groups)},
            "dev": None if dev is None else {"path": str(dev), "loss": best["loss"]},
            "weight": reranker.weight_,
            "tuning": reranker.tuning_,
        }
        model_file.save(reranker, output, summary=summary)
    if as_json:
        print_json({"model": str(output), "kind": model.value, **summary})
    else:
        _print_choice(reranker, best, held_out, output)
    end_if_interrupted(reranker.interrupted_, "model")


def _read_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Parameters by name; several values make a list."""
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        values = [_value(part.strip()) for part in text.split(",")]
        if not (name and equals) or "" in values:
            raise typer.BadParameter(f"expected NAME=VALUE, found {setting!r}", param_hint="--set")
        parameters[name.strip()] = values if len(values) > 1 else values[0]
    return parameters


def _value(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return {"none": None, "true": True, "false": False}.get(text.lower(), text)


def _print_choice(
    reranker: NBestReranker, best: dict[str, Any], held_out: Lists | None, output: Path
) -> None:
    chosen = {name: value for name, value in best.items() if name not in ("weight", "loss")}
    lines = {
        "model": " ".join([reranker.model, *(f"{name}={value}" for name, value in chosen.items())]),
        "weight": f"{reranker.weight_:g} %",
    }
    if held_out is not None:
        from didyma.report.choices import Judge

        judge = Judge(held_out, reranker.loss)
        decoder = judge.summary(judge.first)["loss"]
        lines["dev loss"] = f"{decimal(best['loss'])} (decoder {decimal(decoder)})"
    typer.echo(listed({**lines, "saved to": str(output)}))


@contextmanager
def _reporting(model: ModelName) -> Iterator[Callable[[Any], None]]:
    """A callback that shows on stderr how training goes: a status on a terminal, else lines."""
    every = EVERY.get(model.value, 10)
    if (console := terminal()) is None:
        yield lambda step: say(_step(step)) if step.n_iter and step.n_iter % every == 0 else None
        return
    with console.status("preparing (the very first run compiles)") as status:
        yield lambda step: status.update(_step(step))


def _step(step: Any) -> str:
    if hasattr(step, "slack"):
        return f"round {step.n_iter:5d}   mean slack {step.slack:.5g}"
    dev = getattr(step, "loss", None)
    held_out = "" if dev is None else f"   dev loss {decimal(dev)}"
    return f"round {step.n_iter:5d}   objective {step.value:.5g}{held_out}   {step.seconds:.1f} s"
