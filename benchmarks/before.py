"""The compiled core beside the version before it, whose kernels Numba compiled at first use.

Both run the same worker in turns, on one thread each. First results are whole processes, over one
that imports NumPy (or PyTorch) and ends; kernels are warm on both sides.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import time
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import median

from benchmarks.letor_reader import generate
from benchmarks.peers import ONE_THREAD, environment
from benchmarks.row import Row
from benchmarks.timing import interleave
from didyma import TextReranker

BEFORE = "c6cedf1"
NEEDED = "numba snowballstemmer scipy scikit-learn ir-measures safetensors typer rich msgspec"
ROOT = Path(__file__).parents[1]
WORKER = Path(__file__).with_name("before_worker.py")
TIMES = 5
FIRST = {"tree": 1.5, "rank": 2.0, "fit": 5.0, "layer": 1.1}  # over the import beneath it
SHOWN = {
    "tree": "sparsemap over a tree",
    "rank": "TextReranker load and rank",
    "fit": "SVMRanker().fit on 1,000 rows",
    "layer": "nn.SparseMAP over a tree, with its gradient, over importing torch",
}


def run(scale: float = 1.0) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model.safetensors"
        queries = [f"what is thing {i}?" for i in range(12)]
        passages = [[f"thing {i} is this", f"other {i}", "nothing"] for i in range(12)]
        TextReranker(quick=True).fit(queries, passages, [[1, 0, 0]] * 12).save(model)
        generate(folder / "rows.letor", 20_000 if scale >= 1 else 200, ".6f", comments=False)
        return [*_first(folder, model, scale), *_kernels(folder, model, scale)]


def _first(folder: Path, model: Path, scale: float) -> list[Row]:
    commands = {name: ["-c", f"import {name}"] for name in ("numpy", "torch")}
    commands |= {case: [str(WORKER), case, str(model)] for case in FIRST}
    timers = {name: partial(_seconds, [sys.executable, *c]) for name, c in commands.items()}
    seconds = interleave(timers, TIMES if scale >= 1 else 1)
    return [
        Row.at_most(
            f"first result in a process: {SHOWN[case]}",
            seconds.best(case) / seconds.best("torch" if case == "layer" else "numpy"),
            "x",
            limit,
        )
        for case, limit in FIRST.items()
    ]


def _kernels(folder: Path, model: Path, scale: float) -> list[Row]:
    if scale < 1:
        return []
    python = _before(folder / "before")
    if python is None:
        return [Row.absent("kernels over those of Numba")]
    old_model = _retrained(python, folder)
    old: dict[str, list[float]] = {}
    new: dict[str, list[float]] = {}
    for _ in range(2):
        _collect(old, [str(python), str(WORKER), "kernels", str(old_model)], folder / "before")
        _collect(new, [sys.executable, str(WORKER), "kernels", str(model)], ROOT)
    ratios = {name: min(new[name]) / min(old[name]) for name in new if name in old}
    rows = [Row.at_most(f"{name}, over before", value, "x", 1.0) for name, value in ratios.items()]
    return [*rows, Row.at_most("median over before", median(ratios.values()), "x", 0.8)]


def _before(folder: Path) -> Path | None:
    """Unpack the version before; the Python that has what it needs, or None."""
    archive = subprocess.run(
        ["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        return None
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    pythons = [environment(package) for package in NEEDED.split()]
    return None if None in pythons else pythons[0]


def _retrained(python: Path, folder: Path) -> Path:
    """A model of the version before, which has its own format of words."""
    path = folder / "old" / "model.safetensors"
    path.parent.mkdir()
    (path.parent / "rows.letor").symlink_to(folder / "rows.letor")
    code = (
        "import didyma\n"
        "q = [f'what is thing {i}?' for i in range(12)]\n"
        "p = [[f'thing {i} is this', f'other {i}', 'nothing'] for i in range(12)]\n"
        f"didyma.TextReranker(quick=True).fit(q, p, [[1, 0, 0]] * 12).save({str(path)!r})\n"
    )
    subprocess.run([str(python), "-c", code], env=_environment(folder / "before"), check=True)
    return path


def _collect(times: dict[str, list[float]], command: list[str], root: Path) -> None:
    done = subprocess.run(command, env=_environment(root), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    for line in done.stdout.splitlines():
        name, seconds = line.split("\t")
        times.setdefault(name, []).append(float(seconds))


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": str(root / "src")}


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=_environment(ROOT), check=True, capture_output=True)
    return time.perf_counter() - start
