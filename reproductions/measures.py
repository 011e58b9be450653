"""Training for the measure that is reported, against training for another one.

    python -m reproductions.measures                  everything
    python -m reproductions.measures --part mq2008    or demo; or trees, of LightGBM and XGBoost
    python -m reproductions.measures --write          put the tables into docs/RESULTS.md

For each of seven measures: a ranker trained for it (``bound="auto"``), and rankers trained for
average precision, ROC area and NDCG without cut-off. Whatever there is to choose (C, the feature
map, the number of rounds) is chosen by the measure on validation queries, for each ranker alike.
Collections: LETOR's MQ2008 in its own five folds, and the data of ``didyma demo``, whose topics
are dealt into five parts that take turns in the same way.

Part "trees" asks the same of boosted trees: `didyma.objective` of the measure's loss, of average
precision and of NDCG, and the libraries' own objectives, on MQ2008 and OHSUMED. Leaves, learning
rate and number of trees are chosen by the measure on validation queries, for each one alike. It
needs both libraries (extra ``dev``).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from didyma.applications.demo.corpus import language_reference, retrieve
from didyma.data.lists import Lists
from didyma.errors import NothingLearnedWarning
from didyma.metrics import Evaluator, t_test, wilcoxon, wins_losses
from didyma.ranking.objective import objective
from didyma.ranking.scaling import QueryMinMaxScaler, QueryStandardScaler
from didyma.ranking.svm import SVMRanker
from didyma.report.table import markdown
from didyma.text.features import SmallFeatures, TextFeatures
from reproductions import study
from reproductions.folds import N_PARTS, Fold, in_turn, read_parts

CS = tuple(10.0**n for n in range(6))
OTHERS = ("ap", "roc", "ndcg")
PATIENCE = 1000  # no round is skipped: of all, the best in validation is kept


@dataclass(frozen=True)
class Target:
    """A measure, the loss that trains for it, and the feature maps to choose from."""

    measure: str
    loss: str
    maps: tuple[str, ...] = ("pairwise",)


TARGETS = {
    **{
        f"P@{k}": Target(f"P@{k}", f"precision@{k}", ("pairwise", f"top@{k}"))
        for k in (1, 3, 5, 10)
    },
    **{f"nDCG@{k}": Target(f"nDCG(dcg='exp-log2')@{k}", f"ndcg@{k}") for k in (5, 10)},
    "RR": Target("RR", "rr"),
}

Vector = NDArray[np.float64]


def paths(
    fold: Fold[Lists], loss: str, maps: Sequence[str], measure: str, Cs: Sequence[float]
) -> Vector:
    """Test values of the ranker that is best in validation; of equals, the first."""
    best, chosen = -np.inf, None
    for feature_map in maps:
        ranker = SVMRanker(
            loss, feature_map=feature_map, measure=measure, patience=PATIENCE, n_jobs=1
        )
        for fitted in ranker.path(
            *(fold.train.X, fold.train.y, Cs),
            qid=fold.train.qid,
            eval_set=(fold.validation.X, fold.validation.y),
            eval_qid=fold.validation.qid,
        ):
            value = judge(fold.validation, measure, fitted.predict(fold.validation.X)).mean()
            if value > best:
                best, chosen = value, fitted
    assert chosen is not None
    return judge(fold.test, measure, chosen.predict(fold.test.X))


def judge(data: Lists, measure: str, scores: Vector) -> Vector:
    """The measure of each query, ranked by scores."""
    evaluator = Evaluator(data.y, data.groups, measure, docid=data.docid)
    return evaluator(scores)[evaluator.measures[0]]


def read_mq2008(data: Path) -> list[Fold[Lists]]:
    """The five folds of the collection."""
    return in_turn(read_parts(data / "mq2008"))


def read_demo(data: Path) -> list[Fold[Lists]]:
    """Topics of the demonstration, dealt out at random."""
    lists = retrieve(language_reference()).lists
    features = TextFeatures([SmallFeatures()]).fit(lists)
    X = QueryStandardScaler().fit_transform(features.transform(lists), qid=lists.qid)
    candidates = lists.with_items(X, features.names)
    places = np.random.default_rng(0).permutation(len(candidates.groups)) % N_PARTS
    return in_turn(
        [candidates.select(places[candidates.groups.codes] == n) for n in range(N_PARTS)]
    )


COLLECTIONS = {"mq2008": read_mq2008, "demo": read_demo}


def run(folds: Sequence[Fold[Lists]], names: Sequence[str], Cs: Sequence[float]) -> Any:
    """Every measure on every fold: means, and tests against the best of the other rankers."""
    begun = time.monotonic()
    found: dict[str, Any] = {}
    for name in names:
        target = TARGETS[name]
        values: dict[str, list[Vector]] = {}
        for fold in folds:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", ".*queries have rows of one class only")
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", NothingLearnedWarning)  # validation will tell
                own = paths(fold, target.loss, target.maps, target.measure, Cs)
                values.setdefault("own", []).append(own)
                for loss in OTHERS:
                    other = paths(fold, loss, ("pairwise",), target.measure, Cs)
                    values.setdefault(loss, []).append(other)
        found[name] = compare(values, OTHERS)
        study.say(f"{name}: {found[name]['means']}")
    queries = int(sum(len(fold.test.groups) for fold in folds))
    return {"measures": found, "queries": queries, "seconds": time.monotonic() - begun}


def compare(values: Mapping[str, Sequence[Vector]], others: Sequence[str]) -> dict[str, Any]:
    """The measure's own ranker against that of the others with the best test mean."""
    joined = {name: np.concatenate(folds) for name, folds in values.items()}
    best = max(others, key=lambda name: joined[name].mean())
    difference = joined["own"] - joined[best]
    error = float(difference.std(ddof=1) / np.sqrt(len(difference)))
    wins, losses, _ = wins_losses(joined["own"], joined[best])
    return {
        "means": {name: round(float(each.mean()), 4) for name, each in joined.items()},
        "best": best,
        "difference": float(difference.mean()),
        "error": error,
        "within": bool(difference.mean() >= -error),
        "wins": wins,
        "losses": losses,
        "wilcoxon": wilcoxon(joined["own"], joined[best]),
        "t": t_test(joined["own"], joined[best]),
    }


# --- Trees ----------------------------------------------------------------------------------------

# Losses of `didyma.objective`, and the name of the library's own objective for each measure.
TREE_TARGETS = {
    "AP": Target("AP", "ap"),
    "P@5": TARGETS["P@5"],
    "nDCG@10": TARGETS["nDCG@10"],
    "RR": TARGETS["RR"],
}
TREE_OTHERS = ("ap", "ndcg")
PEERS = {"LightGBM": ("lambdarank",), "XGBoost": ("rank:ndcg", "rank:map")}
TREES = (25, 50, 100, 200)
SHAPES = [{"leaves": leaves, "rate": rate} for leaves in (4, 15) for rate in (0.05, 0.1)]

Predictions = list[tuple[Vector, Vector]]  # of validation and test rows, by number of trees


def lightgbm_trees(fold: Fold[Lists], loss: str, leaves: int, rate: float) -> Predictions:
    """Scores after each number of trees."""
    import lightgbm

    train = fold.train
    settings = {
        "num_leaves": leaves,
        "learning_rate": rate,
        "verbose": -1,
        "num_threads": 1,
        "objective": loss if loss in PEERS["LightGBM"] else objective(loss),
    }
    rows = train.groups.rows
    data = lightgbm.Dataset(train.X[rows], train.y[rows], group=train.groups.sizes)
    model = lightgbm.train(settings, data, max(TREES))
    return [
        tuple(model.predict(part.X, num_iteration=n) for part in (fold.validation, fold.test))
        for n in TREES
    ]


def xgboost_trees(fold: Fold[Lists], loss: str, leaves: int, rate: float) -> Predictions:
    """Scores after each number of trees."""
    import xgboost

    train, rows = fold.train, fold.train.groups.rows
    is_peer = loss in PEERS["XGBoost"]
    y = (train.y >= 1).astype(float) if loss == "rank:map" else train.y  # it has no grades
    data = xgboost.DMatrix(train.X[rows], y[rows])
    data.set_group(train.groups.sizes)
    settings = {
        "max_leaves": leaves,
        "max_depth": 0,
        "grow_policy": "lossguide",
        "eta": rate,
        "nthread": 1,
        "tree_method": "hist",
        "verbosity": 0,
        **({"objective": loss} if is_peer else {"base_score": 0.0}),
    }
    model = xgboost.train(settings, data, max(TREES), obj=None if is_peer else objective(loss))
    others = [xgboost.DMatrix(part.X) for part in (fold.validation, fold.test)]
    return [
        tuple(
            model.predict(part, iteration_range=(0, n), output_margin=True).astype(np.float64)
            for part in others
        )
        for n in TREES
    ]


BOOSTERS: Mapping[str, Callable[..., Predictions]] = {
    "LightGBM": lightgbm_trees,
    "XGBoost": xgboost_trees,
}


def run_trees(folds: Sequence[Fold[Lists]], library: str, shapes: Sequence[Any]) -> dict[str, Any]:
    """Every measure on every fold, of the trees that are best in validation."""
    losses = [*dict.fromkeys([*TREE_OTHERS, *(t.loss for t in TREE_TARGETS.values())])]
    losses += PEERS[library]
    values: dict[str, dict[str, list[Vector]]] = {name: {} for name in TREE_TARGETS}
    for number, fold in enumerate(folds):
        for loss in losses:
            predicted = [p for shape in shapes for p in BOOSTERS[library](fold, loss, **shape)]
            for name, target in TREE_TARGETS.items():
                if loss not in (target.loss, *TREE_OTHERS, *PEERS[library]):
                    continue
                worth = [judge(fold.validation, target.measure, v).mean() for v, _ in predicted]
                chosen = judge(fold.test, target.measure, predicted[int(np.argmax(worth))][1])
                keys = {loss} & {*TREE_OTHERS, *PEERS[library]}
                for key in keys | ({"own"} if loss == target.loss else set()):
                    values[name].setdefault(key, []).append(chosen)
        study.say(f"{library}, fold {number + 1}")
    queries = int(sum(len(fold.test.groups) for fold in folds))
    found = {name: compare(each, PEERS[library]) for name, each in values.items()}
    return {"measures": found, "queries": queries}


def read_ohsumed(data: Path) -> list[Fold[Lists]]:
    """The five folds of OHSUMED, whose features we scale within queries."""
    parts = read_parts(data / "ohsumed")
    rows = [QueryMinMaxScaler().fit_transform(part.X, qid=part.qid) for part in parts]
    return in_turn([part.with_items(X) for part, X in zip(parts, rows)])


TREE_COLLECTIONS = {"MQ2008": read_mq2008, "OHSUMED": read_ohsumed}


def trees(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Tables and figures of both libraries on both collections."""
    n_folds, shapes = (1, SHAPES[:1]) if options.quick else (None, SHAPES)
    results, tables = {}, []
    for title, read in TREE_COLLECTIONS.items():
        folds = read(options.data)[:n_folds]
        for library, peers in PEERS.items():
            found = run_trees(folds, library, shapes)
            results[f"{title}, {library}"] = found
            tables.append(table(f"{title}, {library}", found, (*TREE_OTHERS, *peers), peers))
    return "\n\n".join(tables), results


# --- Tables ---------------------------------------------------------------------------------------

TITLES = {"mq2008": "MQ2008", "demo": "The demonstration's data"}


def table(
    title: str, found: Mapping[str, Any], columns: Sequence[str], others: Sequence[str]
) -> str:
    """One line for each measure; the difference is to the best of the others."""
    header = [
        "",
        "own loss",
        *columns,
        "difference to the best" if len(others) > 1 else f"difference to {others[0]}",
        "±",
        "W/L",
        "p (t)",
        "p (Wilcoxon)",
    ]
    body = []
    for name, row in found["measures"].items():
        figures = [f"{row['means'][key]:.3f}".removeprefix("0") for key in ("own", *columns)]
        body.append(
            [
                name,
                *figures,
                f"{row['difference']:+.4f}" + (f" ({row['best']})" if len(others) > 1 else ""),
                f"{row['error']:.4f}",
                f"{row['wins']}/{row['losses']}",
                f"{row['t']:.2g}",
                f"{row['wilcoxon']:.2g}",
            ]
        )
    met = [name for name, row in found["measures"].items() if row["within"]]
    count = f"{len(met)} of {len(found['measures'])}"
    return (
        f"**{title}**, {found['queries']} test queries; own loss within one standard error of the "
        f"best of {', '.join(others)}, or above it, for {count} measures.\n\n"
        f"{markdown(header, body)}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, "quick", "json", parts=(*COLLECTIONS, "trees"))
    parser.add_argument("--measures", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts, print their tables, and write what was asked for."""
    Cs, n_folds = (CS[1:3], 1) if options.quick else (CS, None)
    results, sections = {}, {}
    for part in options.parts:
        if part == "trees":
            sections["measures_trees"], results[part] = trees(options)
        else:
            results[part] = run(COLLECTIONS[part](options.data)[:n_folds], options.measures, Cs)
            sections[f"measures_{part}"] = table(TITLES[part], results[part], OTHERS, OTHERS)
    study.publish(options, sections, results)


if __name__ == "__main__":
    raise SystemExit(main())
