"""What `didyma fit --dask` does between reading and saving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from didyma.cli.inputs import InputColumns, read_data
from didyma.cli.progress import reporting
from didyma.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.learning.selection import HeldOut, ModelSelection

WAIT = 30  # seconds for a scheduler to answer


def train_on_cluster(
    address: str, ranker: Any, train: Path, dev: Path | None, Cs: Sequence[float], measure: str
) -> tuple[ModelSelection, list[Lists]]:
    """The ranker for each C, fitted where the shards are, and the dev rows that they are judged on.

    An SVM has a path, where each fit starts from the one before.
    """
    from didyma.cluster.shards import Shards
    from didyma.learning.selection import select_model
    from didyma.protocol import clone

    Cs = Cs or [ranker.weight() if hasattr(ranker, "weight") else ranker.C]
    judge = None if dev is None else _Judge(dev, measure)
    with _connected(address), reporting(Cs, getattr(ranker, "tol", None), None) as callback:
        ranker.callback = callback
        if hasattr(ranker, "path"):
            results = select_model(ranker.path(Shards(train), None, Cs), judge)
        else:
            results = select_model(
                (clone(ranker).set_params(C=C).fit(Shards(train)) for C in Cs), judge
            )
    return results, [] if judge is None or not results.candidates else [judge.lists]


class _Judge:
    """A measure on dev rows, which are read like the data of the first ranker."""

    lists: Lists

    def __init__(self, dev: Path, measure: str) -> None:
        self._dev, self._measure = dev, measure
        self._held_out: HeldOut | None = None

    def __call__(self, ranker: Any) -> float:
        if self._held_out is None:
            from didyma.learning.selection import HeldOut

            self.lists = read_data(self._dev, InputColumns(), like=ranker)
            self._held_out = HeldOut(self.lists, self._measure)
        return self._held_out(ranker)


@contextmanager
def _connected(address: str) -> Iterator[None]:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--dask", "dask") from None
    try:
        client = Client(address, timeout=WAIT)
    except (OSError, TimeoutError, ValueError):
        raise DataError(f"no Dask scheduler answers at {address!r}", field="--dask") from None
    with client:
        yield
