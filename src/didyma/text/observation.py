"""Observers of rankings: what a reranker looked at; and notes on what a request lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from didyma.ranking.featuriser import Windowed
from didyma.text.drift import Observed, departures
from didyma.text.features import Signals, TextFeatures
from didyma.text.features.lexicon import Lexicon
from didyma.text.features.union import part_of

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.data.passage import Passage
    from didyma.data.schema import Schema
    from didyma.text.reranker import Reranker
    from didyma.text.text_reranker import TextReranker

OLD_FILE = (
    "probability: as the model's file is of before 0.3, it depends on the other documents, as the "
    "score does; train the model anew"
)

NAMED = 10  # unknown fields that are told by name
LONGEST = 60  # characters of a name
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
    """Call ``watcher`` with what rerankers look at in this block, on this thread.

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


def notify(scored: Callable[[], Scored]) -> None:
    """Call the watcher of this thread, if there is one."""
    watcher = _watcher.get()
    if watcher is not None:
        watcher(scored())


def imputed(part: Signals, lists: Lists) -> Iterator[str]:
    """Signals that the model looks at and that documents lack."""
    values = {number.name: number.imputed for number in part.numbers_}
    for name, n_missing in missing_signals(part, lists).items():
        told = f", counted as {values[name]:.3g}" if name in values else ""
        yield f"{name}: missing in {_of(n_missing, len(lists))}{told}"


def missing_signals(part: Signals, lists: Lists) -> dict[str, int]:
    """Documents that lack a signal, by signal, where there are such."""
    signals = {} if lists.attributes is None else lists.attributes.signals
    missing = {}
    for number in part.numbers_:
        values = signals.get(number.name)
        is_there = values is not None and values.dtype == np.float64
        n_missing = int(np.isnan(values).sum()) if is_there else len(lists)  # type: ignore[arg-type]
        missing[number.name] = n_missing
    for category in part.categories_:
        texts = signals.get(category.name, np.full(len(lists), None))
        missing[category.name] = sum(not isinstance(text, str) for text in texts.tolist())
    return {name: n_missing for name, n_missing in missing.items() if n_missing}


def unknown(schema: Schema, passages: list[Passage]) -> Iterator[str]:
    """Fields of documents that training has not seen, or has left out."""
    names = {field.name for field in schema.fields}
    counts = Counter(name for passage in passages for name in passage.metadata if name not in names)
    for name, n in counts.most_common(NAMED):
        yield f"{name!s:.{LONGEST}}: not known from training, ignored in {_of(n, len(passages))}"
    if len(counts) > NAMED:
        yield f"{len(counts) - NAMED} other fields: not known from training, ignored"


def without_vectors(n_missing: int, n_documents: int, n_late: int = 0) -> Iterator[str]:
    """Documents that had no vector and were not embedded; ``n_late`` texts, as time was over."""
    if n_missing:
        why = f"; the time to embed was over before {n_late} texts" if n_late else ""
        yield f"no vector: {_of(n_missing, n_documents)}, counted as the median in training{why}"


def _of(n: int, total: int) -> str:
    return f"{n} of {total} documents"
