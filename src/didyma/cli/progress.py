"""Training as it goes: a bar with the gap and the dev measure on a terminal, else a few lines."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from didyma.cli.output import print_message, terminal
from didyma.values import decimal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.learning.solution import Progress

# The name of the dev measure, and its value for weights.
DevMeasure: TypeAlias = "tuple[str, Callable[[NDArray[np.float64]], float]]"

EVERY = 10  # iterations between lines
PAUSE = 0.2  # seconds between updates of the bar


class _Reporter:
    """Follows a path of fits, one for each C in ascending order."""

    def __init__(self, Cs: Sequence[float], tol: float | None, watch: DevMeasure | None) -> None:
        self.tol, self.watch = tol, watch
        self._Cs = sorted(Cs)
        self.first = True
        self.C = math.nan

    def __call__(self, progress: Progress) -> None:
        # It may be a stage on the way, or chosen by the ranker.
        C = next((C for C in self._Cs if C >= progress.C), progress.C)
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
        share = 1.0 if done else 0.0
        if self.tol is None:
            self.bars.update(self.task, total=None, state=self.state(progress))
            self._shown = time.monotonic()
            return
        if progress.C == self.C and 0.0 < self.tol < progress.relative_gap < 1.0:
            share = math.log(progress.relative_gap) / math.log(self.tol)
        self.bars.update(self.task, completed=share, total=1.0, state=self.state(progress))
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
