"""`didyma nbest`: train, apply, evaluate and explain rerankers of n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import options
from didyma.cli.compare import Test
from didyma.cli.interruption import exit_code
from didyma.cli.output import aligned, check_output, listed, print_json, say, terminal, waiting
from didyma.errors import DataError
from didyma.report.table import decimal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from didyma.estimators.nbest import NBestReranker
    from didyma.formats.nbest import NBest
    from didyma.report.choices import Judge
    from didyma.report.table import Row

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)

DATA = "N-best lists: JSON lines, or Moses style (id ||| text ||| features ||| total)."
MODEL = "A model that didyma nbest fit has saved."
LISTS = "Lists"
FEATURES = "Features"
EVERY = {"low-rank": 1, "boosting": 100, "ridge-boosting": 100}  # rounds between lines
COUNTS = ("n", "lists")
DECODER_SCORE = "decoder_score"


class ModelName(StrEnum):
    """Which model learns."""

    low_rank = "low-rank"
    boosting = "boosting"
    ridge_boosting = "ridge-boosting"
    svm = "svm"
    perceptron = "perceptron"
    latent_perceptron = "latent-perceptron"


class LossName(StrEnum):
    """How a loss comes from a reference."""

    auto = "auto"
    hamming = "hamming"
    edit = "edit"


class FeatureSet(StrEnum):
    """Joint features."""

    auto = "auto"
    suffix = "suffix"
    n_gram = "n-gram"
    text = "text"


class View(StrEnum):
    """What the low-rank model sees of a text."""

    auto = "auto"
    suffixes = "suffixes"
    n_grams = "n-grams"
    characters = "characters"
    vectors = "vectors"


Data = Annotated[Path, typer.Argument(metavar="DATA", help=DATA)]
Train = Annotated[Path, typer.Argument(metavar="TRAIN", help=DATA)]
Inputs = Annotated[
    Path | None,
    typer.Option(
        "--inputs", metavar="FILE", rich_help_panel=LISTS, help="Inputs, a line for each list."
    ),
]
References = Annotated[
    Path | None,
    typer.Option(
        "--references",
        metavar="FILE",
        rich_help_panel=LISTS,
        help="Reference outputs, a line for each list.",
    ),
]
DevInputs = Annotated[
    Path | None,
    typer.Option("--dev-inputs", metavar="FILE", rich_help_panel=LISTS, help="Those of --dev."),
]
DevReferences = Annotated[
    Path | None,
    typer.Option("--dev-references", metavar="FILE", rich_help_panel=LISTS, help="Those of --dev."),
]
LossColumn = Annotated[
    str,
    typer.Option(
        "--loss-column",
        metavar="NAME",
        rich_help_panel=LISTS,
        help="Field or feature of a candidate that holds its loss.",
    ),
]
Loss = Annotated[
    LossName,
    typer.Option(
        "--loss",
        rich_help_panel=LISTS,
        help="How losses come from references where candidates have none: wrong tokens, or edit "
        "distance over the longer length. auto counts wrong tokens if all lengths agree.",
    ),
]
Joint = Annotated[
    FeatureSet,
    typer.Option(
        "--features",
        rich_help_panel=FEATURES,
        help="Joint features, for all models but low-rank. suffix and n-gram need candidates as "
        "long as their input.",
    ),
]
InputView = Annotated[
    View,
    typer.Option("--input-view", rich_help_panel=FEATURES, help="What low-rank sees of inputs."),
]
OutputView = Annotated[
    View,
    typer.Option("--output-view", rich_help_panel=FEATURES, help="What it sees of outputs."),
]
MinCount = Annotated[
    int,
    typer.Option(
        "--min-count", min=1, rich_help_panel=FEATURES, help="How often a feature must occur."
    ),
]
Significance = Annotated[Test, typer.Option("--test", help="Two-tailed paired test.")]
Dev = Annotated[
    Path | None,
    typer.Option("--dev", metavar="FILE", help="Other lists, to choose weight and parameters by."),
]


@app.callback()
def _nbest() -> None:
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


@app.command()
def fit(
    train: Train,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("nbest.didyma.safetensors"),
    dev: Dev = None,
    model: Annotated[
        ModelName, typer.Option("--model-type", help="What learns.")
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
            help="Of the model against the decoder's score, in per cent.",
            show_default="the best on --dev",
        ),
    ] = None,
    features: Joint = FeatureSet.auto,
    input_view: InputView = View.auto,
    output_view: OutputView = View.auto,
    min_count: MinCount = 1,
    loss: Loss = LossName.auto,
    loss_column: LossColumn = "loss",
    inputs: Inputs = None,
    references: References = None,
    dev_inputs: DevInputs = None,
    dev_references: DevReferences = None,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Train a reranker on lists with references or losses, and save it.

    A decoder must not have been trained on the sentences of TRAIN, or their
    lists look better than those to come: didyma tag nbest --jackknife.

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
    lists = _read(train, inputs, references, loss_column)
    held_out = None if dev is None else _read(dev, dev_inputs, dev_references, loss_column)

    from didyma import model as model_file
    from didyma.estimators.nbest import NBestReranker

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
        "train": {"path": str(train), "lists": len(lists)},
        "dev": None if dev is None else {"path": str(dev), "loss": best["loss"]},
        "weight": reranker.weight_,
        "tuning": reranker.tuning_,
    }
    model_file.save(reranker, output, summary=summary)
    if as_json:
        print_json({"model": str(output), "kind": model.value, **summary})
    else:
        _print_choice(reranker, best, held_out, output)
    if reranker.interrupted_:
        say("interrupted: the best model so far was kept")
        raise typer.Exit(exit_code())


@app.command()
def rerank(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL)],
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")],
    best: Annotated[
        bool, typer.Option("--best", help="Write only the text of the best candidate, a line each.")
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
    lists = _read(data, inputs, None, "loss")

    from didyma.estimators.nbest import NBestReranker
    from didyma.files import replace_when_done
    from didyma.formats import nbest as format

    reranker = NBestReranker.load(model)
    with waiting("reranking"):
        found = reranker.score_candidates(lists)
    if best:
        with replace_when_done(output) as file:
            for nbest, values in zip(lists, found):
                text = nbest.candidates[int(values.argmax())].text if len(nbest) else ""
                file.write(f"{text}\n")
    else:
        kind = "jsonl" if format.is_jsonl(data) else "moses"
        format.write(output, map(_reordered, lists, found), format=kind)
    say(f"{len(lists)} lists written to {output}")


@app.command("eval")
def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL)],
    data: Data,
    test: Significance = Test.wilcoxon,
    loss: Loss = LossName.auto,
    loss_column: LossColumn = "loss",
    inputs: Inputs = None,
    references: References = None,
    as_json: options.Json = False,
) -> None:
    """Evaluate a model next to the decoder's first choice and the oracle.

    The loss is the mean over the lists that have candidates, exact the share of
    choices without any. The oracle takes the best candidate of each list. Where
    candidates are as long as their reference, accuracy is the share of right
    tokens. Gain and wins are against the decoder.

    [bold]Examples[/bold]

    didyma nbest eval svm.safetensors test.jsonl

    didyma nbest eval svm.safetensors test.nbest --inputs test.de --references test.en
    """
    lists = _read(data, inputs, references, loss_column)
    _print_comparison(lists, [model], test, False, loss, as_json)


@app.command()
def compare(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help="Two or more models.")],
    data: Annotated[Path, typer.Option("--data", metavar="FILE", help=DATA)],
    test: Significance = Test.wilcoxon,
    holm: Annotated[
        bool, typer.Option("--holm", help="Correct p-values for the number of models.")
    ] = False,
    loss: Loss = LossName.auto,
    loss_column: LossColumn = "loss",
    inputs: Inputs = None,
    references: References = None,
    as_json: options.Json = False,
) -> None:
    """Compare models with the decoder's first choice, the oracle and each other.

    Each model is heard of when it is done; what columns mean, eval --help says.

    [bold]Examples[/bold]

    didyma nbest compare svm.safetensors low-rank.safetensors --data test.jsonl

    didyma nbest compare *.safetensors --data test.jsonl --holm
    """
    if len(models) < 2:
        raise typer.BadParameter("give two or more to compare", param_hint="MODEL")
    lists = _read(data, inputs, references, loss_column)
    _print_comparison(lists, models, test, holm, loss, as_json)


@app.command()
def oracle(
    data: Data,
    loss: Loss = LossName.auto,
    loss_column: LossColumn = "loss",
    references: References = None,
    as_json: options.Json = False,
) -> None:
    """Show the loss of the best choice among the first n candidates.

    At n = 1 this is the decoder's own choice; the last line bounds what any
    reranker can do with these lists.

    [bold]Examples[/bold]

    didyma nbest oracle test.jsonl

    didyma nbest oracle test.nbest --references test.en --loss edit --json
    """
    lists = _read(data, None, references, loss_column)

    from didyma.report.choices import Judge

    rows = list(Judge(lists, loss.value).oracles())
    if as_json:
        print_json({"n_lists": len(lists), "oracle": rows})
        return
    names = list(rows[0])
    table = [[str(row[k]) if k in COUNTS else decimal(row[k]) for k in names] for row in rows]
    typer.echo(aligned([names, *table]))


@app.command()
def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL)],
    data: Data,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="Which list.",
            show_default="the first that is chosen from differently",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="K", help="How many features to show.")
    ] = 10,
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
    lists = _read(data, inputs, None, "loss")
    from didyma.estimators.nbest import NBestReranker

    reranker = NBestReranker.load(model)
    nbest = _find(lists, id, reranker, data)
    found = reranker.explain(nbest, top)
    chosen, first = nbest.candidates[found.chosen].text, nbest.candidates[found.first].text
    if as_json:
        record = found._asdict() | {
            "contributions": [part._asdict() for part in found.contributions],
        }
        texts = {"input": nbest.input, "chosen_text": chosen, "first_text": first}
        print_json({"id": nbest.id, **texts, **record})
        return
    texts = {"list": nbest.id, "input": nbest.input or "", "decoder": first, "chosen": chosen}
    typer.echo(listed(texts) + "\n")
    parts = [("decoder's score", found.decoder), *found.contributions, ("all others", found.rest)]
    parts.append(("sum", found.decoder + found.model))
    typer.echo(aligned([[name, decimal(value + 0.0, signed=True)] for name, value in parts]))


def _read(
    path: Path, inputs: Path | None, references: Path | None, loss_column: str
) -> list[NBest]:
    from didyma.formats import nbest

    with waiting(f"reading {path}"):
        lists = nbest.read(path, inputs=inputs, references=references, loss=loss_column)
    n_empty = sum(not len(nbest) for nbest in lists)
    empty = f", {n_empty} without any" if n_empty else ""
    say(f"{path}: {len(lists)} lists, {sum(map(len, lists))} candidates{empty}")
    return lists


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
    reranker: NBestReranker, best: dict[str, Any], held_out: list[NBest] | None, output: Path
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


def _names(models: Sequence[Path]) -> dict[Path, str]:
    """What a table calls each file: its name without extensions, or its path if that is shared."""
    short = {path: path.name.split(".")[0] for path in models}
    shared = list(short.values())
    return {
        path: name if shared.count(name) == 1 and name not in ("decoder", "oracle") else str(path)
        for path, name in short.items()
    }


def _reordered(nbest: NBest, values: NDArray[Any]) -> NBest:
    """A list sorted by new scores, which its candidates get."""
    candidates = []
    for k in (-values).argsort(kind="stable").tolist():
        candidate = nbest.candidates[k]
        former = {} if candidate.score is None else {DECODER_SCORE: candidate.score}
        features = {**(candidate.features or {}), **former}
        candidates.append(replace(candidate, score=float(values[k]), features=features or None))
    return replace(nbest, candidates=candidates)


def _print_comparison(
    lists: Sequence[NBest],
    models: Sequence[Path],
    test: Test,
    holm: bool,
    loss: LossName,
    as_json: bool,
) -> None:
    from didyma.estimators.nbest import NBestReranker
    from didyma.report.choices import Judge

    judge = Judge(lists, loss.value)
    chosen = {}
    for path, name in _names(models).items():
        with waiting(f"reranking by {name}"):
            chosen[name] = NBestReranker.load(path).rerank(judge.lists)
        if len(models) > 1:
            say(f"{name}: loss {decimal(judge.summary(chosen[name])['loss'])}")
    rows = judge.compare(chosen, test.value, correct=holm)
    if as_json:
        counts = {"n_lists": len(judge.lists), "n_empty": judge.n_empty}
        systems = {row.name: _record(row) for row in rows}
        print_json({**counts, "loss": judge.measure, "test": test.value, "systems": systems})
    else:
        typer.echo(_comparison_text(rows, judge, test, holm))


def _record(row: Row) -> dict[str, Any]:
    """A system for machines; only what was tested has more than means."""
    if row.p_value is None:
        return dict(row.means)
    counts = {"wins": row.wins, "losses": row.losses, "ties": row.ties}
    return {**row.means, "gain": row.difference, **counts, "p_value": row.p_value}


def _comparison_text(rows: Sequence[Row], judge: Judge, test: Test, holm: bool) -> str:
    table = [["system", *rows[0].means, "gain", "W/L/T", "p"], *(row.cells for row in rows)]
    tested = any(row.p_value is not None for row in rows)
    if not tested:
        table = [cells[: 1 + len(rows[0].means)] for cells in table]
    kinds = {"given": "as given", "hamming": "wrong tokens", "edit": "normalised edit distance"}
    note = f"loss: {kinds[judge.measure]}, mean over {len(judge.lists)} lists"
    if judge.n_empty:
        note += f" ({judge.n_empty} have no candidates)"
    if tested:
        corrected = ", Holm-corrected" if holm else ""
        note += f"\n* p < .05: two-tailed {test.value} against the decoder{corrected}"
    return f"{aligned(table)}\n{note}"


def _find(lists: Sequence[NBest], id: str | None, reranker: NBestReranker, path: Path) -> NBest:
    if id is not None:
        found = next((nbest for nbest in lists if nbest.id == id), None)
        if found is None:
            raise DataError(f"expected a list {id!r}, found none", path=path, field="id")
        return found

    from didyma.report.choices import first_choices

    for nbest, first, chosen in zip(lists, first_choices(lists), reranker.rerank(lists)):
        if chosen != first:
            return nbest
    raise DataError("the model and the decoder agree on all lists; choose one by --id", path=path)
