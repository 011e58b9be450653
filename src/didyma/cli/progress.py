"""How work goes, on stderr: a bar on a terminal, else a few lines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from didyma.cli.output import print_message, terminal
from didyma.values import decimal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.learning.solution import Progress
    from didyma.text.selection import Progress as SearchProgress

# The name of the dev measure, and its value for weights.
DevMeasure: TypeAlias = "tuple[str, Callable[[NDArray[np.float64]], float]]"

EVERY = 10  # iterations between lines
COUNTS = {"passages": 100_000, "vectors": 1000, "texts": 100, "queries": 100}  # the same of counts
PAUSE = 0.2  # seconds between updates of the bar


class _Reporter:
    """Shows the gap, and the dev measure, of a path of fits, one for each C in ascending order."""

    def __init__(self, Cs: Sequence[float], tol: float | None, watch: DevMeasure | None) -> None:
        self.tol, self.watch = tol, watch
        self._Cs = sorted(Cs)
        self.first = True
        self.C = math.nan

    def __call__(self, progress: Progress) -> None:
        # What is not certified may be a stage on the way to a larger C.
        Cs = () if progress.certified else self._Cs
        C = next((C for C in Cs if C >= progress.C), progress.C)
        self.first, self.C = C != self.C, C
        done = self.tol is not None and progress.certified and progress.relative_gap <= self.tol
        if self.due(progress, done):
            self.show(progress, done)

    def due(self, progress: Progress, done: bool) -> bool:
        raise NotImplementedError

    def show(self, progress: Progress, done: bool) -> None:
        raise NotImplementedError

    def state(self, progress: Progress) -> str:
        text = f"{progress.passes:6.1f} passes   "
        if self.tol is None:
            text += f"value {progress.value:.5g}"
        else:
            text += f"gap {max(0.0, progress.relative_gap):.1e}"
        if progress.C != self.C:  # a stage on the way
            text += f" at C={progress.C:g}"
        if self.watch is not None:
            name, value = self.watch
            text += f"   dev {name} {decimal(value(progress.w))}"
        return text


class _Lines(_Reporter):
    def due(self, progress: Progress, done: bool) -> bool:
        return done or progress.n_iter % EVERY == 0

    def show(self, progress: Progress, done: bool) -> None:
        print_message(f"C={self.C:<8g}{self.state(progress)}   {progress.seconds:.1f} s")


class _Bar(_Reporter):
    """The bar is full when the gap, on a logarithmic scale, has come down to the tolerance."""

    def __init__(
        self, bars: Any, Cs: Sequence[float], tol: float | None, watch: DevMeasure | None
    ) -> None:
        super().__init__(Cs, tol, watch)
        self.bars = bars
        self.task = bars.add_task(f"C={min(Cs):g}", total=None, state="preparing")
        self._shown = -math.inf

    def due(self, progress: Progress, done: bool) -> bool:
        return done or self.first or time.monotonic() > self._shown + PAUSE

    def show(self, progress: Progress, done: bool) -> None:
        if self.first and math.isfinite(self._shown):
            self.task = self.bars.add_task(f"C={self.C:g}", state="")
        share, total = (1.0 if done else 0.0), (None if self.tol is None else 1.0)
        if self.tol and progress.C == self.C and self.tol < progress.relative_gap < 1.0:
            share = math.log(progress.relative_gap) / math.log(self.tol)
        self.bars.update(self.task, completed=share, total=total, state=self.state(progress))
        self._shown = time.monotonic()


def progress_bars(console: Any) -> Any:
    """Bars with a description and a state, for a console of rich."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(20, complete_style="cyan", finished_style="green"),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


@contextmanager
def reporting(
    Cs: Sequence[float], tol: float | None, watch: DevMeasure | None
) -> Iterator[Callable[[Progress], None]]:
    """A callback that shows on stderr how training goes, for as long as the block lasts.

    ``tol`` is the gap to come down to, None where there is no such bound: then values are shown.
    """
    if (console := terminal()) is None:
        lines = _Lines(Cs, tol, watch)
        yield lambda progress: lines(progress)
        return
    with progress_bars(console) as bars:
        bar = _Bar(bars, Cs, tol, watch)
        # A function, as scikit-learn copies any other object that it is given.
        yield lambda progress: bar(progress)


def _steps(what: str) -> Callable[[int], bool]:
    """Whether a count has reached another line since it was last asked for."""
    shown = 0

    def due(n: int) -> bool:
        nonlocal shown
        before, shown = shown, n // COUNTS[what]
        return shown != before

    return due


@contextmanager
def indexing(path: Path) -> Iterator[Callable[..., None]]:
    """A callback that shows how many passages of a path were read, and how many have vectors."""
    if (console := terminal()) is None:
        due = {what: _steps(what) for what in ("passages", "vectors")}

        def line(n: int, what: str = "passages") -> None:
            if due[what](n):
                print_message(f"{path}: {n:,} {what} so far")

        yield line
        return
    with progress_bars(console) as bars:
        task = bars.add_task(f"indexing {path}", total=None, state="")
        yield lambda n, what="passages": bars.update(task, state=f"{n:,} {what}")


@contextmanager
def searching() -> Iterator[dict[str, Any]]:
    """Callbacks that show how the search for a reranker goes: what was tried, what was embedded."""

    def line(tried: SearchProgress) -> str:
        place = f"{tried.number}/{tried.of}"
        values = f"{decimal(tried.mean)}  best {decimal(tried.best)}   {tried.seconds:.1f} s"
        return f"{place:<7}{tried.candidate:<50}{values}"

    if (console := terminal()) is None:
        due = _steps("texts")

        def count(n: int) -> None:
            if due(n):
                print_message(f"{n:,} texts embedded")

        yield {"callback": lambda tried: print_message(line(tried)), "on_encoded": count}
        return
    with progress_bars(console) as bars:
        task = bars.add_task("features", total=None, state="")

        def show(tried: SearchProgress) -> None:
            bars.console.print(line(tried), highlight=False)
            done = {"completed": tried.number, "total": tried.of}
            bars.update(task, description="search", state=f"best {decimal(tried.best)}", **done)

        def embedded(n: int) -> None:
            bars.update(task, description="embedding", state=f"{n:,} texts")

        yield {"callback": show, "on_encoded": embedded}


@contextmanager
def asking() -> Iterator[Callable[[int, int], None]]:
    """A callback that shows how many queries a teacher is done with."""
    if (console := terminal()) is None:
        due = _steps("queries")

        def line(n: int, total: int) -> None:
            if due(n) or n == total:
                print_message(f"teacher: {n} of {total} queries")

        yield line
        return
    with progress_bars(console) as bars:
        task = bars.add_task("teacher", total=None, state="")

        def show(n: int, total: int) -> None:
            bars.update(task, completed=n, total=total, state=f"{n}/{total} queries")
            if n == total:
                bars.stop()  # another may follow

        yield show
