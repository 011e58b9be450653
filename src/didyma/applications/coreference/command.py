"""`didyma coref`: train, apply and evaluate coreference resolution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from didyma import DataError, cli
from didyma.cli import options
from didyma.report import aligned, decimal, listed

if TYPE_CHECKING:
    from didyma.applications.coreference.reader import Document
    from didyma.applications.coreference.resolver import CoreferenceResolver
    from didyma.learning.solution import Progress

app = cli.group(
    """Find which mentions of a text refer to the same thing.

    Mentions are given; what is learned is how to cluster them. Data are
    CoNLL-2012 style files (one token a line, brackets in the last column).

    [bold]Train, apply, evaluate:[/bold]

    didyma coref fit train/ --dev dev/ -o coref.didyma.safetensors

    didyma coref predict coref.didyma.safetensors test/ -o predicted/

    didyma coref eval coref.didyma.safetensors test/
    """
)

DATA = "CoNLL-2012 style file with mentions in its last column, or a folder of such."
EVERY = 10  # cuts between lines
R = "0.1"

Measure = Literal["conll", "muc", "b_cubed", "ceaf_m", "ceaf_e"]
RESOLVER = cli.ParametersOf(
    "didyma.applications.coreference.resolver.CoreferenceResolver",
    {None: [cli.Option("model", ("--model-type",)), "solver", "tol", "max_iter"]},
)


@app.command()
@cli.command
def fit(
    *,
    train: Annotated[Path, options.argument("TRAIN", DATA)],
    output: options.Output = Path("coref.didyma.safetensors"),
    dev: Annotated[Path | None, options.file("Held-out documents, to choose C and r by.")] = None,
    measure: Annotated[Measure, typer.Option(help="F1 on --dev.")] = "conll",
    C: Annotated[
        str,
        options.text(
            "VALUES",
            "Weight of the loss; of several values, as 0.01,0.1,1, the best on --dev is kept.",
            "--C",
        ),
    ] = "1",
    r: Annotated[
        str,
        options.text(
            "VALUES",
            "Penalty of a wrong link, where a missing one costs 1: less makes larger clusters. Of "
            "several values, as 0.01,0.1,1, the best on --dev is kept, with each C.",
            "--r",
        ),
    ] = R,
    parameters: Annotated[dict[str, Any], RESOLVER],
    jobs: options.Jobs = None,
    checkpointing: cli.Checkpointing,
    as_json: options.Json = False,
) -> None:
    """Train on documents with gold clusters and save the model.

    Ctrl-C ends training early and keeps the best model so far (exit code 130).
    If the process dies, the same command with --resume goes on where it was.

    [bold]Examples[/bold]

    didyma coref fit train/ -o coref.didyma.safetensors

    didyma coref fit train/ --dev dev/ --C 0.1,1,10 --r 0.01,0.1,1 --measure muc

    didyma coref fit train.conll --model-type correlation --C 100
    """
    Cs = options.read_Cs(C, dev)
    penalties = options.read_Cs(r, dev, "r")
    is_latent = parameters["model"] == "latent"
    if r != R and not is_latent:
        raise typer.BadParameter("only --model-type latent has one", param_hint="--r")
    cli.check_output(output, train, dev)
    documents = _read(train)
    held_out = [] if dev is None else _read(dev)
    if not any(len(document.mentions) > 1 for document in documents):
        raise DataError("expected a document with two mentions at least, found none", path=train)

    from didyma import model as model_file
    from didyma.applications.coreference.mentions import pair_features
    from didyma.applications.coreference.resolver import CoreferenceResolver
    from didyma.learning import select_model

    with cli.waiting("computing features of pairs"):
        examples = [pair_features(document) for document in documents]
        unseen = [pair_features(document) for document in held_out]
    labels = [document.labels for document in documents]

    def fits() -> Iterator[CoreferenceResolver]:
        for value, penalty in product(Cs, penalties):
            resolver = CoreferenceResolver(value, penalty, **parameters)
            resolver.callback = _reporter(resolver)
            yield resolver.fit_pairs(examples, labels)

    def judge(resolver: CoreferenceResolver) -> float:
        score = _evaluate(held_out, resolver.predict_pairs(unseen))[measure]
        value = float(score if measure == "conll" else score.f1)
        cli.print_message(f"{_label(resolver)}dev {measure} {decimal(value)}")
        return value

    with checkpointing.saving(output, TRAIN=documents, dev=held_out):
        selection = select_model(fits(), judge if held_out else None)
        if not selection.candidates:
            cli.print_message("interrupted before there was anything to keep")
            raise typer.Exit(cli.exit_code())
        best, on_dev = selection.best.ranker, selection.best.value
        summary = {
            "train": {"path": str(train), "documents": len(documents)},
            "dev": None if dev is None else {"path": str(dev), measure: on_dev},
            "candidates": [_summary(one.ranker, one.value) for one in selection.candidates],
        }
        model_file.save(best, output, summary=summary)
    if as_json:
        seconds = best.result_.seconds["total"]
        cli.print_json(
            {"model": str(output), **_summary(best, on_dev), "seconds": seconds, **summary}
        )
    else:
        lines = {
            "model": f"{best.model}, C {best.C:g}" + (f", r {best.r:g}" if is_latent else ""),
            "objective": f"{best.result_.value:.6g} ({best.result_.status})",
            **({} if on_dev is None else {f"dev {measure}": decimal(on_dev)}),
            "saved to": str(output),
        }
        typer.echo(listed(lines))
    cli.end_if_interrupted(selection.interrupted, "model")


@app.command()
def predict(
    model: Annotated[Path, options.argument("MODEL", "A model that didyma coref fit has saved.")],
    data: Annotated[Path, options.argument("DATA", DATA)],
    output: Annotated[
        Path, options.file("File to write, or folder if DATA is one.", "--output", "-o")
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
        cli.check_output(output, model, data)
    resolver = CoreferenceResolver.load(model)
    contents = [coreference.read(file) for file in files]
    with cli.waiting("resolving"):
        clusters = [resolver.predict(documents) for documents in contents]
    if data.is_dir():
        output.mkdir(parents=True, exist_ok=True)
    for target, documents, labels in zip(targets, contents, clusters):
        coreference.write(documents, target, labels)
    n_documents = sum(map(len, contents))
    cli.print_message(
        f"{n_documents} document{'s' if n_documents != 1 else ''} written to {output}"
    )


@app.command("eval")
def evaluate(
    system: Annotated[
        Path, options.argument("MODEL|PREDICTED", "A saved model, or predicted clusters.")
    ],
    gold: Annotated[Path, options.argument("DATA", DATA)],
    per_document: Annotated[
        bool, options.flag("--per-document", "Show F1 of each document too.")
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
    if system.is_file() and cli.is_model(system):
        from didyma.applications.coreference.resolver import CoreferenceResolver

        resolver = CoreferenceResolver.load(system)
        with cli.waiting("resolving"):
            predicted: Sequence[Any] = resolver.predict(documents)
    else:
        predicted = _labels_of(system, _read(system), documents)
    scores, single = _evaluate(documents, predicted), []
    if per_document:
        single = [_evaluate([d], [labels]) for d, labels in zip(documents, predicted)]
    if not as_json:
        typer.echo(_scores_text(documents, scores, single))
        return
    record = {"n_documents": len(documents), **_scores_dict(scores)}
    if per_document:
        names = (f"{document.name} {document.part}" for document in documents)
        record["documents"] = dict(zip(names, map(_scores_dict, single)))
    cli.print_json(record)


def _read(path: Path) -> list[Document]:
    from didyma.applications.coreference import reader as coreference

    with cli.waiting(f"reading {path}"):
        documents = [d for file in coreference.find(path) for d in coreference.read(file)]
    n_mentions = sum(len(document.mentions) for document in documents)
    cli.print_message(f"{path}: {len(documents)} documents, {n_mentions} mentions")
    return documents


def _label(resolver: CoreferenceResolver) -> str:
    """What lines on stderr begin with."""
    penalty = f"r={resolver.r:<8g}" if resolver.model == "latent" else ""
    return f"C={resolver.C:<8g}{penalty}"


def _reporter(resolver: CoreferenceResolver) -> Any:
    """Lines on stderr, one a round, or one for some cuts."""
    fit = _label(resolver)
    name, every = ("round", 1) if resolver.model == "latent" else ("cut", EVERY)

    def report(progress: Progress) -> None:
        if progress.n_iter % every == 0:
            cli.print_message(
                f"{fit}{name} {progress.n_iter:3d}   objective {progress.value:.6g}   "
                f"{progress.seconds:.1f} s"
            )

    return report


def _evaluate(documents: Sequence[Document], predicted: Sequence[Any]) -> dict[str, Any]:
    from didyma.applications.coreference.measures import evaluate

    return evaluate([document.labels for document in documents], predicted)


def _summary(resolver: Any, on_dev: float | None) -> dict[str, Any]:
    result = resolver.result_
    return {
        "C": resolver.C,
        "r": resolver.r if resolver.model == "latent" else None,
        "model_type": resolver.model,
        "objective": result.value,
        "status": result.status,
        "n_iter": result.n_iter,
        "dev": on_dev,
    }


def _labels_of(
    path: Path, predicted: Sequence[Document], gold: Sequence[Document]
) -> list[list[str]]:
    """Predicted cluster of each gold mention; both must mark the same ones."""
    by_name = {(document.name, document.part): document for document in predicted}
    labels = []
    for document in gold:
        other = by_name.get((document.name, document.part))
        if other is None:
            raise DataError(
                f"expected a document {document.name}, part {document.part}, found none", path=path
            )
        ours, theirs = ([mention[:2] for mention in d.mentions] for d in (other, document))
        if ours != theirs:
            where = set(theirs) ^ set(ours)
            words = f", first {document.words[slice(*min(where))]}" if where else ""
            raise DataError(
                f"document {document.name}, part {document.part}: expected the {len(theirs)} "
                f"mentions of the gold file, found {len(ours)} that differ{words}",
                path=other.path,
            )
        labels.append([mention.cluster for mention in other.mentions])
    return labels


def _scores_dict(scores: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        if isinstance(value, float)
        else {"precision": value.precision, "recall": value.recall, "f1": value.f1}
        for name, value in scores.items()
    }


def _scores_text(
    documents: Sequence[Document], scores: dict[str, Any], single: Sequence[dict[str, Any]]
) -> str:
    names = {"muc": "MUC", "b_cubed": "B3", "ceaf_m": "CEAF_m", "ceaf_e": "CEAF_e"}
    rows = [["", "precision", "recall", "F1"]]
    for key, name in names.items():
        score = scores[key]
        rows.append([name, *map(decimal, (score.precision, score.recall, score.f1))])
    rows.append(["CoNLL", "", "", decimal(scores["conll"])])
    losses = {
        "MITRE loss": decimal(scores["mitre_loss"]),
        "pair loss": decimal(scores["pair_loss"]),
        "documents": str(len(documents)),
    }
    parts = [aligned(rows), aligned(list(losses.items()))]
    if single:
        head = ["document", "mentions", *names.values(), "CoNLL"]
        each = [
            [
                document.name,
                str(len(document.mentions)),
                *(decimal(one[key].f1) for key in names),
                decimal(one["conll"]),
            ]
            for document, one in zip(documents, single)
        ]
        parts.append(aligned([head, *each]))
    return "\n\n".join(parts)
