"""`didyma coref`: train, apply and evaluate coreference resolution."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import checkpointing, options
from didyma.cli.inputs import is_model
from didyma.cli.interruption import end_if_interrupted, exit_code
from didyma.cli.output import aligned, check_output, listed, print_json, say, waiting
from didyma.errors import DataError
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.applications.coreference.reader import Document
    from didyma.learning.solution import Progress

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", add_completion=False)

DATA = "CoNLL-2012 style file with mentions in its last column, or a folder of such."
EVERY = 10  # cuts between lines


class CorefModel(StrEnum):
    """Which model learns."""

    latent = "latent"
    correlation = "correlation"


class CorefMeasure(StrEnum):
    """What C is chosen by."""

    conll = "conll"
    muc = "muc"
    b_cubed = "b_cubed"
    ceaf_m = "ceaf_m"
    ceaf_e = "ceaf_e"


@app.callback()
def _coref() -> None:
    """Find which mentions of a text refer to the same thing.

    Mentions are given; what is learned is how to cluster them. Data are
    CoNLL-2012 style files (one token a line, brackets in the last column).

    [bold]Train, apply, evaluate:[/bold]

    didyma coref fit train/ --dev dev/ -o coref.didyma.safetensors

    didyma coref predict coref.didyma.safetensors test/ -o predicted/

    didyma coref eval coref.didyma.safetensors test/
    """


@app.command()
def fit(
    context: typer.Context,
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help=DATA)],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("coref.didyma.safetensors"),
    dev: Annotated[
        Path | None,
        typer.Option("--dev", metavar="FILE", help="Held-out documents, to choose C by."),
    ] = None,
    measure: Annotated[
        CorefMeasure, typer.Option("--measure", help="F1 on --dev.")
    ] = CorefMeasure.conll,
    model: Annotated[
        CorefModel,
        typer.Option("--model-type", help="Spanning forests, or all pairs of a cluster."),
    ] = CorefModel.latent,
    C: Annotated[
        str,
        typer.Option(
            "--C",
            metavar="VALUES",
            help="Weight of the loss; of several values, as 0.01,0.1,1, the best on --dev is kept.",
        ),
    ] = "1",
    r: Annotated[
        float,
        typer.Option("--r", help="Penalty of a wrong link; less makes larger clusters (latent)."),
    ] = 0.1,
    tol: Annotated[
        float, typer.Option("--tol", min=0, help="Relative gain, or gap, to stop at.")
    ] = 1e-3,
    max_iter: Annotated[int, typer.Option("--max-iter", min=1, help="Most rounds, or cuts.")] = 100,
    jobs: options.Jobs = None,
    checkpoint: checkpointing.Folder = None,
    checkpoint_every: checkpointing.Every = 300,
    resume: checkpointing.Resume = False,
    as_json: options.Json = False,
) -> None:
    """Train on documents with gold clusters and save the model.

    Ctrl-C ends training early and keeps the best model so far (exit code 130).
    If the process dies, the same command with --resume goes on where it was.

    [bold]Examples[/bold]

    didyma coref fit train/ -o coref.didyma.safetensors

    didyma coref fit train/ --dev dev/ --C 0.01,0.1,1 --r 0.05 --measure muc

    didyma coref fit train.conll --model-type correlation --C 100
    """
    Cs = options.read_Cs(C)
    if len(Cs) > 1 and dev is None:
        raise typer.BadParameter("several values of C need --dev, to choose by", param_hint="--C")
    if not 0 < r < math.inf:
        raise typer.BadParameter("expected a number above 0", param_hint="--r")
    check_output(output, train, dev)
    documents = _read(train)
    held_out = [] if dev is None else _read(dev)
    if not any(len(document.mentions) > 1 for document in documents):
        raise DataError("expected a document with two mentions at least, found none", path=train)

    from didyma import model as model_file
    from didyma.applications.coreference.mentions import pair_features
    from didyma.applications.coreference.resolver import CoreferenceResolver
    from didyma.learning.selection import contest

    with waiting("computing features of pairs"):
        examples = [pair_features(document) for document in documents]
        unseen = [pair_features(document) for document in held_out]
    labels = [document.labels for document in documents]

    def fits() -> Iterator[CoreferenceResolver]:
        for value in Cs:
            yield CoreferenceResolver(
                value, r, model.value, tol=tol, max_iter=max_iter, callback=_reporter(value, model)
            ).fit_pairs(examples, labels)

    def judge(resolver: CoreferenceResolver) -> float:
        found = _value(_evaluate(held_out, resolver.predict_pairs(unseen)), measure)
        say(f"C={resolver.C:<8g}dev {measure.value} {decimal(found)}")
        return found

    with checkpointing.surviving(context, output, TRAIN=documents, dev=held_out):
        found = contest(fits(), judge if held_out else None)
        if not found.contenders:
            say("interrupted before there was anything to keep")
            raise typer.Exit(exit_code())
        best, on_dev = found.best.ranker, found.best.value
        kept = {
            "train": {"path": str(train), "documents": len(documents)},
            "dev": None if dev is None else {"path": str(dev), measure.value: on_dev},
            "candidates": [_summary(one.ranker, one.value) for one in found.contenders],
        }
        model_file.save(best, output, summary=kept)
    if as_json:
        seconds = best.result_.seconds["total"]
        print_json({"model": str(output), **_summary(best, on_dev), "seconds": seconds, **kept})
    else:
        lines = {
            "model": f"{model.value}, C {best.C:g}" + (f", r {r:g}" if model == "latent" else ""),
            "objective": f"{best.result_.value:.6g} ({best.result_.status})",
            **({} if on_dev is None else {f"dev {measure.value}": decimal(on_dev)}),
            "saved to": str(output),
        }
        typer.echo(listed(lines))
    end_if_interrupted(found.interrupted, "model")


@app.command()
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model that didyma coref fit has saved.")
    ],
    data: Annotated[Path, typer.Argument(metavar="DATA", help=DATA)],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write, or folder if DATA is one."
        ),
    ],
) -> None:
    """Cluster the mentions of DATA and write them in the same format.

    The clusters in DATA are not looked at, only where mentions are; all other
    columns and comments are kept.

    [bold]Example[/bold]

    didyma coref predict coref.didyma.safetensors test.conll -o predicted.conll
    """
    from didyma.applications.coreference import reader as coreference
    from didyma.applications.coreference.resolver import CoreferenceResolver

    files = coreference.find(data)
    targets = [output / file.name for file in files] if data.is_dir() else [output]
    if data.is_dir():
        if output.is_file():
            raise DataError("expected a folder to write to, found a file", path=output)
        if output.is_dir() and output.samefile(data):
            raise DataError("is the input, and would be overwritten", path=output)
    else:
        check_output(output, model, data)
    resolver = CoreferenceResolver.load(model)
    contents = [coreference.read(file) for file in files]
    with waiting("resolving"):
        clusters = [resolver.predict(documents) for documents in contents]
    if data.is_dir():
        output.mkdir(parents=True, exist_ok=True)
    for target, documents, labels in zip(targets, contents, clusters):
        coreference.write(documents, target, labels)
    n_documents = sum(map(len, contents))
    say(f"{n_documents} document{'s' if n_documents != 1 else ''} written to {output}")


@app.command("eval")
def evaluate(
    system: Annotated[
        Path,
        typer.Argument(metavar="MODEL|PREDICTED", help="A saved model, or predicted clusters."),
    ],
    gold: Annotated[Path, typer.Argument(metavar="DATA", help=DATA)],
    per_document: Annotated[
        bool, typer.Option("--per-document", help="Show F1 of each document too.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compare predicted clusters, or those of a model, with gold ones.

    Both files must mark the same mentions. Documents are pooled: counts are
    summed before they are divided. MITRE loss is 1 - F1 of MUC, pair loss the
    share of pairs of mentions that are wrongly together or apart; CoNLL is the
    mean F1 of MUC, B3 and CEAF_e.

    [bold]Examples[/bold]

    didyma coref eval predicted.conll test.conll

    didyma coref eval coref.didyma.safetensors test/ --per-document --json
    """
    documents = _read(gold)
    if system.is_file() and is_model(system):
        from didyma.applications.coreference.resolver import CoreferenceResolver

        resolver = CoreferenceResolver.load(system)
        with waiting("resolving"):
            predicted: Sequence[Any] = resolver.predict(documents)
    else:
        predicted = _aligned_labels(system, _read(system), documents)
    found = _evaluate(documents, predicted)
    single = [_evaluate([d], [labels]) for d, labels in zip(documents, predicted)]
    if as_json:
        record = {"n_documents": len(documents), **_plain(found)}
        if per_document:
            record["documents"] = {
                f"{d.name} {d.part}": _plain(own) for d, own in zip(documents, single)
            }
        print_json(record)
    else:
        typer.echo(_text(documents, found, single if per_document else []))


def _read(path: Path) -> list[Document]:
    from didyma.applications.coreference import reader as coreference

    with waiting(f"reading {path}"):
        documents = [d for file in coreference.find(path) for d in coreference.read(file)]
    n_mentions = sum(len(document.mentions) for document in documents)
    say(f"{path}: {len(documents)} documents, {n_mentions} mentions")
    return documents


def _reporter(C: float, model: CorefModel) -> Any:
    """Lines on stderr, one a round, or one for some cuts."""
    name, every = ("round", 1) if model is CorefModel.latent else ("cut", EVERY)

    def report(progress: Progress) -> None:
        if progress.n_iter % every == 0:
            say(
                f"C={C:<8g}{name} {progress.n_iter:3d}   objective {progress.value:.6g}   "
                f"{progress.seconds:.1f} s"
            )

    return report


def _evaluate(documents: Sequence[Document], predicted: Sequence[Any]) -> dict[str, Any]:
    from didyma.applications.coreference.measures import evaluate

    return evaluate([document.labels for document in documents], predicted)


def _value(found: dict[str, Any], measure: CorefMeasure) -> float:
    value = found[measure.value]
    return float(value if measure is CorefMeasure.conll else value.f1)


def _summary(resolver: Any, on_dev: float | None) -> dict[str, Any]:
    result = resolver.result_
    return {
        "C": resolver.C,
        "r": resolver.r,
        "model_type": resolver.model,
        "objective": result.value,
        "status": result.status,
        "n_iter": result.n_iter,
        "dev": on_dev,
    }


def _aligned_labels(
    path: Path, predicted: Sequence[Document], gold: Sequence[Document]
) -> list[list[str]]:
    """Predicted cluster of each gold mention; both must mark the same ones."""
    known = {(document.name, document.part): document for document in predicted}
    labels = []
    for document in gold:
        found = known.get((document.name, document.part))
        if found is None:
            raise DataError(
                f"expected a document {document.name}, part {document.part}, found none", path=path
            )
        ours = sorted((m.start, m.stop, m.cluster) for m in found.mentions)
        order = sorted(range(len(document.mentions)), key=lambda k: document.mentions[k][:2])
        theirs = [document.mentions[k][:2] for k in order]
        if [mention[:2] for mention in ours] != theirs:
            where = set(theirs) ^ {mention[:2] for mention in ours}
            words = f", first {document.words[slice(*min(where))]}" if where else ""
            raise DataError(
                f"document {document.name}, part {document.part}: expected the {len(theirs)} "
                f"mentions of the gold file, found {len(ours)} that differ{words}",
                path=found.path,
            )
        own = [""] * len(order)
        for k, mention in zip(order, ours):
            own[k] = mention[2]
        labels.append(own)
    return labels


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        if isinstance(value, float)
        else {"precision": value.precision, "recall": value.recall, "f1": value.f1}
        for name, value in found.items()
    }


def _text(
    documents: Sequence[Document], found: dict[str, Any], single: Sequence[dict[str, Any]]
) -> str:
    names = {"muc": "MUC", "b_cubed": "B3", "ceaf_m": "CEAF_m", "ceaf_e": "CEAF_e"}
    rows = [["", "precision", "recall", "F1"]]
    for key, name in names.items():
        score = found[key]
        rows.append([name, *map(decimal, (score.precision, score.recall, score.f1))])
    rows.append(["CoNLL", "", "", decimal(found["conll"])])
    losses = {
        "MITRE loss": decimal(found["mitre_loss"]),
        "pair loss": decimal(found["pair_loss"]),
        "documents": str(len(documents)),
    }
    parts = [aligned(rows), aligned(list(losses.items()))]
    if single:
        head = ["document", "mentions", *names.values(), "CoNLL"]
        each = [
            [
                document.name,
                str(len(document.mentions)),
                *(decimal(own[key].f1) for key in names),
                decimal(own["conll"]),
            ]
            for document, own in zip(documents, single)
        ]
        parts.append(aligned([head, *each]))
    return "\n\n".join(parts)
