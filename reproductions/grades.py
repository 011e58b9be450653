"""Two convex bounds on 1 − NDCG over grades: one ranking for all grades against one a threshold.

    python -m reproductions.grades            MQ2008 and synthetic queries of five grades
    python -m reproductions.grades --write    the same, into docs/RESULTS.md

On each split C is chosen by nDCG@10 of the validation queries, for each bound by itself.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.metrics import Evaluator, wilcoxon
from didyma.ranking.svm import SVMRanker
from didyma.report.table import markdown
from reproductions import study
from reproductions.folds import N_PARTS, Fold, in_turn, read_parts

Vector = NDArray[np.float64]

CS = tuple(10.0**k for k in range(-2, 5))
LOSSES = ("ndcg", "ndcg@10")
BOUNDS = ("joint", "thresholds")
MEASURE = "nDCG(dcg='exp-log2')@10"
SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of the grades 0 to 4
N_QUERIES, N_ROWS, N_FEATURES, NOISE = (100, 100, 400), 40, 20, 1.6


def synthetic() -> Iterator[Fold[Lists]]:
    """Grades by a hidden linear score with noise, from five seeds."""
    for seed in range(N_PARTS):
        rng = np.random.default_rng(seed)
        hidden = rng.normal(size=N_FEATURES)

        def draw(queries: int, rng: np.random.Generator = rng, hidden: Vector = hidden) -> Lists:
            X = rng.random((queries * N_ROWS, N_FEATURES))
            score = (X - 0.5) @ hidden * np.sqrt(12) / np.linalg.norm(hidden)
            score += NOISE * rng.normal(size=len(X))
            edges = np.quantile(score, np.cumsum(SHARES)[:-1])
            grades = np.searchsorted(edges, score).astype(np.float64)
            return Lists(X, grades, np.repeat(np.arange(queries), N_ROWS))

        yield Fold(*(draw(queries) for queries in N_QUERIES))


def judge(split: Fold[Lists], loss: str, grades: str | None) -> tuple[Vector, float]:
    """NDCG@10 of each test query at the C that validates best, and the seconds of all fits."""
    train, validation, test = split.train, split.validation, split.test
    chosen = {} if grades is None else {"grades": grades}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*queries have rows of one class only")
        began = time.perf_counter()
        ranker = SVMRanker(loss, n_jobs=1, **chosen)
        path = ranker.path(train.X, train.y, CS, qid=train.qid)
        seconds = time.perf_counter() - began
    assert all(ranker.result_.grades == grades for ranker in path)
    validate, judge = (
        Evaluator(data.y, data.groups, MEASURE, docid=data.docid) for data in (validation, test)
    )
    best = max(path, key=lambda ranker: validate(validation.X @ ranker.coef_).mean(MEASURE))
    return np.nan_to_num(judge(test.X @ best.coef_)[MEASURE]), seconds


def compare(splits: Iterable[Fold[Lists]]) -> dict[str, Any]:
    """Values of all test queries for each loss and bound, and for average precision."""
    models = [(loss, grades) for loss in LOSSES for grades in BOUNDS] + [("ap", None)]
    values: dict[tuple[str, str | None], list[Vector]] = {model: [] for model in models}
    seconds = dict.fromkeys(models, 0.0)
    for fold, split in enumerate(splits):
        for model in models:
            if fold == 0:
                judge(split, *model)  # compiles
            found, spent = judge(split, *model)
            values[model].append(found)
            seconds[model] += spent
        study.say(f"fold {fold + 1} of {N_PARTS}")
    rows = {}
    for (loss, grades), folds in values.items():
        own = np.concatenate(folds)
        other = np.concatenate(values[loss if grades else LOSSES[1], "joint"])
        rows[f"{loss}, {grades}" if grades else loss] = {
            "nDCG@10": float(own.mean()),
            "less joint": float((own - other).mean()),
            "standard error": float((own - other).std(ddof=1) / np.sqrt(len(own))),
            "p": wilcoxon(own, other) if np.any(own != other) else 1.0,
            "seconds": seconds[loss, grades],
            "values": own.tolist(),
        }
    return rows


def table(rows: dict[str, Any]) -> str:
    """The rows in Markdown."""
    header = ["loss, bound", "nDCG@10", "less joint", "its standard error", "p", "seconds"]
    body = []
    for name, row in rows.items():
        test = ["", "", ""]
        if not name.endswith("joint"):
            test = [f"{row['less joint']:+.4f}", f"{row['standard error']:.4f}", f"{row['p']:.2g}"]
        body.append([name, f"{row['nDCG@10']:.4f}", *test, f"{row['seconds']:.1f}"])
    return markdown(header, body)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    return study.Arguments(__doc__, "json").run(arguments, reproduce)


def reproduce(options: argparse.Namespace) -> None:
    """Compare the bounds on both collections, and write what was asked for."""
    results = {
        "MQ2008": compare(in_turn(read_parts(options.data / "mq2008"))),
        "Five grades, synthetic": compare(synthetic()),
    }
    text = "\n\n".join(f"**{name}**\n\n{table(rows)}" for name, rows in results.items())
    study.publish(options, {"grades": text}, results)


if __name__ == "__main__":
    raise SystemExit(main())
