"""`didyma nbest fit`: train a reranker and save it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options
from didyma.cli.checkpointing import Checkpointing
from didyma.cli.groups import Option, ParametersOf, command
from didyma.cli.interruption import end_if_interrupted
from didyma.cli.nbest.options import DATA, LOSS, PANEL, RERANKER, ListFiles
from didyma.cli.output import check_output, print_json, print_message, terminal
from didyma.report.table import listed
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.nbest.reranker import NBestReranker

EVERY = {"low-rank": 1, "boosting": 100, "ridge-boosting": 100}  # rounds between lines


PARAMETERS = ParametersOf(
    RERANKER,
    {
        None: [
            Option("model", ("--model-type",), help="Model to train."),
            Option("weight", default="the best on --dev"),
        ],
        "Features": [Option("features", sentences=2), "input_view", "output_view", "min_count"],
        PANEL: [LOSS],
    },
)


@command
def fit(
    *,
    train: Annotated[Path, options.argument("TRAIN", DATA)],
    output: options.Output = Path("nbest.didyma.safetensors"),
    dev: Annotated[
        Path | None, options.file("Other lists, to choose weight and parameters by.")
    ] = None,
    parameters: Annotated[dict[str, Any], PARAMETERS],
    settings: Annotated[
        list[str] | None,
        options.text(
            "NAME=VALUE",
            "Parameter of the model, as tau=0.9; of several values, as C=1,10,100, the best on "
            "--dev is taken.",
            "--set",
        ),
    ] = None,
    files: ListFiles,
    dev_inputs: Annotated[Path | None, options.file("Those of --dev.", panel=PANEL)] = None,
    dev_references: Annotated[Path | None, options.file("Those of --dev.", panel=PANEL)] = None,
    jobs: options.Jobs = None,
    checkpointing: Checkpointing,
    as_json: options.Json = False,
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
    kind, choices = parameters["model"], _read_settings(settings or [])
    if dev is None and (dev_inputs or dev_references):
        raise typer.BadParameter("given without --dev", param_hint="--dev-inputs")
    check_output(output, train, dev)
    lists = files.read(train)
    held_out = None
    if dev is not None:
        held_out = replace(files, inputs=dev_inputs, references=dev_references).read(dev)

    from didyma import model as model_file
    from didyma.nbest.reranker import NBestReranker

    with checkpointing.saving(output, TRAIN=lists, dev=held_out):
        with _reporting(kind) as callback:
            reranker = NBestReranker(**parameters, parameters=choices, callback=callback)
            reranker.fit(lists, held_out)
        best = min(reranker.tuning_, key=lambda record: record["loss"] or 0.0)
        summary = {
            "train": {"path": str(train), "lists": len(lists.groups)},
            "dev": None if dev is None else {"path": str(dev), "loss": best["loss"]},
            "weight": reranker.weight_,
            "tuning": reranker.tuning_,
        }
        model_file.save(reranker, output, summary=summary)
    if as_json:
        print_json({"model": str(output), "kind": kind, **summary})
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
def _reporting(kind: str) -> Iterator[Callable[[Any], None]]:
    """A callback that shows on stderr how training goes: a status on a terminal, else lines."""
    every = EVERY.get(kind, 10)
    if (console := terminal()) is None:
        yield (
            lambda step: (
                print_message(_step(step)) if step.n_iter and step.n_iter % every == 0 else None
            )
        )
        return
    with console.status("preparing") as status:
        yield lambda step: status.update(_step(step))


def _step(step: Any) -> str:
    if hasattr(step, "slack"):
        return f"round {step.n_iter:5d}   mean slack {step.slack:.5g}"
    dev = getattr(step, "loss", None)
    held_out = "" if dev is None else f"   dev loss {decimal(dev)}"
    return f"round {step.n_iter:5d}   objective {step.value:.5g}{held_out}   {step.seconds:.1f} s"
