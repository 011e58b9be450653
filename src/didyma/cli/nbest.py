"""`didyma nbest`, all commands: train, apply, evaluate and explain rerankers of n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from didyma.cli import options
from didyma.cli.checkpointing import Checkpointing
from didyma.cli.evaluate import names_of
from didyma.cli.groups import Option, ParametersOf, command, flag_of, group
from didyma.cli.output import (
    check_output,
    end_if_interrupted,
    log_as_lines,
    print_json,
    print_message,
    terminal,
    waiting,
)
from didyma.errors import DataError
from didyma.report.table import aligned, footnote, listed
from didyma.values import decimal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.data.lists import Lists
    from didyma.nbest.reranker import NBestReranker
    from didyma.report.choices import Judge
    from didyma.report.table import Row

app = group(
    """Choose better among the candidates that a decoder proposes.

    Data are n-best lists with references, or with losses under any name: JSON
    lines ({"id", "input", "reference", "candidates": [{"text", "score", "loss",
    "features", "vector"}]}) or Moses style with --inputs and --references, plain
    or compressed (.gz).

    [bold]Train, compare, apply:[/bold]

    didyma nbest fit train.jsonl --dev dev.jsonl --model-type svm -o svm.safetensors

    didyma nbest eval svm.safetensors test.jsonl

    didyma nbest compare svm.safetensors low-rank.safetensors --data test.jsonl

    didyma nbest rerank svm.safetensors test.jsonl -o reranked.jsonl
    """
)

EVERY = {"low-rank": 1, "boosting": 100, "ridge-boosting": 100}  # rounds between lines
DECODER_SCORE = "decoder_score"
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

    PANEL: ClassVar[str] = PANEL

    loss_column: Annotated[
        str,
        options.text("NAME", "Field or feature of a candidate that holds its loss."),
    ] = "loss"
    inputs: Inputs = None
    references: Annotated[Path | None, options.file("Reference outputs, a line for each list.")] = (
        None
    )

    def read(self, path: Path, *, held_out: bool = False) -> Lists:
        """The lists of a file, and a line on what it holds.

        A --loss-column that is named must be there; held-out lists may have references instead.
        """
        from didyma.nbest import formats
        from didyma.nbest.formats.collector import LOSS as USUAL

        files = {"inputs": self.inputs, "references": self.references}
        with waiting(f"reading {path}"):
            lists = formats.read(path, **files, loss=self.loss_column)
        if self.loss_column != USUAL and lists.losses is None and not held_out:
            problem = "expected the loss of each candidate, found none"
            raise DataError(problem, path=path, field=f"candidates.{self.loss_column}")
        n_empty = int((lists.groups.sizes == 0).sum())
        empty = f", {n_empty} without any" if n_empty else ""
        print_message(f"{path}: {len(lists.groups)} lists, {len(lists)} candidates{empty}")
        return lists


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


@app.command()
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

    didyma nbest fit train.jsonl --dev dev.jsonl --set tau=0.01,0.1
    --set n_components=25,50

    didyma nbest fit train.nbest --inputs train.de --references train.en
    --model-type svm

    didyma nbest fit train.jsonl --loss-column bleu_loss --model-type boosting
    """
    kind, choices = parameters["model"], _read_settings(settings or [])
    if dev is None and (dev_inputs or dev_references):
        raise typer.BadParameter("given without --dev", param_hint="--dev-inputs")
    check_output(output, train, dev)

    from didyma import model as model_file
    from didyma.nbest.reranker import NBestReranker

    reranker = NBestReranker(**parameters, parameters=choices)
    try:
        reranker.grid(dev is not None)
    except DataError as error:  # before the files are read
        if error.field in parameters and error.field not in choices:
            raise typer.BadParameter(error.problem, param_hint=flag_of(error.field)) from None
        raise typer.BadParameter(str(error), param_hint="--set") from None
    lists = files.read(train)
    held_out = None
    if dev is not None:
        dev_files = replace(files, inputs=dev_inputs, references=dev_references)
        held_out = dev_files.read(dev, held_out=True)

    with checkpointing.saving(output, TRAIN=lists, dev=held_out):
        with _reporting(kind) as reranker.callback, log_as_lines("didyma.nbest"):
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

    def line(step: Any) -> None:
        if step.n_iter and step.n_iter % every == 0:
            print_message(_step(step))

    if (console := terminal()) is None:
        yield line
        return
    with console.status("preparing") as status:
        yield lambda step: status.update(_step(step))


def _step(step: Any) -> str:
    if hasattr(step, "slack"):
        return f"round {step.n_iter:5d}   mean slack {step.slack:.5g}"
    dev = getattr(step, "loss", None)
    held_out = "" if dev is None else f"   dev loss {decimal(dev)}"
    return f"round {step.n_iter:5d}   objective {step.value:.5g}{held_out}   {step.seconds:.1f} s"


@app.command()
def rerank(
    model: Model,
    data: Data,
    output: Annotated[Path, options.file("File to write.", "--output", "-o")],
    best: Annotated[
        bool, options.flag("--best", "Write only the text of the best candidate, a line each.")
    ] = False,
    inputs: Inputs = None,
) -> None:
    """Sort the candidates of each list by a model's scores, and write them.

    The format is that of DATA, and nothing is lost: what was the score becomes
    the feature decoder_score. References and losses are not looked at. The best
    of an empty list is an empty line.

    [bold]Examples[/bold]

    didyma nbest rerank svm.safetensors test.jsonl -o reranked.jsonl

    didyma nbest rerank svm.safetensors test.nbest --inputs test.de --best
    -o test.en
    """
    check_output(output, model, data, inputs)
    lists = ListFiles(inputs=inputs).read(data)

    from didyma.files import replace_when_done
    from didyma.nbest import formats as nbest
    from didyma.nbest.reranker import NBestReranker

    reranker = NBestReranker.load(model)
    with waiting("reranking"):
        scores = reranker.predict(lists)
    if best:
        places = lists.groups.choose(scores)
        with replace_when_done(output) as file:
            for first, place in zip(lists.groups.starts, places):
                file.write(f"{lists.items[first + place].text if place >= 0 else ''}\n")
    else:
        kind = "jsonl" if nbest.is_jsonl(data) else "moses"
        nbest.write(_reordered(lists, scores), output, format=kind)
    print_message(f"{len(lists.groups)} lists written to {output}")


def _reordered(lists: Lists, scores: NDArray[np.float64]) -> Lists:
    """Each list sorted by new scores; the old ones become features."""
    import numpy as np

    from didyma.nbest.formats import outputs_of

    outputs = list(outputs_of(lists))
    if lists.scores is not None:
        outputs = [
            replace(output, features={**(output.features or {}), DECODER_SCORE: former})
            for output, former in zip(outputs, lists.scores.tolist())
        ]
    order = np.lexsort((-scores, lists.groups.codes))
    return replace(
        lists,
        items=[outputs[row] for row in order.tolist()],
        scores=scores[order],
        losses=None if lists.losses is None else lists.losses[order],
    )


@app.command("eval")
@command
def evaluate(
    *,
    model: Model,
    data: Data,
    test: options.Test = "wilcoxon",
    judging: Loss,
    files: ListFiles,
    as_json: options.Json = False,
) -> None:
    """Evaluate a model next to the decoder's first choice and the oracle.

    The loss is the mean over the lists that have candidates; exact is the share
    of choices with a loss of 0. The oracle takes the best candidate of each list.
    If candidates are as long as their reference, accuracy is the share of right
    tokens. Gain and wins are against the decoder.

    [bold]Examples[/bold]

    didyma nbest eval svm.safetensors test.jsonl

    didyma nbest eval svm.safetensors test.nbest --inputs test.de --references test.en
    """
    _compare([model], data, files, test, False, judging["loss"], as_json)


@app.command()
@command
def compare(
    *,
    models: Annotated[list[Path], options.argument("MODEL", "One model or more.")],
    data: Annotated[Path, options.file(DATA)],
    test: options.Test = "wilcoxon",
    holm: Annotated[
        bool, options.flag("--holm", "Correct p-values for the number of models.")
    ] = False,
    judging: Loss,
    files: ListFiles,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Compare models with the decoder's first choice, the oracle and each other.

    The columns are explained by eval --help. All files are looked at before any
    list is scored: one that holds another kind of model is named.

    [bold]Examples[/bold]

    didyma nbest compare svm.safetensors low-rank.safetensors --data test.jsonl

    didyma nbest compare *.safetensors --data test.jsonl --holm
    """
    _compare(models, data, files, test, holm, judging["loss"], as_json)


@app.command()
@command
def oracle(*, data: Data, judging: Loss, files: ListFiles, as_json: options.Json = False) -> None:
    """Show the loss of the best choice among the first n candidates.

    At n = 1 this is the decoder's own choice; the last line bounds what any
    reranker can do with these lists.

    [bold]Examples[/bold]

    didyma nbest oracle test.jsonl

    didyma nbest oracle test.nbest --references test.en --loss edit --json
    """
    lists = files.read(data)

    from didyma.report.choices import Judge

    rows = list(Judge(lists, judging["loss"]).oracles())
    if as_json:
        print_json({"n_lists": len(lists.groups), "oracle": rows})
        return
    table = [
        [str(value) if isinstance(value, int) else decimal(value) for value in row.values()]
        for row in rows
    ]
    typer.echo(aligned([list(rows[0]), *table]))


def _compare(
    models: list[Path],
    data: Path,
    files: ListFiles,
    test: str,
    holm: bool,
    loss: str,
    as_json: bool,
) -> None:
    """Print models beside decoder and oracle; all are loaded before any list is scored."""
    from didyma.nbest.reranker import NBestReranker
    from didyma.report.choices import Judge

    names = names_of(models, ("decoder", "oracle"))
    rerankers = {name: NBestReranker.load(path) for path, name in names.items()}
    judge = Judge(files.read(data), loss)
    chosen = {}
    for name, reranker in rerankers.items():
        with waiting(f"reranking by {name}"):
            chosen[name] = reranker.rerank(judge.lists)
        if len(rerankers) > 1:
            print_message(f"{name}: loss {decimal(judge.summary(chosen[name])['loss'])}")
    rows = judge.compare(chosen, test, correct=holm)
    if as_json:
        counts = {"n_lists": len(judge.lists.groups), "n_empty": judge.n_empty}
        systems = {row.name: _record(row) for row in rows}
        print_json({**counts, "loss": judge.measure, "test": test, "systems": systems})
    else:
        typer.echo(_comparison_text(rows, judge, test, holm))


def _record(row: Row) -> dict[str, Any]:
    """A system for machines; only what was tested has more than means."""
    if row.p_value is None:
        return dict(row.means)
    counts = {"wins": row.wins, "losses": row.losses, "ties": row.ties}
    return {**row.means, "gain": row.difference, **counts, "p_value": row.p_value}


def _comparison_text(rows: Sequence[Row], judge: Judge, test: str, holm: bool) -> str:
    table = [["system", *rows[0].means, "gain", "W/L/T", "p"], *(row.cells for row in rows)]
    tested = footnote(rows, test.removesuffix("-test"), "against the decoder", holm)
    if not tested:
        table = [cells[: 1 + len(rows[0].means)] for cells in table]
    kinds = {"given": "as given", "hamming": "wrong tokens", "edit": "normalised edit distance"}
    note = f"loss: {kinds[judge.measure]}, mean over {len(judge.lists.groups)} lists"
    if judge.n_empty:
        note += f" ({judge.n_empty} have no candidates)"
    return "\n".join(filter(None, [aligned(table), note, tested]))


@app.command()
def explain(
    model: Model,
    data: Data,
    id: Annotated[
        str | None,
        options.text(
            "ID",
            "Which list.",
            default="the first for which model and decoder choose differently",
        ),
    ] = None,
    top: Annotated[int, options.number("How many features to show.", min=1, metavar="K")] = 10,
    inputs: Inputs = None,
    as_json: options.Json = False,
) -> None:
    """Show which features made a model choose otherwise than the decoder.

    Positive numbers speak for the choice of the model, negative ones for that
    of the decoder, all in the unit of scores. Of the low-rank model they are
    pairs of a feature of the input and one of the output.

    [bold]Example[/bold]

    didyma nbest explain svm.safetensors test.jsonl --id 7
    """
    lists = ListFiles(inputs=inputs).read(data)

    from didyma.nbest.formats import inputs_of, outputs_of
    from didyma.nbest.reranker import DECODERS_OWN, NBestReranker
    from didyma.report.choices import first_choices

    reranker = NBestReranker.load(model)
    number = _find(lists, id, reranker, data)
    single = lists.select_lists([number])
    name, input = str(lists.groups.names[number]), inputs_of(single)[0]
    if not len(single):
        raise DataError("expected candidates, found none", path=data, field=f"list {name!r}")
    scores = single.scores if reranker.uses_scores else None
    reasons = reranker.explain(input, outputs_of(single), scores)
    chosen = int(single.groups.choose([reason.raw for reason in reasons])[0])
    first = int(first_choices(single)[0])
    why = reasons[chosen].above(reasons[first])
    amounts = {part.name: part.amount for part in why.differences if part.amount}
    decoder, total = amounts.pop(DECODERS_OWN, 0.0), sum(amounts.values())
    shown, rest = list(amounts.items())[:top], sum(list(amounts.values())[top:])
    better, worse = reasons[chosen].text, reasons[first].text
    if as_json:
        texts = {"input": input.text, "chosen_text": better, "first_text": worse}
        places = {"chosen": chosen, "first": first, "decoder": decoder, "model": total}
        listing = [{"name": part, "value": amount} for part, amount in shown]
        print_json({"id": name, **texts, **places, "contributions": listing, "rest": rest})
        return
    texts = {"list": name, "input": input.text, "decoder": worse, "chosen": better}
    typer.echo(listed({key: text or "" for key, text in texts.items()}) + "\n")
    parts = [(DECODERS_OWN, decoder), *shown, ("all others", rest), ("sum", decoder + total)]
    typer.echo(aligned([[part, decimal(value + 0.0, signed=True)] for part, value in parts]))


def _find(lists: Lists, id: str | None, reranker: NBestReranker, path: Path) -> int:
    """The number of the list that is asked for."""
    if id is not None:
        names = lists.groups.names.tolist()
        if id not in names:
            raise DataError(f"expected a list {id!r}, found none", path=path, field="id")
        return int(names.index(id))

    from didyma.report.choices import first_choices

    differing = reranker.rerank(lists) != first_choices(lists)
    if not differing.any():
        raise DataError(
            "the model and the decoder agree on all lists; choose one by --id", path=path
        )
    return int(differing.argmax())
