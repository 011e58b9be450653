"""Start-up: what each command takes on a small file, in multiples of ``import numpy``, in one run.

The file has 1,000 rows of 20 features.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import Timer, interleave

ROWS, FEATURES, ROWS_PER_QUERY = 1000, 20, 25
TIMES = 9
DIDYMA = ("-m", "didyma")
# Each command, and the most multiples of `import numpy` that it may take.
COMMANDS = {
    "--help": 1.5,
    "inspect MODEL": 3,
    "inspect DATA": 3,
    "predict MODEL DATA -o OUT": 3,
    "rank MODEL DATA -o OUT": 3,
    "eval MODEL DATA": 3,
    "compare MODEL OTHER --data DATA": None,
    "convert DATA OUT": None,
    "fit DATA -o OUT": 5,
    "fit DATA --dev DATA -o OUT": None,
    "export --help": None,
    "fit --help": None,
    "coref --help": None,
    "judge --help": None,
    "motif --help": None,
    "nbest --help": None,
    "tag --help": None,
    "parse --help": None,
    "nli --help": None,
    "passage --help": None,
    "rerank --help": None,
    "index --help": None,
    "ask --help": None,
    "clicks --help": None,
    "serve --help": None,
}


def run(scale: float = 1.0) -> list[Row]:
    result = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder / "DATA", max(2 * ROWS_PER_QUERY, round(ROWS * scale)))
        for model in ("MODEL", "OTHER"):
            start(folder, "fit", "DATA", "-o", model)()
        timers: dict[str, Timer] = {"numpy": start(folder, python=("-c", "import numpy"))}
        timers |= {command: start(folder, *command.split()) for command in COMMANDS}
        seconds = interleave(timers, TIMES if scale >= 1 else 1)
        for command, limit in COMMANDS.items():
            shown = f"didyma {command}"
            times = seconds.ratio(command, "numpy")
            result.append(
                Row(shown, times, "x") if limit is None else Row.at_most(shown, times, "x", limit)
            )
    return result


def start(folder: Path, *arguments: str, python: tuple[str, ...] = DIDYMA) -> Callable[[], float]:
    """Seconds of a process from its start to its end; words in capitals are files of a folder."""
    words = [str(folder / word) if word.isupper() else word for word in arguments]

    def seconds() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, *python, *words], capture_output=True, check=True)
        return time.perf_counter() - began

    return seconds


def generate(path: Path, rows: int) -> None:
    """Write judged results whose relevance a feature tells, nearly."""
    random = np.random.default_rng(0)
    with path.open("w") as file:
        for row in range(rows):
            x = random.normal(size=FEATURES)
            entries = " ".join(f"{k + 1}:{value:.4f}" for k, value in enumerate(x))
            relevant = int(x[0] + random.normal() > 1)
            file.write(f"{relevant} qid:{row // ROWS_PER_QUERY} {entries}\n")
