"""Notes on a request: signals that were imputed, fields nobody asks for, vectors that lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from didyma.data.lists import Lists
from didyma.data.passage import Passage
from didyma.data.schema import Schema
from didyma.text.features.signals import Signals

OLD_FILE = (
    "probability: as the model's file is of before 0.3, it depends on the other documents, as the "
    "score does; train the model anew"
)

NAMED = 10  # unknown fields that are told by name
LONGEST = 60  # characters of a name


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
