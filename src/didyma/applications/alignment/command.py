"""`didyma nli fit/predict/eval`: train an entailment classifier, apply it, judge it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.applications.networks import options as neural
from didyma.cli import options
from didyma.cli.output import aligned, check_output, listed, print_json, say, waiting
from didyma.errors import DataError
from didyma.files import format_suffix, replace_when_done
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.applications.alignment.esim import Alignment, EntailmentClassifier
    from didyma.applications.alignment.reader import Pair

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="""Tell whether a premise entails a hypothesis, contradicts it, or neither.

    [bold]Train, apply, evaluate:[/bold]

    didyma nli fit train.jsonl --dev dev.jsonl -o nli.didyma.safetensors

    didyma nli predict nli.didyma.safetensors test.jsonl --alignments test.html

    didyma nli eval nli.didyma.safetensors test.jsonl

    Data are JSONL as SNLI and MultiNLI have it, or SICK with or without its
    header, plain or .gz.""",
)

DATA = "Pairs of sentences: JSONL, or SICK."
PICTURES = (".html", ".svg")


class Aligner(StrEnum):
    """How the words of two sentences are aligned."""

    softmax = "softmax"
    sequential = "sequential"
    matching = "matching"


Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that didyma nli fit has saved.")
]


@app.command()
def fit(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Pairs with labels.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("nli.didyma.safetensors"),
    dev: Annotated[
        Path | None,
        typer.Option("--dev", metavar="FILE", help="Held-out pairs, to choose the epoch by."),
    ] = None,
    alignment: Annotated[
        Aligner,
        typer.Option(
            "--alignment", help="Each word for itself, two chains, or one matching of the words."
        ),
    ] = Aligner.matching,
    vectors: neural.Vectors = None,
    fixed: neural.FixedVectors = False,
    keep_case: Annotated[
        bool, typer.Option("--keep-case", help="Tell capitals from small letters.")
    ] = False,
    dimension: neural.Dimension = 100,
    hidden: Annotated[
        int,
        typer.Option(
            "--hidden", min=1, rich_help_panel=neural.NETWORK, help="Units of each layer."
        ),
    ] = 100,
    dropout: neural.Dropout = 0.3,
    epochs: neural.Epochs = 20,
    learning_rate: neural.LearningRate = 1e-3,
    batch_size: neural.BatchSize = 32,
    patience: neural.Patience = 5,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    device: neural.Device = neural.DeviceName.auto,
    checkpoint: neural.Checkpoint = None,
    as_json: options.Json = False,
) -> None:
    """Train on pairs with labels and save the classifier.

    Pairs without a label, or with "-" because annotators disagreed, are skipped.
    Ctrl-C ends training early and keeps the best epoch so far (exit code 130).

    [bold]Examples[/bold]

    didyma nli fit train.jsonl --dev dev.jsonl -o nli.didyma.safetensors

    didyma nli fit SICK_train.txt --dev SICK_trial.txt --alignment sequential

    didyma nli fit train.jsonl --dev dev.jsonl --vectors glove.txt.gz --fixed-vectors
    """
    if fixed and vectors is None:
        raise typer.BadParameter("there are none without --vectors", param_hint="--fixed-vectors")
    check_output(output, train, dev, vectors)
    check_output(checkpoint, train, dev, vectors, output)
    pairs, labels = _read_labelled(train)
    held_out = None if dev is None else _read_labelled(dev)

    from didyma.applications.alignment.esim import EntailmentClassifier

    with neural.training("accuracy") as callback:
        classifier = EntailmentClassifier(
            alignment.value,
            dimension=dimension,
            hidden=hidden,
            dropout=dropout,
            tune_vectors=not fixed,
            lowercase=not keep_case,
            batch_size=batch_size,
            epochs=epochs,
            learning_rate=learning_rate,
            patience=patience,
            random_state=seed,
            device=device.value,
            checkpoint=checkpoint,
            callback=callback,
        )
        given = None if vectors is None else _read_vectors(vectors, classifier, pairs, held_out)
        classifier.fit(pairs, labels, held_out, given)
    about = {"path": str(train), "pairs": len(pairs), "labels": classifier.classes_}
    choice = {"alignment": alignment.value}
    neural.conclude(classifier, output, about, dev, "accuracy", choice, as_json=as_json)


@app.command()
def predict(
    model: Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help=DATA)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Predictions, as JSONL."),
    ] = None,
    alignments: Annotated[
        Path | None,
        typer.Option(
            "--alignments",
            metavar="FILE",
            help="How words are aligned: drawn (.html, .svg) or as data (.jsonl).",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option("--most", min=1, help="Pairs to draw, the first of DATA.")
    ] = 20,
    device: neural.Device = neural.DeviceName.auto,
    jobs: options.Jobs = None,
) -> None:
    """Label the pairs of DATA.

    Each line of the output has the pair, a "prediction" and "probabilities" by
    label. Labels that DATA may have are not looked at.

    --alignments shows the weight of each pair of words and, for sequential and
    matching models, the few structures that were selected and how probable each
    is.

    [bold]Examples[/bold]

    didyma nli predict nli.didyma.safetensors test.jsonl -o predictions.jsonl

    didyma nli predict nli.didyma.safetensors test.jsonl --alignments test.html
    """
    if output is None and alignments is None:
        raise typer.BadParameter("expected a file to write to", param_hint="--output")
    kind = "" if alignments is None else format_suffix(alignments)
    if alignments is not None and kind not in (*PICTURES, ".jsonl"):
        raise typer.BadParameter(
            "expected a name that ends in .html, .svg or .jsonl", param_hint="--alignments"
        )
    check_output(output, model, data)
    check_output(alignments, model, data, output)
    if kind in PICTURES:
        from didyma.report.plots import require_matplotlib

        require_matplotlib("drawing alignments")
    pairs = _read(data)
    classifier = _load(model, device)

    from didyma.applications.alignment import reader as nli

    with waiting("reading"):
        probabilities = classifier.predict_proba(pairs)
    labels = [classifier.classes_[k] for k in probabilities.argmax(axis=1)]
    if output is not None:
        shares = [dict(zip(classifier.classes_, row)) for row in probabilities.tolist()]
        nli.write_predictions(pairs, labels, shares, output)
        say(f"{len(pairs)} predictions written to {output}")
    if alignments is None:
        return
    shown = len(pairs) if kind == ".jsonl" else most
    with waiting("aligning"):
        found = classifier.alignments(pairs[:shown])
    if kind == ".jsonl":
        _write_lines(pairs, found, alignments)
    else:
        best = probabilities.max(axis=1)
        _draw([f"{label} {p:.0%}" for label, p in zip(labels, best)], found, alignments)
    say(f"alignments of {len(found)} pairs written to {alignments}")


@app.command("eval")
def evaluate(
    model: Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Pairs with labels.")],
    device: neural.Device = neural.DeviceName.auto,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Compare predicted labels with those of DATA.

    Shows accuracy, which label was taken for which, and the percentage of pairs
    of words with a nonzero alignment. A label that was not seen in training
    counts as an error.

    [bold]Examples[/bold]

    didyma nli eval nli.didyma.safetensors test.jsonl

    didyma nli eval nli.didyma.safetensors SICK_test_annotated.txt --json
    """
    pairs, labels = _read_labelled(data)
    classifier = _load(model, device)

    from didyma.applications.alignment.esim import nonzero_share

    with waiting("reading"):
        predicted = classifier.predict(pairs).tolist()
        share = nonzero_share(classifier.alignments(pairs))
    names = sorted({*classifier.classes_, *labels})
    counts = {gold: dict.fromkeys(names, 0) for gold in names}
    for gold, name in zip(labels, predicted):
        counts[gold][name] += 1
    accuracy = sum(counts[name][name] for name in names) / len(pairs)
    if as_json:
        print_json(
            {
                "n_pairs": len(pairs),
                "accuracy": accuracy,
                "nonzero_alignments": share,
                "confusion": counts,
            }
        )
        return
    found = {
        "accuracy": decimal(accuracy),
        "nonzero alignments": f"{share:.1%}",
        "pairs": str(len(pairs)),
    }
    rows = [[gold, *(str(counts[gold][name]) for name in names)] for gold in names]
    typer.echo(listed(found) + "\n\n" + aligned([["gold \\ predicted", *names], *rows]))


def _read(path: Path) -> list[Pair]:
    from didyma.applications.alignment import reader as nli

    with waiting(f"reading {path}"):
        pairs = nli.read(path)
    say(f"{path}: {len(pairs)} pairs")
    return pairs


def _read_labelled(path: Path) -> tuple[list[Pair], list[str]]:
    from didyma.applications.alignment import reader as nli

    pairs, without = nli.labelled(_read(path))
    if not pairs:
        raise DataError("expected pairs with labels, found none", path=path)
    if without:
        say(f"{path}: {without} pairs without a label skipped")
    return pairs, [str(pair.label) for pair in pairs]


def _read_vectors(
    path: Path,
    classifier: EntailmentClassifier,
    pairs: Sequence[Pair],
    held_out: tuple[Sequence[Pair], Sequence[str]] | None,
) -> Any:
    from didyma.data import word_vectors as vectors

    wanted = classifier.vocabulary([*pairs, *(held_out[0] if held_out else [])])
    with waiting(f"reading {path}"):
        words, matrix = vectors.read(path, wanted)
    say(f"{path}: vectors of {len(words)} of {len(wanted)} words")
    return words, matrix


def _load(path: Path, device: neural.DeviceName) -> EntailmentClassifier:
    from didyma.applications.alignment.esim import EntailmentClassifier

    return EntailmentClassifier.load(path).set_params(device=device.value)


def _write_lines(pairs: Sequence[Pair], found: Sequence[Alignment], path: Path) -> None:
    import numpy as np

    with replace_when_done(path) as file:
        for pair, alignment in zip(pairs, found):
            record = {
                **({} if pair.id is None else {"pairID": pair.id}),
                "premise": alignment.premise,
                "hypothesis": alignment.hypothesis,
                "to_hypothesis": alignment.to_hypothesis.round(6).tolist(),
                "to_premise": alignment.to_premise.round(6).tolist(),
                "selected": {
                    name: [
                        {"probability": share, "cells": np.argwhere(cells).tolist()}
                        for cells, share in zip(one.structures, one.probabilities.tolist())
                    ]
                    for name, one in alignment.selected.items()
                },
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _draw(titles: Sequence[str], found: Sequence[Alignment], path: Path) -> None:
    from didyma.applications.alignment.drawing import write

    with waiting("drawing"):
        write(found, titles[: len(found)], path)
