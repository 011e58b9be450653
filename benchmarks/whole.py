"""From a file to a saved model, and where a linear ranker has no advantage: what a sceptic asks.

`peers` times training alone, warm, on data that a hidden linear score has judged. Here are whole
processes, from a LETOR file to a model on disk (start-up, reading and writing included, kernels in
the cache or not); training and quality on data whose signal is in pairs of features, and on MQ2008
where it is at hand (../shared/data); and a million rows. Everything is on one thread unless a row
says otherwise; LightGBM and XGBoost live in the peers' environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import synthetic
from benchmarks.letor_reader import generate
from benchmarks.memory import _extra as extra
from benchmarks.peers import BOOSTER, ONE_THREAD, PEERS, Peer, additive, environment, svm_map
from benchmarks.row import Row
from benchmarks.timing import Timer, blas_threads, interleave, stopwatch
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.metrics import evaluate
from didyma.ranking.svm import SVMRanker

ROOT = Path(__file__).parents[1]
MQ2008 = ROOT.parent / "shared" / "data" / "mq2008"
WORKER = Path(__file__).with_name("whole_worker.py")
ROWS = 20_000  # of the file
MILLION = 10_000  # queries of 100 rows
TIMES = 3


def run(scale: float = 1.0) -> list[Row]:
    with blas_threads(1):
        return [*_files(scale), *_quality(scale), *_million(scale)]


def _files(scale: float) -> Iterator[Row]:
    """A process of ours and one of theirs, each from the same file to a model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "train.txt"
        rows = max(200, round(ROWS * scale))
        generate(path, rows, ".6f", comments=False)
        ours = [sys.executable, "-m", "didyma", "fit", str(path), "--jobs", "1"]
        ours += ["-o", str(folder / "model.safetensors")]
        start = _start(ours)
        title = f"{rows:,} rows of a file to a saved model"
        yield Row(f"{title}: didyma fit", start(), "s")
        python = environment("lightgbm")
        label = f"{title}: LightGBM, time over ours"
        if python is None:
            yield Row.absent(label)
        else:
            theirs = _start([str(python), str(WORKER), "lightgbm", str(path), str(folder)])
            seconds = interleave({"ours": start, "theirs": theirs}, TIMES if scale >= 1 else 1)
            yield Row.at_least(label, seconds.ratio("theirs", "ours"), "x", 1)
        python = environment("xgboost-cpu")
        label = f"XGBoost reads {rows:,} rows, time over ours"
        if python is None:
            yield Row.absent(label)
        else:
            command = [str(python), str(WORKER), "xgboost_read", str(path), str(folder)]
            own = min(stopwatch(lambda: letor.read(path))() for _ in range(TIMES))
            yield Row.at_least(label, float(_output(command)) / own, "x", 1)


def _quality(scale: float) -> Iterator[Row]:
    """Seconds and mean average precision of ours and of a booster."""
    queries = max(20, round(1000 * scale))
    data = {
        "half the signal in pairs": (
            synthetic.interacting(queries, 0.5),
            synthetic.interacting(max(10, queries // 2), 0.5, seed=1),
        ),
    }
    if (MQ2008 / "S1.txt").exists() and scale >= 1:
        parts = [letor.read(MQ2008 / f"S{n}.txt", sparse=False) for n in (1, 2, 3, 5)]
        data["MQ2008, first fold"] = (_joined(parts[:3]), parts[3])
    rankers: dict[str, Peer] = {"SVMRanker": svm_map, "AdditiveSVMRanker": additive}
    rankers["AdditiveSVMRanker, 12 pairs"] = _with_pairs
    rankers[BOOSTER] = PEERS[BOOSTER]
    for title, (train, test) in data.items():
        for name, ranker in rankers.items():
            ranker(*(_first(part) for part in (train, test)))  # warms up
            found = ranker(train, test)
            if found is None:
                yield Row.absent(f"{title}: {name}")
                continue
            seconds, scores = found
            yield Row(f"{title}: {name}, training", seconds, "s")
            quality = evaluate(scores, test.y, test.groups, "AP").mean("AP")
            yield Row(f"{title}: {name}", quality, "MAP")


def _with_pairs(train: Lists, test: Lists) -> tuple[float, np.ndarray]:
    return additive(train, test, interactions=12)


def _first(data: Lists) -> Lists:
    return data.select_lists(np.arange(min(10, len(data.groups))))


def _joined(parts: list[Lists]) -> Lists:
    X, y, qid = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ["X", "y", "qid"]
    )
    return Lists(X, y, qid)


def _million(scale: float) -> Iterator[Row]:
    """A fit of a million rows, in a process of its own."""
    queries = max(20, round(MILLION * scale))
    for threads in (1, 2):
        command = [sys.executable, "-m", "benchmarks.whole", str(queries), str(threads)]
        found = json.loads(_output(command))
        title = f"{100 * queries:,} x 136 rows in float32, threads: {threads}"
        yield Row(f"{title}, SVMRanker's fit", found["seconds"], "s")
        yield Row(f"{title}, its memory beyond the data", found["extra"] / 1e6, "MB")


def _start(command: list[str], **environment: str) -> Timer:
    settings = {**os.environ, **ONE_THREAD, **environment}

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=settings)

    return stopwatch(run)


def _output(command: list[str]) -> str:
    settings = {**os.environ, **ONE_THREAD}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env=settings
    )
    return done.stdout.splitlines()[-1]


def main() -> None:
    """Fit once: ``python -m benchmarks.whole QUERIES THREADS``."""
    data = synthetic.dense(int(sys.argv[1]))
    X, threads = data.X.astype(np.float32), int(sys.argv[2])
    few = 10 * 100
    SVMRanker(n_jobs=threads).fit(X[:few], data.y[:few], qid=data.qid[:few])  # warms up
    y, qid = data.y, data.qid
    del data
    seconds: list[float] = []
    fit = stopwatch(lambda: SVMRanker(n_jobs=threads).fit(X, y, qid=qid))
    held = extra(lambda: seconds.append(fit()))
    print(json.dumps({"seconds": seconds[0], "extra": held}))


if __name__ == "__main__":
    main()
