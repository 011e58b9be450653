"""Additive rankers beside linear ones, Ridge on the grades, stumps and trees.

    python -m reproductions.additive                    everything
    python -m reproductions.additive --part judged      MQ2008, OHSUMED and LightGBM's example
    python -m reproductions.additive --part synthetic   grades; signal in pairs
    python -m reproductions.additive --part variants    bins, lines and pairs, on training queries
    python -m reproductions.additive --write            put the tables into docs/RESULTS.md

Ours have no settings: they cross-validate on the training queries. All others have some, and what
is best on the validation queries is tested once. LightGBM lives in the environment of the
benchmarks' peers, or in that of ``--python``; it is left out if it cannot be installed. Queries
whose rows are all relevant, or none, are not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.peers import environment
from numpy.typing import NDArray

from benchmarks import synthetic
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.metrics import Evaluator, wilcoxon
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler
from didyma.ranking.svm import SVMRanker
from didyma.report.table import markdown
from reproductions import study
from reproductions.folds import N_PARTS, Fold, in_turn, read_parts

WORKER = Path(__file__).with_name("additive_worker.py")
TREES = (30, 60, 120, 200)

LINEAR, OURS, ALONE = "SVMRanker", "AdditiveSVMRanker()", "AdditiveSVMRanker(interactions=0)"
BOOSTERS = {
    "LightGBM, stumps": [{"num_leaves": 2, "learning_rate": rate} for rate in (0.1, 0.2)],
    "LightGBM, trees": [
        {"num_leaves": leaves, "learning_rate": rate}
        for leaves, rate in product((4, 15), (0.05, 0.1))
    ],
}
SCALERS = {"min-max": QueryMinMaxScaler, "percentile": QueryPercentileScaler}  # within queries
GRADED = "ndcg", "nDCG@10"
CS, ALPHAS = [10.0**k for k in range(4)], [10.0**k for k in range(-2, 5)]

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Split(Fold[Lists]):
    """A fold of a collection, the loss that is learned and the measure that is reported."""

    name: str
    loss: str = "ap"
    measure: str = "AP"


@dataclass(frozen=True, eq=False)
class Outcome:
    """The measure of each test query, the setting that was chosen, and seconds of its fit."""

    values: Vector
    setting: dict[str, Any]
    seconds: float


def measured(split: Split, data: Lists, scores: Vector) -> Vector:
    """The measure of each query that has relevant rows and others."""
    evaluator = Evaluator(data.y, data.groups, split.measure, docid=data.docid)
    return evaluator(scores)[evaluator.measures[0]][data.mixed]


def chosen(split: Split, found: Sequence[tuple[dict[str, Any], float, Vector, Vector]]) -> Outcome:
    """Of (setting, seconds, validation scores, test scores), the best on validation queries."""
    best = max(found, key=lambda each: measured(split, split.validation, each[2]).mean())
    return Outcome(measured(split, split.test, best[3]), best[0], best[1])


def ours(split: Split, **parameters: Any) -> Outcome:
    """An additive ranker, which chooses by itself."""
    start = time.perf_counter()
    ranker = AdditiveSVMRanker(split.loss, n_jobs=1, **parameters).fit(split.train)
    seconds = time.perf_counter() - start
    setting = {"line": ranker.line_, "C": ranker.C_, "pairs": len(ranker.pairs_)}
    values = measured(split, split.test, ranker.predict(split.test.X))
    return Outcome(values, setting, seconds)


def linear(split: Split) -> Outcome:
    """A linear ranker for each C, over features scaled within queries in two ways."""
    found = []
    for name, (train, *others) in scaled(split).items():
        path = SVMRanker(split.loss, n_jobs=1).path(train, split.train.y, CS, qid=split.train.qid)
        for each in path:
            setting = {"scale": name, "C": each.C}
            found.append((setting, each.result_.seconds["total"], *map(each.predict, others)))
    return chosen(split, found)


def ridge(split: Split) -> Outcome:
    """Least squares on the grades, for each penalty, over the same features."""
    from sklearn.linear_model import Ridge

    found = []
    for (name, (train, *others)), alpha in product(scaled(split).items(), ALPHAS):
        start = time.perf_counter()
        model = Ridge(alpha=alpha).fit(train, split.train.y)
        seconds = time.perf_counter() - start
        found.append(({"scale": name, "alpha": alpha}, seconds, *map(model.predict, others)))
    return chosen(split, found)


def scaled(split: Split) -> dict[str, list[Any]]:
    """Rows to train on, to choose by and to test on, by the name of a scaling within queries."""
    parts = (split.train, split.validation, split.test)
    return {
        name: [scaler().fit_transform(data.X, qid=data.qid) for data in parts]
        for name, scaler in SCALERS.items()
    }


def boosted(split: Split, settings: Sequence[Mapping[str, Any]], python: Path) -> Outcome:
    """LightGBM for each setting, at each number of trees."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("train", "validation", "test"):
            data: Lists = getattr(split, part)
            order = data.groups.rows
            for name, values in (
                ("X", data.X[order]),
                ("y", data.y[order]),
                ("group", data.groups.sizes),
            ):
                np.save(Path(folder, f"{part}_{name}.npy"), values)
        wanted = {"settings": list(settings), "trees": TREES, "threads": 1}
        Path(folder, "settings.json").write_text(json.dumps(wanted))
        command = [str(python), str(WORKER), folder]
        child = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = json.loads(child.stdout.splitlines()[-1])
        scores = dict(np.load(Path(folder, "scores.npz")))
    found = []
    for k, setting in enumerate(settings):
        for n, trees in enumerate(TREES):
            own = []
            for part in ("validation", "test"):
                values = np.empty(len(getattr(split, part)))
                values[getattr(split, part).groups.rows] = scores[f"{part}_{k}"][n]
                own.append(values)
            found.append(({**setting, "trees": trees}, seconds[k], *own))
    return chosen(split, found)


# --- Data -----------------------------------------------------------------------------------------


def splits(parts: Sequence[Lists], name: str, *judged: str) -> list[Split]:
    """The folds of parts that take turns."""
    return [Split(fold.train, fold.validation, fold.test, name, *judged) for fold in in_turn(parts)]


def mq2008(folder: Path) -> list[Split]:
    """MQ2008, whose features are scaled within queries."""
    return splits(read_parts(folder), "MQ2008")


def ohsumed(folder: Path) -> list[Split]:
    """OHSUMED, whose features we scale within queries, and whose grades count."""
    parts = read_parts(folder)
    rows = [QueryMinMaxScaler().fit_transform(part.X, qid=part.qid) for part in parts]
    return splits([part.with_items(X) for part, X in zip(parts, rows)], "OHSUMED", *GRADED)


def lightgbm_example(folder: Path) -> list[Split]:
    """Its own test queries; of the others, every fifth is for choosing, five times."""
    train = letor.read(folder / "rank.train", sparse=False)
    test = letor.read(folder / "rank.test", sparse=False, n_features=train.X.shape[1])
    fold = np.random.default_rng(0).permutation(len(train.groups)) % N_PARTS
    return [
        Split(
            train.select(fold[train.groups.codes] != k),
            train.select(fold[train.groups.codes] == k),
            test,
            "LightGBM's example",
            *GRADED,
        )
        for k in range(N_PARTS)
    ]


def interacting(share: float, queries: int) -> list[Split]:
    """Features alone and products of twelve pairs share the variance of the hidden score."""
    sizes = (queries, max(10, queries // 4), max(10, queries // 2))
    name = f"{share:.0%} of the signal in pairs"
    parts = (synthetic.interacting(n, share, seed=seed) for seed, n in enumerate(sizes))
    return [Split(*parts, name)]


def graded() -> list[Split]:
    """Few queries, many features; five draws."""
    return [
        Split(
            *(synthetic.correlated(n, seed=3 * k + i) for i, n in enumerate((52, 17, 86))),
            "five grades, 136 features",
            *GRADED,
        )
        for k in range(N_PARTS)
    ]


# --- Comparisons ----------------------------------------------------------------------------------


def compare(splits: Sequence[Split], python: Path | None) -> dict[str, list[Outcome]]:
    """Outcomes of every ranker, split by split."""
    found: dict[str, list[Outcome]] = {}
    for split in splits:
        study.say(split.name)
        outcomes = {
            LINEAR: linear(split),
            OURS: ours(split),
            ALONE: ours(split, interactions=0),
            "Ridge on the grades": ridge(split),
        }
        if python is not None:
            for name, settings in BOOSTERS.items():
                outcomes[name] = boosted(split, settings, python)
        for name, outcome in outcomes.items():
            found.setdefault(name, []).append(outcome)
    return found


def table(collections: Mapping[str, tuple[str, Mapping[str, list[Outcome]]]]) -> str:
    """Each ranker's measure, what ours is above it with its standard error, and Wilcoxon's p."""
    rows = []
    for collection, (measure, found) in collections.items():
        values = {name: np.concatenate([o.values for o in each]) for name, each in found.items()}
        for name, own in values.items():
            seconds = f"{np.mean([outcome.seconds for outcome in found[name]]):.2g}"
            above, error, p = difference(values[OURS], own)
            shown = ["", "", ""] if name == OURS else [f"{above:+.4f}", f"{error:.4f}", f"{p:.2f}"]
            rows.append([f"{collection}, {measure}", name, f"{own.mean():.4f}", *shown, seconds])
        best = max((name for name in values if name != ALONE), key=lambda name: values[name].mean())
        for text, one, other in (
            ("ours not below the linear ranker", OURS, LINEAR),
            ("pairs not below no pairs", OURS, ALONE),
            (f"ours level with the best ({best})", OURS, best),
        ):
            above, error, _ = difference(values[one], values[other])
            verdict = "met" if above >= -error else "missed"
            rows.append([collection, text, verdict, f"{above:+.4f}", f"{error:.4f}", "", ""])
    head = ["collection", "ranker", "measure", "ours less it", "its error", "p", "seconds of a fit"]
    return markdown(head, rows)


# --- What the parameters do -----------------------------------------------------------------------

USUAL = {"C": 4.0, "line": "quantile", "bins": 32, "interactions": 0}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "lines over quantiles, 32 bins": {},
    "lines over normal variables": {"line": "normal"},
    "lines without steps": {"roughness": 0.0},
    **{f"{bins} bins": {"bins": bins} for bins in (4, 8, 16, 64)},
    **{f"{pairs} pairs": {"interactions": pairs} for pairs in (4, 16)},
}


def held_out(split: Split, parameters: Mapping[str, Any], n_folds: int = 3) -> Vector:
    """The measure of each training query, by a ranker that has not seen it."""
    data = split.train
    fold = np.random.default_rng(0).permutation(len(data.groups)) % n_folds
    values = []
    for k in range(n_folds):
        seen, unseen = (data.select(of[data.groups.codes]) for of in (fold != k, fold == k))
        ranker = AdditiveSVMRanker(split.loss, n_jobs=1, **{**USUAL, **parameters}).fit(seen)
        values.append(measured(split, unseen, ranker.predict(unseen.X)))
    return np.concatenate(values)


def variants(splits: Sequence[Split]) -> str:
    """The mean of each variant on the training queries of each collection."""
    columns = {f"{split.name}, {split.measure}": split for split in splits}
    rows = []
    for name, parameters in VARIANTS.items():
        means = [held_out(split, parameters).mean() for split in columns.values()]
        rows.append([name, *(f"{mean:.3f}".removeprefix("0") for mean in means)])
        study.say(name)
    return markdown(["", *columns], rows)


def difference(one: Vector, other: Vector) -> tuple[float, float, float]:
    """The mean paired difference, its standard error, and Wilcoxon's p."""
    paired = one - other
    error = float(paired.std(ddof=1) / np.sqrt(len(paired)))
    return float(paired.mean()), error, wilcoxon(one, other) if paired.any() else 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, parts=("judged", "synthetic", "variants"))
    parser.add_argument("--python", type=Path, help="of an environment with LightGBM")
    parser.add_argument("--queries", type=int, default=200, help="of data with pairs")
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts that were asked for."""
    warnings.filterwarnings("ignore", ".*queries have rows of one class only")
    data = options.data
    read: dict[str, Callable[[], list[list[Split]]]] = {
        "judged": lambda: [
            mq2008(data / "mq2008"),
            ohsumed(data / "ohsumed"),
            lightgbm_example(data / "lightgbm_lambdarank"),
        ],
        "synthetic": lambda: [
            graded(),
            *(interacting(share, options.queries) for share in (0.5, 1.0)),
        ],
    }
    sections = {}
    for part in options.parts:
        if part == "variants":
            collections = [splits for make in read.values() for splits in make()]
            sections["additive_variants"] = variants([splits[0] for splits in collections])
            continue
        python = options.python or environment("lightgbm")
        found = {own[0].name: (own[0].measure, compare(own, python)) for own in read[part]()}
        sections[f"additive_{part}"] = table(found)
    study.publish(options, sections)


if __name__ == "__main__":
    raise SystemExit(main())
