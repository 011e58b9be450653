"""`didyma fit`: from a file of judged results to a model file, here or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from didyma.cli import options
from didyma.cli.checkpointing import Checkpointing
from didyma.cli.groups import Option, ParametersOf, command, flag_of
from didyma.cli.inputs import InputColumns, read_data
from didyma.cli.output import (
    check_output,
    end_if_interrupted,
    exit_code,
    print_json,
    print_message,
    waiting,
)
from didyma.cli.progress import DevMeasure, reporting
from didyma.cli.signature import parameters_of
from didyma.errors import DataError, MissingExtraError, placed
from didyma.report.table import aligned, listed
from didyma.values import decimal

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.learning.selection import Candidate, HeldOut, ModelSelection

SCHEDULER_TIMEOUT = 30  # seconds for a Dask scheduler to answer
MODEL = "Model"
ADDITIVE = "Additive model (with --bins)"
WITH_BINS = "svm, with --bins"
BY_EPOCH = "latent-perceptron"  # which keeps the epoch that is best on --dev
RIDGE_CS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # of the contender

# By --model-type.
RANKERS = {
    "svm": "didyma.ranking.svm.SVMRanker",
    WITH_BINS: "didyma.ranking.additive.AdditiveSVMRanker",
    "classification": "didyma.ranking.classification.ClassificationRanker",
    "polynomial": "didyma.ranking.classification.PolynomialRanker",
    "ridge": "didyma.ranking.ridge.RidgeRanker",
    "latent-perceptron": "didyma.ranking.latent.LatentPerceptronRanker",
    "latent-svm": "didyma.ranking.latent.LatentSVMRanker",
}
RANKER = ParametersOf(
    RANKERS,
    {
        MODEL: [
            Option(
                "loss",
                help="ap, rr, roc, ndcg, ndcg@10, precision@5, ap(rel=2); a classifier has "
                "squared_hinge and hinge; a latent perceptron may have none.",
            ),
            Option("feature_map", default="pairwise; truncated for latent-svm"),
            "grades",
            "bound",
            "solver",
            Option(
                "tol",
                help="Relative gap at which to stop; for latent-svm, relative gain of a round.",
            ),
            Option(
                "max_iter",
                help="Most passes over the data (in each round, with the ramp); for latent-svm, "
                "most rounds.",
            ),
            Option("epochs", help="Passes of latent-perceptron; the best on --dev is kept."),
            Option("inference", help="Search of latent rankers."),
            Option(
                "positions",
                help="Ranks that the search of latent-svm scores; all repeats the mismatch of the "
                "published method.",
            ),
            Option(
                "start", help="Where latent-svm begins: at a classifier, or at random rankings."
            ),
            "patience",
        ],
        ADDITIVE: [
            Option(
                "bins",
                help="Learn a step function of each feature, with so many steps; 32 is a good "
                "choice.",
                default=False,
            ),
            "strategy",
            "line",
            "roughness",
            Option("categorical", metavar="FEATURES"),
            Option("increasing", metavar="FEATURES"),
            Option("decreasing", metavar="FEATURES"),
            Option("interactions", metavar="NUMBER"),
        ],
    },
)


@command
def fit(
    *,
    train: Annotated[Path, options.argument("TRAIN", options.DATA)],
    output: options.Output = Path("model.didyma.safetensors"),
    dev: Annotated[
        list[Path] | None,
        options.file(
            "Held-out queries, to choose C by and to watch. Given again: others, which are judged "
            "and choose nothing."
        ),
    ] = None,
    measure: Annotated[
        str | None, options.text("NAME", "Measure on --dev.", default="that of the loss")
    ] = None,
    model_type: Annotated[
        Literal["svm", "classification", "polynomial", "ridge", "latent-perceptron", "latent-svm"]
        | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Estimator that learns.",
            show_default="svm; where labels are grades, ridge contends in a choice of C",
        ),
    ] = None,
    C: Annotated[
        str | None,
        options.text(
            "VALUES",
            "Weight of the loss; of several values, as 1,10,100, the best on --dev is kept.",
            "--C",
            default="100, 300 with the ramp bound; 1 for classification and latent-perceptron; "
            "10 for ridge; "
            "cross-validated with --bins",
            panel=MODEL,
        ),
    ] = None,
    parameters: Annotated[dict[str, Any], RANKER],
    scale: Annotated[
        Literal[
            "none", "standard", "max-abs", "query-minmax", "query-standard", "query-percentile"
        ],
        typer.Option(rich_help_panel=MODEL, help="Scale features first."),
    ] = "none",
    missing: Annotated[
        bool,
        options.flag("--missing", "NULL, NaN and blank fields are missing values.", ADDITIVE),
    ] = False,
    dask: Annotated[
        str | None,
        options.text(
            "ADDRESS",
            "Learn on the workers of this Dask scheduler. They read TRAIN: a folder whose files "
            "are shards, or a .lists folder.",
        ),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    columns: InputColumns,
    checkpointing: Checkpointing,
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

    didyma fit train.txt --dev dev.txt --bins 32 --interactions auto

    didyma fit shards/ --dask tcp://10.0.0.1:8786 --dev dev.txt --C 1,10,100
    """
    devs = dev or []
    Cs = [] if C is None else options.read_Cs(C, devs)
    if "patience" in parameters and not devs:
        raise typer.BadParameter("needs --dev", param_hint="--patience")
    ranker_type: str = model_type or "svm"
    if ranker_type == "svm" and "bins" in parameters:
        ranker_type = WITH_BINS
    _check_parameters(ranker_type, parameters, missing)
    parameters = RANKER.read(ranker_type, parameters)
    check_output(output, train, *devs, columns.group)
    if "random_state" in parameters_of(RANKERS[ranker_type]):
        parameters["random_state"] = seed
    if "measure" in parameters_of(RANKERS[ranker_type]):
        parameters["measure"] = measure
    with options.refused("--loss"):
        usual = str(_ranker(ranker_type, parameters).judged_by())
    measure = options.read_measure(measure or usual) if measure or devs else usual
    if "feature_map" in parameters:
        from didyma.ranking.feature_maps import parse_feature_map

        with options.refused("--feature-map"):
            parse_feature_map(parameters["feature_map"])

    from didyma.model import Model

    began = time.perf_counter()
    if dask is not None:
        refused = {
            "--model-type": model_type in ("classification", "polynomial", "ridge"),
            "--scale": scale != "none",
            "--patience": "patience" in parameters,
            "--dev, given again,": len(devs) > 1,
            "--label, --qid, --docid, --group, --missing": columns != InputColumns() or missing,
        }
        for option, is_given in refused.items():
            if is_given:
                raise typer.BadParameter("is not for --dask", param_hint=option)
        ranker = _ranker(ranker_type, parameters)
        first = devs[0] if devs else None
        results, held_out = _learn_on_cluster(dask, ranker, train, first, Cs, measure)
        best, summary = _judged(results, {"file": str(train)}, dict(zip(devs, held_out)), measure)
        model = Model.of(best.ranker, summary)
        model.write(output)
    else:
        from didyma.ranking.scaling import scaled, scaler_of

        mapped = [str(path) for path in (train, *devs) if path.is_dir()]
        if mapped:  # the system ends a process whose mapped file is cut short
            from didyma._core.signals import end_on_bus_error

            problem = "cut short, or no longer readable, while it was learned from"
            end_on_bus_error(f"error: {', '.join(mapped)}: {problem}\n")
        data = _read(train, columns, missing, categorical=parameters.get("categorical", ()))
        if data.categories is not None and scale != "none":
            problem = "is not for categories that are texts; bins need no scaling"
            raise typer.BadParameter(problem, param_hint="--scale")
        held_out = [_read(path, replace(columns, group=None), missing, data) for path in devs]
        features, scaler = data.features, scaler_of(data, scale)
        if scaler is not None:
            folder = output.resolve().parent
            data = scaled(scaler, data, folder)
            held_out = [scaled(scaler, lists, folder) for lists in held_out]
        judge = None
        if devs:
            from didyma.learning.selection import HeldOut

            chooses = len(Cs) > 1 or "patience" in parameters or ranker_type == BY_EPOCH
            with placed(devs[0]):
                judge = HeldOut(held_out[0], measure, chooses=chooses)
        with checkpointing.saving(output, TRAIN=data, dev=held_out):
            for name in ("categorical", "increasing", "decreasing"):
                if name in parameters:
                    parameters[name] = data.features.places(parameters[name], flag_of(name))
            ranker = _ranker(ranker_type, parameters)
            is_choice = model_type is None and ranker_type == "svm" and len(Cs) > 1
            contender = _contender(data) if is_choice else None
            results = _learn(ranker, data, held_out, Cs, judge, contender)
            watched = dict(zip(devs, held_out))
            best, summary = _judged(results, _counts(train, data), watched, measure)
            features.remember(best.ranker)
            model = Model.of(best.ranker, summary)
            model = model if scaler is None else model.behind(scaler)
            model.write(output)
    if as_json:
        summary |= {"class": model.name, "seconds": best.seconds}
        summary["wall_seconds"] = time.perf_counter() - began
        print_json({"model": str(output), **best.summary(), **summary})
    else:
        _print_summary(model.name, best, results.candidates, summary, measure, output)
    end_if_interrupted(results.interrupted, "model")


def _check_parameters(ranker_type: str, parameters: dict[str, Any], missing: bool) -> None:
    """Refuse options that this estimator does not have."""
    for name in parameters:
        takers = RANKER.takers(name)
        if ranker_type in takers:
            continue
        if ranker_type == "svm" and WITH_BINS in takers:
            raise typer.BadParameter("needs --bins", param_hint=flag_of(name))
        types = ", ".join(dict.fromkeys(taker.partition(",")[0] for taker in takers))
        raise typer.BadParameter(f"{flag_of(name)} is for --model-type {types} only")
    if missing and ranker_type != WITH_BINS:
        raise typer.BadParameter("needs --bins", param_hint="--missing")


def _ranker(ranker_type: str, parameters: dict[str, Any]) -> Any:
    module, _, name = RANKERS[ranker_type].rpartition(".")
    return getattr(import_module(module), name)(**parameters)


def _contender(lists: Lists) -> Any:
    """A ridge on the labels where they are grades, and columns not too many: it is often level."""
    import numpy as np

    from didyma.ranking.ridge import MOST_FEATURES, RidgeRanker

    is_graded = len(np.unique(lists.y)) > 2
    return RidgeRanker() if is_graded and lists.X.shape[1] <= MOST_FEATURES else None


def _learn(
    ranker: Any,
    lists: Lists,
    dev: list[Lists],
    Cs: list[float],
    held_out: HeldOut | None,
    contender: Any = None,
) -> ModelSelection:
    """The ranker fitted for each C: an SVM along a path, others each on its own.

    What is held out decides, the first of the dev sets; the contender, with its own values of C,
    takes part.
    """
    from didyma.learning.selection import fits, select_model

    usual = Cs or _usual_C(ranker)
    if not hasattr(ranker, "callback"):
        with waiting("training"):
            return select_model(fits(ranker, lists, usual), held_out)
    tol = None
    if hasattr(ranker, "path"):
        from didyma.ranking.losses import parse_loss
        from didyma.ranking.ramp import bound_of

        in_rounds = bound_of(ranker.bound, parse_loss(ranker.loss)) == "ramp"
        tol = None if in_rounds else ranker.tol
    with reporting(usual, tol, _watch(ranker, held_out)) as ranker.callback:
        if not hasattr(ranker, "path"):
            return select_model(fits(ranker, lists, usual, dev or None), held_out)
        watched = None if ranker.patience is None else dev
        rankers = ranker.path(lists, None, Cs or None, eval_set=watched)
        contenders = () if contender is None else fits(contender, lists, RIDGE_CS)
        return select_model(chain(rankers, contenders), held_out)


def _usual_C(ranker: Any) -> list[float]:
    return [ranker.weight() if hasattr(ranker, "weight") else ranker.C]


def _learn_on_cluster(
    address: str, ranker: Any, train: Path, dev: Path | None, Cs: list[float], measure: str
) -> tuple[ModelSelection, list[Lists]]:
    """The ranker fitted for each C where the shards are, and the dev rows that judge it.

    Dev rows are read like the data of the first fitted ranker.
    """
    from didyma.cluster.shards import Shards
    from didyma.learning.selection import HeldOut, select_model
    from didyma.protocol import clone

    held_out: list[HeldOut] = []

    def judge(fitted: Any) -> float:
        if not held_out:
            assert dev is not None
            rows = read_data(dev, InputColumns(), like=fitted)
            with placed(dev):
                held_out.append(HeldOut(rows, measure, chooses=len(Cs) > 1))
        return held_out[0](fitted)

    Cs = Cs or _usual_C(ranker)
    progress = reporting(Cs, getattr(ranker, "tol", None), None)
    with _connected(address), progress as ranker.callback:
        if hasattr(ranker, "path"):
            rankers = ranker.path(Shards(train), None, Cs)
        else:
            rankers = (clone(ranker).set_params(C=C).fit(Shards(train)) for C in Cs)
        results = select_model(rankers, None if dev is None else judge)
    return results, [dev_set.lists for dev_set in held_out]


@contextmanager
def _connected(address: str) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--dask", "dask") from None
    try:
        client = Client(address, timeout=SCHEDULER_TIMEOUT)
    except (OSError, TimeoutError, ValueError):
        raise DataError(f"no Dask scheduler answers at {address!r}", field="--dask") from None
    with client:
        yield


def _watch(ranker: Any, held_out: HeldOut | None) -> DevMeasure | None:
    """Name of the measure, and its value for weights: of features, or of their bins."""
    from didyma.learning.scoring import linear_scores

    if held_out is None:
        return None
    X = held_out.lists.X
    rows = cache(lambda: ranker._design_rows(X) if hasattr(ranker, "bins") else X)
    return str(held_out.measure), lambda w: held_out.value(linear_scores(rows(), w))


def _judged(
    results: ModelSelection,
    train: dict[str, Any],
    devs: dict[Path, Lists],
    measure: str,
) -> tuple[Candidate, dict[str, Any]]:
    """The best of all, and what a model file keeps of how it was found."""
    if not results.candidates:
        print_message("interrupted before there was anything to keep")
        raise typer.Exit(exit_code())
    best = results.best
    summary: dict[str, Any] = {
        "train": train,
        "dev": None,
        "candidates": [
            {"class": type(candidate.ranker).__name__, **candidate.summary()}
            for candidate in results.candidates
        ],
    }
    from didyma.learning.selection import HeldOut

    for path, held_out in devs.items():
        judged = {**_counts(path, held_out), "measure": measure}
        if summary["dev"] is None:
            summary["dev"] = {**judged, "value": best.value}
        else:
            value = HeldOut(held_out, measure, chooses=False)(best.ranker)
            summary.setdefault("also", []).append({**judged, "value": value})
    return best, summary


def _read(
    path: Path,
    columns: InputColumns,
    missing: bool,
    like: Lists | None = None,
    categorical: Sequence[str] = (),
) -> Lists:
    with waiting(f"reading {path}"):
        data = read_data(path, columns, like=like, missing=missing, categorical=categorical)
    n_features = data.X.shape[1]
    print_message(f"{path}: {len(data)} rows, {len(data.groups)} queries, {n_features} features")
    return data


def _counts(path: Path, data: Lists) -> dict[str, Any]:
    return {
        "file": str(path),
        "rows": len(data),
        "queries": len(data.groups),
        "features": data.X.shape[1],
    }


def _print_summary(
    name: str,
    best: Candidate,
    candidates: list[Candidate],
    training: dict[str, Any],
    measure: str,
    output: Path,
) -> None:
    if len(candidates) > 1:
        rows = [["C", f"dev {measure}", "objective", "iterations"]]
        kinds = {type(candidate.ranker).__name__ for candidate in candidates}
        for candidate in candidates:
            result, mark = candidate.ranker.result_, " *" if candidate is best else ""
            objective = [f"{result.value:.6g}", str(result.n_iter)]
            kind = f"{type(candidate.ranker).__name__} " if len(kinds) > 1 else ""
            label = f"{kind}{candidate.ranker.C:g}{mark}"
            rows.append([label, decimal(candidate.value), *objective])
        typer.echo(aligned(rows) + "\n")
    ranker, summary = best.ranker, best.summary()
    loss = f", loss {ranker.loss or 'none'}" if hasattr(ranker, "loss") else ""
    lines = {
        "model": f"{name}{loss}, C {ranker.C:g}",
        "mean loss" if "best_epoch" in summary else "objective": f"{summary['objective']:.6g}",
    }
    if "relative_gap" in summary:
        lines["relative gap"] = f"{summary['relative_gap']:.1e} ({summary['status']})"
    if "grades" in summary:
        lines["grades"] = summary["grades"]
    if summary.get("bound") == "ramp":
        lines["bound"] = f"ramp, {summary['rounds']} rounds from the optimum of {summary['start']}"
    if "best_epoch" in summary:
        lines["best epoch"] = f"{summary['best_epoch']} of {summary['n_iter']}"
    if "passes" in summary:
        lines["passes"] = f"{summary['passes']:.1f} in {best.seconds:.2f} s"
    if best.value is not None:
        lines[f"dev {measure}"] = decimal(best.value)
    for other in training.get("also", ()):
        lines[f"{other['file']} {measure}"] = decimal(other["value"])
    lines["saved to"] = str(output)
    typer.echo(listed(lines))
