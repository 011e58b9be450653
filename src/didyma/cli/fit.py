"""`didyma fit`: from a file of judged results to a model file."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from didyma.cli import checkpointing, options
from didyma.cli.cluster import train_on_cluster
from didyma.cli.inputs import InputColumns, read_data
from didyma.cli.interruption import end_if_interrupted, exit_code
from didyma.cli.output import aligned, check_output, listed, print_json, say, waiting
from didyma.cli.scaling import scaled
from didyma.cli.training import Scale, scaler_of, train, train_svm
from didyma.formatting import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.learning.selection import Contender, Contest

__all__ = ["fit"]

MODEL = "Model"
ADDITIVE = "Additive model (with --bins)"


class ModelType(StrEnum):
    """Which estimator learns."""

    svm = "svm"
    classification = "classification"
    polynomial = "polynomial"
    latent_perceptron = "latent-perceptron"
    latent_svm = "latent-svm"


class SVMSolver(StrEnum):
    """The solvers of `SVMRanker`."""

    bcfw = "bcfw"
    one_slack = "one-slack"
    n_slack = "n-slack"
    bundle = "bundle"


class Grades(StrEnum):
    """The bounds on NDCG over grades of `SVMRanker`."""

    auto = "auto"
    joint = "joint"
    thresholds = "thresholds"


class Strategy(StrEnum):
    """Where the edges of bins are placed."""

    quantile = "quantile"
    even = "even"
    geometric = "geometric"
    unit = "unit"


class Bound(StrEnum):
    """What `SVMRanker` minimises in the place of the loss itself."""

    auto = "auto"
    hinge = "hinge"
    ramp = "ramp"


class LatentSearch(StrEnum):
    """How latent rankers search for the most violating ranking."""

    exact = "exact"
    greedy = "greedy"


class Positions(StrEnum):
    """Which ranks that search scores."""

    relevant = "relevant"
    all = "all"


class Start(StrEnum):
    """Where a latent SVM begins."""

    classifier = "classifier"
    random = "random"


# Options that some estimators only have.
TAKEN_BY = {
    "loss": {"svm", "classification", "latent-perceptron", "latent-svm"},
    "bins": {"svm"},
    "strategy": {"svm"},
    "categorical": {"svm"},
    "increasing": {"svm"},
    "decreasing": {"svm"},
    "interactions": {"svm"},
    "feature_map": {"svm", "latent-svm"},
    "grades": {"svm"},
    "bound": {"svm"},
    "solver": {"svm"},
    "tol": {"svm", "classification", "polynomial", "latent-svm"},
    "max_iter": {"svm", "classification", "polynomial", "latent-svm"},
    "epochs": {"latent-perceptron"},
    "inference": {"latent-perceptron", "latent-svm"},
    "positions": {"latent-svm"},
    "start": {"latent-svm"},
    "patience": {"svm", "latent-svm"},
}

DEFAULT_C = {"classification": 1.0, "latent-perceptron": 1.0}  # 100 for others


def fit(
    context: typer.Context,
    train: Annotated[
        Path,
        typer.Argument(
            metavar="TRAIN",
            help="Judged results: LETOR, .csv, .tsv, .parquet, .jsonl, .npz, or a .lists folder.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the model is saved.")
    ] = Path("model.didyma.safetensors"),
    dev: Annotated[
        Path | None,
        typer.Option(
            "--dev", metavar="FILE", help="Held-out queries, to choose C by and to watch."
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option("--measure", metavar="NAME", help="Measure on --dev.")
    ] = "AP",
    model_type: Annotated[
        ModelType,
        typer.Option("--model-type", rich_help_panel=MODEL, help="Estimator that learns."),
    ] = ModelType.svm,
    loss: Annotated[
        str | None,
        typer.Option(
            "--loss",
            metavar="NAME",
            rich_help_panel=MODEL,
            help="ap, rr, roc, ndcg, ndcg@10, precision@5, ap(rel=2); a classifier has "
            "squared_hinge and hinge; a latent perceptron may have none.",
            show_default="ap",
        ),
    ] = None,
    C: Annotated[
        str | None,
        typer.Option(
            "--C",
            metavar="VALUES",
            rich_help_panel=MODEL,
            help="Weight of the loss; of several values, as 1,10,100, the best on --dev is kept.",
            show_default="100; 1 for classification, latent-perceptron and with --bins; the ramp "
            "bound has a hundred times as much",
        ),
    ] = None,
    feature_map: Annotated[
        str | None,
        typer.Option(
            "--feature-map",
            metavar="NAME",
            rich_help_panel=MODEL,
            help="pairwise, positional, positional:discount, truncated, top@10.",
            show_default="pairwise; truncated for latent-svm",
        ),
    ] = None,
    grades: Annotated[
        Grades | None,
        typer.Option(
            "--grades",
            rich_help_panel=MODEL,
            help="Bound on NDCG over grades: one ranking for all, or a binary one for each "
            "threshold, which is never slow.",
            show_default="auto",
        ),
    ] = None,
    bound: Annotated[
        Bound | None,
        typer.Option(
            "--bound",
            rich_help_panel=MODEL,
            help="Bound of the loss: ramp suits cut-offs (ndcg@10, precision@5), hinge the rest.",
            show_default="auto",
        ),
    ] = None,
    scale: Annotated[
        Scale, typer.Option("--scale", rich_help_panel=MODEL, help="Scale features first.")
    ] = Scale.none,
    solver: Annotated[
        SVMSolver | None,
        typer.Option(
            "--solver",
            rich_help_panel=MODEL,
            help="All find the same optimum.",
            show_default="bcfw",
        ),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(
            "--tol",
            min=0,
            rich_help_panel=MODEL,
            help="Relative gap at which to stop; for latent-svm, relative gain of a round.",
            show_default="0.001",
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option(
            "--max-iter",
            min=1,
            rich_help_panel=MODEL,
            help="Most passes over the data (in each round, with the ramp); for latent-svm, "
            "most rounds.",
            show_default="1000; 100 for latent-svm",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs",
            min=1,
            rich_help_panel=MODEL,
            help="Passes of latent-perceptron; the best on --dev is kept.",
            show_default="100",
        ),
    ] = None,
    inference: Annotated[
        LatentSearch | None,
        typer.Option(
            "--inference",
            rich_help_panel=MODEL,
            help="Search of latent rankers.",
            show_default="exact",
        ),
    ] = None,
    positions: Annotated[
        Positions | None,
        typer.Option(
            "--positions",
            rich_help_panel=MODEL,
            help="Ranks that the search of latent-svm scores; all repeats the mismatch of the "
            "published method.",
            show_default="relevant",
        ),
    ] = None,
    start: Annotated[
        Start | None,
        typer.Option(
            "--start",
            rich_help_panel=MODEL,
            help="Where latent-svm begins.",
            show_default="classifier",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            "--patience",
            min=1,
            rich_help_panel=MODEL,
            help="Stop after so many iterations without a better value on --dev, and keep the "
            "best weights.",
        ),
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(
            "--bins",
            min=2,
            max=254,
            rich_help_panel=ADDITIVE,
            help="Learn a step function of each feature, with so many steps; 64 is a good choice.",
        ),
    ] = None,
    strategy: Annotated[
        Strategy | None,
        typer.Option(
            "--strategy",
            rich_help_panel=ADDITIVE,
            help="Where steps may be.",
            show_default="quantile",
        ),
    ] = None,
    categorical: Annotated[
        str | None,
        typer.Option(
            "--categorical",
            metavar="FEATURES",
            rich_help_panel=ADDITIVE,
            help="Features whose values are categories: names, or indices as in the file.",
        ),
    ] = None,
    increasing: Annotated[
        str | None,
        typer.Option(
            "--increasing",
            metavar="FEATURES",
            rich_help_panel=ADDITIVE,
            help="Features whose functions must not fall.",
        ),
    ] = None,
    decreasing: Annotated[
        str | None,
        typer.Option(
            "--decreasing",
            metavar="FEATURES",
            rich_help_panel=ADDITIVE,
            help="Features whose functions must not rise.",
        ),
    ] = None,
    interactions: Annotated[
        str | None,
        typer.Option(
            "--interactions",
            metavar="NUMBER",
            rich_help_panel=ADDITIVE,
            help="Pairs of features with a table of their own; auto cross-validates.",
            show_default="0",
        ),
    ] = None,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            rich_help_panel=ADDITIVE,
            help="NULL and NaN in a LETOR file are missing values.",
        ),
    ] = False,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Learn on the workers of this Dask scheduler. They read TRAIN: a folder whose "
            "files are shards, or a .lists folder.",
        ),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    label: options.Label = "label",
    qid: options.Qid = "qid",
    docid: options.Docid = None,
    group: options.Group = None,
    checkpoint: checkpointing.Folder = None,
    checkpoint_every: checkpointing.Every = 300,
    resume: checkpointing.Resume = False,
    as_json: options.Json = False,
) -> None:
    """Train a ranker and save it.

    Queries are used if they have both relevant rows (label 1 or more) and
    others. Ctrl-C ends training early and keeps the best model so far (exit
    code 130). A training of more than five minutes saves checkpoints: if the
    process dies, the same command with --resume goes on from there.

    [bold]Examples[/bold]

    didyma fit train.txt -o map.didyma.safetensors

    didyma fit train.txt --dev dev.txt --C 1,10,100 --loss rr --measure RR

    didyma fit train.csv --label rating --qid query --scale query-minmax

    didyma fit train.txt --dev dev.txt --model-type latent-perceptron --C 1,10,100

    didyma fit train.txt --dev dev.txt --bins 64 --C 0.3,1,3 --interactions auto

    didyma fit shards/ --dask tcp://10.0.0.1:8786 --dev dev.txt --C 1,10,100
    """
    Cs = _read_Cs(C, model_type)
    if len(Cs) > 1 and dev is None:
        raise typer.BadParameter("several values of C need --dev, to choose by", param_hint="--C")
    if patience is not None and dev is None:
        raise typer.BadParameter("needs --dev", param_hint="--patience")
    chosen = {
        "loss": loss,
        "bins": bins,
        "strategy": strategy,
        "categorical": _listed(categorical),
        "increasing": _listed(increasing),
        "decreasing": _listed(decreasing),
        "interactions": _number(interactions),
        "feature_map": feature_map,
        "grades": grades,
        "bound": bound,
        "solver": solver,
        "tol": tol,
        "max_iter": max_iter,
        "epochs": epochs,
        "inference": inference,
        "positions": positions,
        "start": start,
        "patience": patience,
    }
    parameters = _parameters(chosen, model_type) | {"random_state": seed}
    _check_additive(parameters, missing)
    check_output(output, train, dev, group)

    if dev is not None:
        from didyma.metrics import parse

        measure = str(parse(measure))
    from didyma.model import Model

    began = time.perf_counter()
    columns = InputColumns(label, qid, docid, group, missing)
    if dask is not None:
        _check_on_cluster(model_type, columns, scale, patience)
        found, held_out = train_on_cluster(
            *(dask, train, dev, Cs, measure),
            *({**parameters, "measure": measure}, *_estimator(model_type, parameters)),
        )
        best, kept = _judged(found, {"file": str(train)}, dev, held_out, measure)
        model = Model.of(best.ranker, kept)
        model.write(output)
    else:
        mapped = [str(path) for path in (train, dev) if path is not None and path.is_dir()]
        if mapped:  # the system ends a process whose mapped file is cut short
            from didyma._core.signals import end_on_bus_error

            problem = "cut short, or no longer readable, while it was learned from"
            end_on_bus_error(f"error: {', '.join(mapped)}: {problem}\n")
        data, held_out = _read(train, dev, columns)
        features, scaler = data.features, scaler_of(data, scale)
        if scaler is not None:
            folder = output.resolve().parent
            data = scaled(scaler, data, folder)
            held_out = None if held_out is None else scaled(scaler, held_out, folder)
        with checkpointing.surviving(context, output, TRAIN=data, dev=held_out):
            found = _learn(model_type, data, held_out, Cs, measure, parameters)
            best, kept = _judged(found, _counts(train, data), dev, held_out, measure)
            features.remember(best.ranker)
            model = Model.of(best.ranker, kept)
            model = model if scaler is None else model.behind(scaler)
            model.write(output)
    if as_json:
        kept |= {"class": model.name, "seconds": best.seconds}
        kept["wall_seconds"] = time.perf_counter() - began
        print_json({"model": str(output), **best.summary(), **kept})
    else:
        _print_summary(model.name, best, found.contenders, measure, output)
    end_if_interrupted(found.interrupted, "model")


def _judged(
    found: Contest, train: dict[str, Any], dev: Path | None, held_out: Lists | None, measure: str
) -> tuple[Contender, dict[str, Any]]:
    """The best of all, and what a model file keeps of how it was found."""
    if not found.contenders:
        say("interrupted before there was anything to keep")
        raise typer.Exit(exit_code())
    best = found.best
    kept: dict[str, Any] = {
        "train": train,
        "dev": None,
        "candidates": [contender.summary() for contender in found.contenders],
    }
    if dev is not None and held_out is not None:
        kept["dev"] = {**_counts(dev, held_out), "measure": measure, "value": best.value}
    return best, kept


def _parameters(chosen: dict[str, Any], model_type: ModelType) -> dict[str, Any]:
    """The options that were given, if this estimator has them."""
    given = {name: value for name, value in chosen.items() if value is not None}
    for name in given:
        if model_type.value not in TAKEN_BY[name]:
            flag = f"--{name.replace('_', '-')}"
            types = ", ".join(kind for kind in ModelType if kind.value in TAKEN_BY[name])
            raise typer.BadParameter(f"{flag} is for --model-type {types} only")
    if model_type is ModelType.latent_perceptron and given.get("loss") == "none":
        given["loss"] = None
    return {
        name: value.value if isinstance(value, StrEnum) else value for name, value in given.items()
    }


def _listed(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(",") if part.strip())


def _number(text: str | None) -> int | str | None:
    if text is None or text == "auto":
        return text
    if not text.isdecimal():
        raise typer.BadParameter(
            f"expected a number or auto, found {text!r}", param_hint="--interactions"
        )
    return int(text)


def _check_additive(parameters: dict[str, Any], missing: bool) -> None:
    """Refuse options that mean nothing without bins."""
    if "bins" in parameters:
        return
    names = ("strategy", "categorical", "increasing", "decreasing", "interactions")
    given = [name for name in names if name in parameters] + ["missing"] * missing
    if given:
        raise typer.BadParameter("needs --bins", param_hint=f"--{given[0]}")


def _learn(
    model_type: ModelType,
    data: Lists,
    dev: Lists | None,
    Cs: list[float],
    measure: str,
    parameters: dict[str, Any],
) -> Contest:
    if model_type is ModelType.svm:
        return train_svm(data, dev, Cs, measure, parameters)
    module, name = _estimator(model_type, parameters)
    return train(data, dev, Cs, measure, parameters, module, name)


def _estimator(model_type: ModelType, parameters: dict[str, Any]) -> tuple[str, str]:
    """Module and name of a class."""
    if model_type is ModelType.svm:
        return ("additive", "AdditiveSVMRanker") if "bins" in parameters else ("svm", "SVMRanker")
    return {
        ModelType.classification: ("classification", "ClassificationRanker"),
        ModelType.polynomial: ("classification", "PolynomialRanker"),
        ModelType.latent_perceptron: ("latent", "LatentPerceptronRanker"),
        ModelType.latent_svm: ("latent", "LatentSVMRanker"),
    }[model_type]


def _check_on_cluster(
    model_type: ModelType, columns: InputColumns, scale: Scale, patience: int | None
) -> None:
    """Refuse what workers do not do."""
    refused = {
        "--model-type": model_type in (ModelType.classification, ModelType.polynomial),
        "--scale": scale is not Scale.none,
        "--patience": patience is not None,
        "--label, --qid, --docid, --group, --missing": columns != InputColumns(),
    }
    for option, given in refused.items():
        if given:
            raise typer.BadParameter("is not for --dask", param_hint=option)


def _read_Cs(text: str | None, model_type: ModelType) -> list[float]:
    """The values that were given, or one by default; none for an SVM, whose bound decides."""
    if text is None:
        return [] if model_type is ModelType.svm else [DEFAULT_C.get(model_type.value, 100.0)]
    return options.read_Cs(text)


def _read(train: Path, dev: Path | None, columns: InputColumns) -> tuple[Lists, Lists | None]:
    with waiting(f"reading {train}"):
        data = read_data(train, columns)
    say(f"{train}: {_size(data)}")
    if dev is None:
        return data, None
    with waiting(f"reading {dev}"):
        held_out = read_data(dev, replace(columns, group=None), like=data)
    say(f"{dev}: {_size(held_out)}")
    return data, held_out


def _size(data: Lists) -> str:
    return f"{len(data)} rows, {len(data.groups)} queries, {data.X.shape[1]} features"


def _counts(path: Path, data: Lists) -> dict[str, Any]:
    return {
        "file": str(path),
        "rows": len(data),
        "queries": len(data.groups),
        "features": data.X.shape[1],
    }


def _print_summary(
    name: str, best: Contender, contenders: list[Contender], measure: str, output: Path
) -> None:
    if len(contenders) > 1:
        rows = [["C", f"dev {measure}", "objective", "iterations"]]
        for contender in contenders:
            mark = " *" if contender is best else ""
            result = contender.ranker.result_
            name = f"{contender.ranker.C:g}{mark}"
            rows.append([name, decimal(contender.value), f"{result.value:.6g}", str(result.n_iter)])
        typer.echo(aligned(rows) + "\n")
    ranker, found = best.ranker, best.summary()
    loss = f", loss {ranker.loss or 'none'}" if hasattr(ranker, "loss") else ""
    lines = {
        "model": f"{name}{loss}, C {ranker.C:g}",
        "mean loss" if "best_epoch" in found else "objective": f"{found['objective']:.6g}",
    }
    if "relative_gap" in found:
        lines["relative gap"] = f"{found['relative_gap']:.1e} ({found['status']})"
    if "grades" in found:
        lines["grades"] = found["grades"]
    if found.get("bound") == "ramp":
        lines["bound"] = f"ramp, {found['rounds']} rounds from the optimum of {found['start']}"
    if "best_epoch" in found:
        lines["best epoch"] = f"{found['best_epoch']} of {found['n_iter']}"
    if "passes" in found:
        lines["passes"] = f"{found['passes']:.1f} in {best.seconds:.2f} s"
    if best.value is not None:
        lines[f"dev {measure}"] = decimal(best.value)
    lines["saved to"] = str(output)
    typer.echo(listed(lines))
