"""`didyma nli fit/predict/eval`: train an entailment classifier, apply it, judge it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma import DataError, cli
from didyma.applications.networks import options as neural
from didyma.cli import options
from didyma.report import aligned, decimal, listed

if TYPE_CHECKING:
    from didyma.applications.alignment.esim import EntailmentClassifier
    from didyma.applications.alignment.reader import Pair

app = cli.group(
    """Tell whether a premise entails a hypothesis, contradicts it, or neither.

    [bold]Train, apply, evaluate:[/bold]

    didyma nli fit train.jsonl --dev dev.jsonl -o nli.didyma.safetensors

    didyma nli predict nli.didyma.safetensors test.jsonl --alignments test.html

    didyma nli eval nli.didyma.safetensors test.jsonl

    Data are JSONL as SNLI and MultiNLI have it, or SICK with or without its
    header, plain or .gz."""
)

KEEP_CASE = cli.Option(
    "lowercase", ("--keep-case",), help="Tell capitals from small letters.", sets=False
)
CLASSIFIER = neural.network_options(
    "didyma.applications.alignment.esim.EntailmentClassifier",
    ["alignment", neural.FIXED_VECTORS, KEEP_CASE],
    ["dimension", "hidden", "dropout"],
)
Model = Annotated[Path, options.argument("MODEL", "A model that didyma nli fit has saved.")]


@app.command()
@cli.command
def fit(
    *,
    train: Annotated[Path, options.argument("TRAIN", "Pairs with labels.")],
    output: options.Output = Path("nli.didyma.safetensors"),
    dev: Annotated[Path | None, options.file("Held-out pairs, to choose the epoch by.")] = None,
    vectors: neural.Vectors = None,
    parameters: Annotated[dict[str, Any], CLASSIFIER],
    jobs: options.Jobs = None,
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
    neural.check_files(parameters, output, train, dev, vectors=vectors)
    pairs, labels = _read_labelled(train)
    held_out = None if dev is None else _read_labelled(dev)

    from didyma.applications.alignment.esim import EntailmentClassifier

    with neural.training("accuracy") as callback:
        classifier = EntailmentClassifier(**parameters, callback=callback)
        table = None if vectors is None else _read_vectors(vectors, classifier, pairs, held_out)
        classifier.fit(pairs, labels, held_out, table)
    about = {"path": str(train), "pairs": len(pairs), "labels": classifier.classes_}
    neural.save_trained(classifier, output, about, dev, "accuracy", "alignment", as_json=as_json)


@app.command()
def predict(
    model: Model,
    data: Annotated[Path, options.argument("DATA", "Pairs of sentences: JSONL, or SICK.")],
    output: Annotated[Path | None, options.file("Predictions, as JSONL.", "--output", "-o")] = None,
    alignments: Annotated[
        Path | None, options.file("How words are aligned: drawn (.html, .svg) or as data (.jsonl).")
    ] = None,
    most: Annotated[int, options.number("Pairs to draw, the first of DATA.", min=1)] = 20,
    device: neural.Device = "auto",
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
    kind = neural.check_shown(output, alignments, "alignments", model, data, option="--alignments")
    pairs = _read(data)

    from didyma.applications.alignment import reader as nli
    from didyma.applications.alignment.esim import EntailmentClassifier

    classifier = EntailmentClassifier.load(model).set_params(device=device)
    with cli.waiting("reading"):
        probabilities = classifier.predict_proba(pairs)
    labels = [classifier.classes_[k] for k in probabilities.argmax(axis=1)]
    if output is not None:
        shares = [dict(zip(classifier.classes_, row)) for row in probabilities.tolist()]
        nli.write_predictions(pairs, labels, shares, output)
        cli.print_message(f"{len(pairs)} predictions written to {output}")
    if alignments is None:
        return

    from didyma.applications.alignment.drawing import write, write_lines

    shown = len(pairs) if kind == ".jsonl" else most
    with cli.waiting("aligning"):
        aligned_pairs = classifier.alignments(pairs[:shown])
    if kind == ".jsonl":
        write_lines(pairs, aligned_pairs, alignments)
    else:
        best = zip(labels, probabilities.max(axis=1)[:shown])
        with cli.waiting("drawing"):
            write(aligned_pairs, [f"{label} {p:.0%}" for label, p in best], alignments)
    cli.print_message(f"alignments of {len(aligned_pairs)} pairs written to {alignments}")


@app.command("eval")
def evaluate(
    model: Model,
    data: Annotated[Path, options.argument("DATA", "Pairs with labels.")],
    device: neural.Device = "auto",
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

    from didyma.applications.alignment.esim import EntailmentClassifier, nonzero_share

    classifier = EntailmentClassifier.load(model).set_params(device=device)
    with cli.waiting("reading"):
        predicted = classifier.predict(pairs).tolist()
        share = nonzero_share(classifier.alignments(pairs))
    names = sorted({*classifier.classes_, *labels})
    counts = {gold: dict.fromkeys(names, 0) for gold in names}
    for gold, name in zip(labels, predicted):
        counts[gold][name] += 1
    accuracy = sum(counts[name][name] for name in names) / len(pairs)
    if as_json:
        record = {"n_pairs": len(pairs), "accuracy": accuracy, "nonzero_alignments": share}
        cli.print_json({**record, "confusion": counts})
        return
    measures = {
        "accuracy": decimal(accuracy),
        "nonzero alignments": f"{share:.1%}",
        "pairs": str(len(pairs)),
    }
    rows = [[gold, *(str(counts[gold][name]) for name in names)] for gold in names]
    typer.echo(listed(measures) + "\n\n" + aligned([["gold \\ predicted", *names], *rows]))


def _read(path: Path) -> list[Pair]:
    from didyma.applications.alignment import reader as nli

    with cli.waiting(f"reading {path}"):
        pairs = nli.read(path)
    cli.print_message(f"{path}: {len(pairs)} pairs")
    return pairs


def _read_labelled(path: Path) -> tuple[list[Pair], list[str]]:
    from didyma.applications.alignment import reader as nli

    pairs, without = nli.labelled(_read(path))
    if not pairs:
        raise DataError("expected pairs with labels, found none", path=path)
    if without:
        cli.print_message(f"{path}: {without} pairs without a label skipped")
    return pairs, [str(pair.label) for pair in pairs]


def _read_vectors(
    path: Path,
    classifier: EntailmentClassifier,
    pairs: Sequence[Pair],
    held_out: tuple[Sequence[Pair], Sequence[str]] | None,
) -> Any:
    from didyma.data import word_vectors as vectors

    wanted = classifier.vocabulary([*pairs, *(held_out[0] if held_out else [])])
    with cli.waiting(f"reading {path}"):
        words, matrix = vectors.read(path, wanted)
    cli.print_message(f"{path}: vectors of {len(words)} of {len(wanted)} words")
    return words, matrix
