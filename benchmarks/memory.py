"""Peak memory of reading, training and predicting, over the size of the data.

Each figure is that of a process of its own, which has done the same with little data before, so
that libraries and compiled code do not count: ``python -m benchmarks.memory WHAT KIND QUERIES``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import large_data, synthetic
from benchmarks.judged_file import FEATURES, ROWS, write_file
from benchmarks.process import child, peak, status
from benchmarks.row import Row
from didyma.data import formats
from didyma.data.lists import Lists
from didyma.model import Model
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.svm import SVMRanker

PEAKS = Path("/proc/self/clear_refs")
QUERIES = 4_000
FILE_QUERIES = 2_000  # of the files that are read
WARM = 150  # first: fewer would take other ways, whose code is loaded later
KINDS = ("float64", "float32", "csr", "binned")
FILES = ("LETOR", "LETOR, float32", "LETOR, csr", "CSV", "Parquet")


def run(scale: float = 1.0) -> list[Row]:
    queries, in_files = (max(10, round(count * scale)) for count in (QUERIES, FILE_QUERIES))
    rows = []
    for kind in KINDS:
        found = _measured("fit", kind, queries)
        name = f"fit, beyond {found['data'] / 1e6:,.0f} MB of {_called(kind)}"
        rows.append(Row.at_most(name, 100 * found["extra"] / found["data"], "%", 20))
    for kind in KINDS:
        found = _measured("predict", kind, queries)
        name = f"predict, beyond {found['data'] / 1e6:,.0f} MB of {_called(kind)}"
        rows.append(Row.at_most(name, 100 * found["extra"] / found["data"], "%", 20))
    for kind in FILES:
        found = _measured("read", kind, in_files)
        name = f"read, over its {found['data'] / 1e6:,.0f} MB: {kind}"
        rows.append(Row.at_most(name, found["extra"] / found["data"], "x", 1.3))
    small, large = (_measured("stream", "LETOR", count) for count in (in_files // 4, in_files))
    rows.append(Row("didyma predict of a file", small["extra"] / 1e6, "MB"))
    rows.append(Row("of one four times as long", large["extra"] / 1e6, "MB"))
    return rows + large_data.compare(scale)


def _called(kind: str) -> str:
    return "float64, to be binned" if kind == "binned" else kind


def _measured(what: str, kind: str, queries: int) -> dict[str, int]:
    sizes: dict[str, int] = child("memory", what, kind, queries)
    return sizes


def _extra(work: Callable[[], Any]) -> int:
    """Most bytes that the process held while it worked, beyond those before."""
    if not PEAKS.exists():
        before = peak()
        work()
        return peak() - before
    PEAKS.write_text("5")  # forget the peak
    before = status("VmRSS")
    kept = work()
    found = peak() - before
    del kept
    return found


def fill(queries: int, features: int, precision: str) -> Lists:
    """Results written block by block into their final place, so that the data is the peak."""
    block = 100
    X = np.empty((ROWS * queries, features), dtype=precision)
    y = np.empty(len(X))
    for first in range(0, queries, block):
        part = synthetic.dense(min(block, queries - first), ROWS, features, seed=first)
        place = slice(ROWS * first, ROWS * first + len(part))
        X[place], y[place] = part.X, part.y
    return Lists(X, y, np.repeat(np.arange(queries), ROWS))


def rows_of(kind: str, queries: int) -> Lists:
    """Results that are stored in this way."""
    if kind != "csr":
        return fill(queries, FEATURES, "float32" if kind == "float32" else "float64")
    rng, parts, labels = np.random.default_rng(0), [], []
    for first in range(0, queries, 100):
        part = synthetic.dense(min(100, queries - first), ROWS, FEATURES, seed=first)
        parts.append(sp.csr_array(part.X * (rng.random(part.X.shape) < 0.2)))
        labels.append(part.y)
    X = sp.vstack(parts, format="csr")
    return Lists(X, np.concatenate(labels), np.repeat(np.arange(queries), ROWS))


def size_of(data: Lists) -> int:
    """Bytes of rows, labels and queries."""
    X: Any = data.X
    arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return sum(array.nbytes for array in (*arrays, data.y, data.qid))


def ranker_of(kind: str) -> SVMRanker:
    return AdditiveSVMRanker() if kind == "binned" else SVMRanker(C=100.0)


def fit(kind: str, queries: int) -> dict[str, int]:
    warm, data = rows_of(kind, WARM), rows_of(kind, queries)
    ranker_of(kind).fit(warm.X, warm.y, qid=warm.qid)  # warms up
    extra = _extra(lambda: ranker_of(kind).fit(data.X, data.y, qid=data.qid))
    return {"data": size_of(data), "extra": extra}


def predict(kind: str, queries: int) -> dict[str, int]:
    warm, data = rows_of(kind, 20), rows_of(kind, queries)
    model = Model.of(ranker_of(kind).fit(warm.X, warm.y, qid=warm.qid))
    model.predict(warm)
    return {"data": size_of(data), "extra": _extra(lambda: model.predict(data))}


def read(kind: str, queries: int) -> dict[str, int]:
    options: dict[str, Any] = {}
    if kind.endswith("float32"):
        options["dtype"] = np.float32
    with tempfile.TemporaryDirectory() as folder:
        suffix = {"CSV": "csv", "Parquet": "parquet"}.get(kind, "letor")
        small, large = Path(folder, f"small.{suffix}"), Path(folder, f"large.{suffix}")
        # Reading what is longer than a block takes other ways than what is not.
        for path, count in ((small, max(2, min(300, queries // 4))), (large, queries)):
            write_file(path, kind, count)
        formats.read(small, **options)
        found: list[Lists] = []
        extra = _extra(lambda: found.append(formats.read(large, **options)))
        return {"data": size_of(found[0]), "extra": extra}


def stream(kind: str, queries: int) -> dict[str, int]:
    from typer.testing import CliRunner

    from didyma.cli import app

    with tempfile.TemporaryDirectory() as folder:
        warm, model, out = rows_of("float64", 20), Path(folder, "model"), Path(folder, "out")
        Model.of(SVMRanker().fit(warm.X, warm.y, qid=warm.qid)).write(model)
        small, large = Path(folder, "small.letor"), Path(folder, "large.letor")
        for path, count in ((small, min(300, queries)), (large, queries)):
            write_file(path, kind, count)

        def command(path: Path) -> Any:
            return CliRunner().invoke(app, ["predict", str(model), str(path), "-o", str(out)])

        assert command(small).exit_code == 0
        return {"data": large.stat().st_size, "extra": _extra(lambda: command(large))}


def main() -> None:
    what, kind, queries = sys.argv[1], sys.argv[2], int(sys.argv[3])
    work = {"fit": fit, "predict": predict, "read": read, "stream": stream}[what]
    print(json.dumps(work(kind, queries)))


if __name__ == "__main__":
    main()
