"""What a reranker looked at when it ranked a list, for those who watch it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from didyma.ranking.windowed import Windowed
from didyma.text.drift import Observed, departures
from didyma.text.features import Signals, TextFeatures
from didyma.text.features.lexicon import Lexicon
from didyma.text.features.union import part_of
from didyma.text.notes import missing_signals

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.text.reranker import Reranker
    from didyma.text.text_reranker import TextReranker

_watcher: ContextVar[Callable[[Scored], object] | None] = ContextVar("watcher", default=None)


@dataclass(frozen=True, eq=False)
class Scored:
    """Lists, the features of their windows, and what a reranker made of them."""

    reranker: Reranker
    lists: Lists
    windowed: Windowed
    raw: NDArray[np.float64]
    probability: NDArray[np.float64] | None

    def observed(self) -> Observed | None:
        """What its features and its order are like; None if the reranker knows no ranges."""
        ranges = getattr(self.reranker, "ranges_", None)
        if ranges is None:
            return None
        observed: Observed = ranges.observe(*self.features_and_departures())
        return observed

    def features_and_departures(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values of the features that ranges are known of, and how far the order is from the old.

        Of `didyma.TextReranker` only.
        """
        reranker = cast("TextReranker", self.reranker)
        names, order = reranker.featuriser.names, reranker.gate_.baseline_order
        place = {name: n for n, name in enumerate(names)}
        old, _ = self.windowed.best(order.scores(self.windowed.X, names))
        seen = self.windowed.X[:, [place[name] for name in reranker.ranges_.features]]
        return seen, departures(self.raw, old, self.lists.groups)

    def imputed(self) -> dict[str, int]:
        """Documents that lack a signal, by signal, where there are such."""
        features = self.reranker.featuriser
        part = part_of(features, Signals) if isinstance(features, TextFeatures) else None
        return {} if part is None else missing_signals(part, self.lists)

    def unseen_words(self) -> tuple[int, int]:
        """Words of the query, and how many of them training has not seen."""
        if not isinstance(self.reranker.featuriser, TextFeatures):
            return 0, 0
        reader = self.reranker.featuriser.reader_
        lexicon = Lexicon(reader.language, reader.vocabulary)
        tokens = lexicon.read(self.lists.query_texts)
        return len(tokens.terms), int(np.count_nonzero(lexicon.term_places[tokens.terms] < 0))


@contextmanager
def observing(watcher: Callable[[Scored], object]) -> Iterator[None]:
    """Tell ``watcher`` what rerankers look at in this block, on this thread.

    >>> from didyma import TextReranker
    >>> lists = [["Austen wrote Emma.", "No."], ["Here.", "Emma was written in 1815."]]
    >>> reranker = TextReranker(quick=True).fit(["who wrote it?", "when?"], lists, [[1, 0], [0, 1]])
    >>> with observing(lambda scored: print(len(scored.raw), scored.unseen_words())):
    ...     ranking = reranker.rank("who wrote Faust?", ["Goethe.", "It was Goethe.", "No."])
    3 (3, 2)
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def tell(scored: Callable[[], Scored]) -> None:
    """Tell whoever watches, if somebody does."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(scored())
