"""What becomes of the inputs of a target, counted; the first input of each fault is kept."""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.fuzz.mutators import Parts, damaged
from tests.fuzz.target import CORPUS, Target, attempt, write

__all__ = ["Fuzzed", "table"]

COLUMNS = ("inputs", "told", "result", "fault")


class Fuzzed:
    """A target, its valid input, and what came of others so far."""

    def __init__(self, target: Target, folder: Path) -> None:
        self.target, self.folder = target, folder / target.name
        (made := self.folder / "seed").mkdir(parents=True)
        self.valid = target.seed(made)
        self.counts: Counter[str] = Counter()
        self.slowest = 0.0

    def changed(self, parts: Parts, random: Random) -> Parts:
        """Another input."""
        return damaged(parts, random)

    def give(self, parts: Parts) -> None:
        """Give it an input, and count what becomes of it."""
        self.counts["inputs"] += 1
        began = time.monotonic()
        try:
            self.counts[attempt(self.target, parts, self.folder)] += 1
        except Exception as error:
            self.counts["fault"] += 1
            self._keep(parts, error)
        self.slowest = max(self.slowest, time.monotonic() - began)

    def _keep(self, parts: Parts, error: Exception) -> None:
        """Keep the first input of a fault, which is known by the error and its place."""
        frames = traceback.extract_tb(error.__traceback__)
        at = [frame for frame in frames if "didyma" in Path(frame.filename).parts] or frames
        what = f"{type(error).__name__}-{Path(at[-1].filename).stem}-{at[-1].name.strip('<>')}"
        place = CORPUS / self.target.name / what
        if not place.exists():
            write(parts, place)
            said = f"{type(error).__name__}: {error!s:.300}"
            print(f"{self.target.name}: {said}\n  kept as {place}", file=sys.stderr, flush=True)


def table(found: Sequence[Fuzzed], title: str) -> str:
    """The counts of all targets."""
    width = max(len(title), *(len(own.target.name) for own in found))
    total: Counter[str] = Counter()
    lines = [f"{title:<{width}}" + "".join(f"{name:>9}" for name in COLUMNS) + "  slowest"]
    for own in found:
        total.update(own.counts)
        lines.append(f"{_line(own.target.name, own.counts, width)}{own.slowest:7.2f} s")
    return "\n".join([*lines, _line("all", total, width)])


def _line(name: str, counts: Counter[str], width: int) -> str:
    return f"{name:<{width}}" + "".join(f"{counts[column]:9,}" for column in COLUMNS)
