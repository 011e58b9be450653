"""Additive rankers against boosted trees: judged collections, and data with interactions.

    python -m reproductions.additive                    everything
    python -m reproductions.additive --part judged      MQ2008 and LightGBM's example
    python -m reproductions.additive --part synthetic   half, and all, of the signal in pairs
    python -m reproductions.additive --write            put the tables into docs/RESULTS.md

Every library has nine settings, and boosters five numbers of trees for each; what is best on the
validation queries is tested once. LightGBM and XGBoost live in the environment of the benchmarks'
peers, or in that of ``--python``; one that cannot be installed is left out. Queries whose rows are
all relevant, or none, are not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
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
from didyma.ranking.svm import SVMRanker
from didyma.report.table import markdown
from reproductions import study

WORKER = Path(__file__).with_name("additive_worker.py")
PACKAGES = {"LightGBM": "lightgbm", "XGBoost": "xgboost-cpu"}
OURS = "AdditiveSVMRanker"
EQUAL = 0.003
N_FOLDS = 5

TREES = (20, 50, 100, 200, 300)
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "LightGBM": [
        {"num_leaves": leaves, "learning_rate": rate}
        for leaves, rate in product((4, 8, 31), (0.03, 0.1, 0.3))
    ],
    "XGBoost": [
        {"max_depth": depth, "eta": rate} for depth, rate in product((2, 4, 6), (0.03, 0.1, 0.3))
    ],
    OURS: [{"bins": bins, "C": C} for bins, C in product((16, 32, 64), (0.3, 1.0, 3.0))],
    "SVMRanker over min-max scaled features": [{"C": 10.0**k} for k in range(-2, 7)],
}

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Split:
    """Queries to train on, to choose by, and to test on."""

    name: str
    train: Lists
    validation: Lists
    test: Lists


@dataclass(frozen=True, eq=False)
class Outcome:
    """Average precision of each test query, the setting that was chosen, and seconds of its fit."""

    ap: Vector
    setting: dict[str, Any]
    seconds: float


def average_precision(data: Lists, scores: Vector) -> Vector:
    """AP of each query that has relevant rows and others."""
    values = Evaluator(data.y, data.groups, "AP", docid=data.docid)(scores)["AP"]
    return values[data.mixed]


def chosen(split: Split, found: Sequence[tuple[dict[str, Any], float, Vector, Vector]]) -> Outcome:
    """Of (setting, seconds, validation scores, test scores), the best on validation queries."""
    best = max(found, key=lambda each: average_precision(split.validation, each[2]).mean())
    return Outcome(average_precision(split.test, best[3]), best[0], best[1])


def ours(split: Split, settings: Sequence[Mapping[str, Any]], threads: int | None) -> Outcome:
    """An additive ranker for each setting."""
    found = []
    for setting in settings:
        ranker = AdditiveSVMRanker(**setting, n_jobs=threads)
        start = time.perf_counter()
        ranker.fit(split.train.X, split.train.y, qid=split.train.qid)
        seconds = time.perf_counter() - start
        scores = (ranker.predict(data.X) for data in (split.validation, split.test))
        found.append((dict(setting), seconds, *scores))
    return chosen(split, found)


def linear(split: Split, settings: Sequence[Mapping[str, Any]]) -> Outcome:
    """A linear ranker for each setting, over features scaled to [0, 1] within queries."""
    from didyma.ranking.scaling import QueryMinMaxScaler

    scaled = [
        QueryMinMaxScaler().fit_transform(data.X, qid=data.qid)
        for data in (split.train, split.validation, split.test)
    ]
    path = SVMRanker().path(
        scaled[0], split.train.y, [setting["C"] for setting in settings], qid=split.train.qid
    )
    found = [
        ({"C": each.C}, each.result_.seconds["total"], *map(each.predict, scaled[1:]))
        for each in path
    ]
    return chosen(split, found)


def boosted(
    library: str, split: Split, settings: Sequence[Mapping[str, Any]], python: Path, threads: int
) -> Outcome:
    """A booster for each setting, at each number of trees."""
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
        wanted = {"settings": list(settings), "trees": TREES, "threads": threads}
        Path(folder, "settings.json").write_text(json.dumps(wanted))
        command = [str(python), str(WORKER), library.lower(), folder]
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


def dense(path: Path) -> Lists:
    """A LETOR file as a dense matrix."""
    return letor.read(path, sparse=False)


def join(parts: Sequence[Lists]) -> Lists:
    """Some parts together, whose queries stay apart."""
    qid = [np.char.add(f"{k}:", part.qid.astype(str)) for k, part in enumerate(parts)]
    X = np.concatenate([part.X for part in parts])
    return Lists(X, np.concatenate([part.y for part in parts]), np.concatenate(qid))


def mq2008(folder: Path) -> list[Split]:
    """Five folds: three parts to train on, one to choose by, one to test on."""
    parts = [dense(folder / f"S{k + 1}.txt") for k in range(N_FOLDS)]
    return [
        Split(
            "MQ2008",
            join([parts[(fold + k) % N_FOLDS] for k in range(3)]),
            parts[(fold + 3) % N_FOLDS],
            parts[(fold + 4) % N_FOLDS],
        )
        for fold in range(N_FOLDS)
    ]


def lightgbm_example(folder: Path) -> list[Split]:
    """Its own test queries; of the others, every fifth is for choosing, five times."""
    train = dense(folder / "rank.train")
    test = letor.read(folder / "rank.test", sparse=False, n_features=train.X.shape[1])
    fold = np.random.default_rng(0).permutation(len(train.groups)) % N_FOLDS
    return [
        Split(
            "LightGBM's example",
            train.select(fold[train.groups.codes] != k),
            train.select(fold[train.groups.codes] == k),
            test,
        )
        for k in range(N_FOLDS)
    ]


def interacting(share: float, queries: int) -> Split:
    """Features alone and products of twelve pairs share the variance of the hidden score."""
    sizes = (queries, max(10, queries // 4), max(10, queries // 2))
    name = f"{share:.0%} of the signal in pairs"
    parts = (synthetic.interacting(n, share, seed=seed) for seed, n in enumerate(sizes))
    return Split(name, *parts)


# --- Comparisons ----------------------------------------------------------------------------------


def compare(splits: Sequence[Split], peers: Mapping[str, Path]) -> dict[str, list[Outcome]]:
    """Outcomes of every library, split by split."""
    found: dict[str, list[Outcome]] = {}
    for split in splits:
        print(split.name, file=sys.stderr)
        for name, settings in SETTINGS.items():
            if name == OURS:
                outcome = ours(split, settings, None)
            elif name in peers:
                outcome = boosted(name, split, settings, peers[name], 1)
            elif name in PACKAGES:
                continue
            else:
                outcome = linear(split, settings)
            found.setdefault(name, []).append(outcome)
    return found


def judged_table(collections: Mapping[str, Mapping[str, list[Outcome]]]) -> str:
    """Test MAP of each library, its difference from ours, and Wilcoxon's test over queries."""
    rows = []
    for collection, found in collections.items():
        own = np.mean([outcome.ap.mean() for outcome in found[OURS]])
        ours_ap = np.concatenate([outcome.ap for outcome in found[OURS]])
        for name, outcomes in found.items():
            mean = np.mean([outcome.ap.mean() for outcome in outcomes])
            ap = np.concatenate([outcome.ap for outcome in outcomes])
            p = "" if name == OURS else f"{wilcoxon(ours_ap, ap):.2f}"
            rows.append([collection, name, f"{mean:.4f}", f"{mean - own:+.4f}", p])
        peers = [name for name in found if name in PACKAGES]
        if peers:
            best = max(np.mean([o.ap.mean() for o in found[name]]) for name in peers)
            verdict = "met" if own >= best - EQUAL else "missed"
            rows.append([collection, f"within {EQUAL} of the best booster", verdict, "", ""])
    return markdown(["collection", "ranker", "test MAP", "less ours", "p"], rows)


def synthetic_table(found: Mapping[str, Mapping[str, Outcome]]) -> str:
    """Test MAP and the time of one fit with the settings that were chosen, on one thread."""
    rows = []
    for data, outcomes in found.items():
        for name, outcome in outcomes.items():
            setting = ", ".join(f"{key} {value}" for key, value in outcome.setting.items())
            rows.append([data, name, f"{outcome.ap.mean():.4f}", f"{outcome.seconds:.2f}", setting])
        if "LightGBM" in outcomes:
            mine, theirs = outcomes[OURS], outcomes["LightGBM"]
            good = mine.ap.mean() > theirs.ap.mean() and 10 * mine.seconds <= theirs.seconds
            verdict = "met" if good else "missed"
            rows.append([data, "above LightGBM in a tenth of its time", verdict, "", ""])
    return markdown(["data", "ranker", "test MAP", "seconds", "chosen"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = study.Arguments(__doc__, parts=("judged", "synthetic"))
    parser.add_argument("--python", type=Path, help="of an environment with the boosters")
    parser.add_argument("--queries", type=int, default=1000, help="of synthetic data")
    return parser.run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts that were asked for."""
    warnings.filterwarnings("ignore", ".*queries have rows of one class only")
    collections = {}
    if "judged" in options.parts:
        collections["MQ2008"] = mq2008(options.data / "mq2008")
        example = options.data / "lightgbm_lambdarank"
        collections["LightGBM's example"] = lightgbm_example(example)
    peers = {}
    for name, package in PACKAGES.items():
        python = options.python or environment(package)
        if python is not None:
            peers[name] = Path(python)
    sections = {}
    if collections:
        table = judged_table({name: compare(own, peers) for name, own in collections.items()})
        sections["additive_judged"] = table
    if "synthetic" in options.parts:
        found = {}
        for share in (0.5, 1.0):
            split = interacting(share, options.queries)
            settings = [
                {"interactions": n, "C": C} for n, C in product((0, 12, 24), (0.3, 1.0, 3.0, 10.0))
            ]
            ours(split, settings[:1], 1)  # compiles
            outcomes = {OURS: ours(split, settings, 1)}
            if "LightGBM" in peers:
                outcomes["LightGBM"] = boosted("LightGBM", split, [{}], peers["LightGBM"], 1)
            found[split.name] = outcomes
        sections["additive_synthetic"] = synthetic_table(found)
    study.publish(options, sections)


if __name__ == "__main__":
    raise SystemExit(main())
