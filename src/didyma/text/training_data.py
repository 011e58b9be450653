"""What a model was trained on: enough to tell whether a query was among it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.model import Saved, Serialisable


@dataclass(frozen=True, eq=False)
class TrainingData(Serialisable):
    """A fingerprint of judged lists, and a hash of each of their queries.

    Queries that differ in case or spaces count as equal. A hash has 32 bits, so that of ten
    thousand training queries a new one is taken for one of them with a chance of 2·10⁻⁶. Hashes
    hide queries from readers, not from those who can guess them.

    >>> lists = Lists.of_texts(["Who rang?"], [["They did.", "It rains."]], [[1, 0]])
    >>> data = TrainingData.of(lists)
    >>> data.seen(["who  rang?", "who sang?"]).tolist()
    [True, False]
    """

    fingerprint: str
    n_queries: int  # that differ
    queries: Annotated[NDArray[np.uint32], Saved("n_queries")]

    @classmethod
    def of(cls, lists: Lists) -> Self | None:
        """That of lists of texts; None of others."""
        if lists.queries is None or not all(isinstance(query, str) for query in lists.queries):
            return None
        digest = blake2b(digest_size=8)
        labels, scores = (
            [None] * len(lists) if column is None else column.tolist()
            for column in (lists.labels, lists.scores)
        )
        for number, query in enumerate(lists.queries):
            digest.update(f"{query}\0".encode())
            for row in lists.groups.rows_of(number).tolist():
                digest.update(f"{lists.document(row)}\0{labels[row]}\0{scores[row]}\0".encode())
        queries = np.unique(hashes(lists.queries))
        return cls(digest.hexdigest(), len(queries), queries)

    def seen(self, queries: Iterable[str]) -> NDArray[np.bool_]:
        """Whether each query is one of those."""
        return np.isin(hashes(queries), self.queries)

    def _check_state(self) -> None:
        if len(self.queries) != self.n_queries:
            raise ValueError(f"expected {self.n_queries} hashes, found {len(self.queries)}")


def hashes(queries: Iterable[str]) -> NDArray[np.uint32]:
    """A hash of each query, which case and spaces do not change."""
    digests = (
        blake2b(" ".join(query.casefold().split()).encode(), digest_size=4).digest()
        for query in queries
    )
    return np.frombuffer(b"".join(digests), "<u4").astype(np.uint32)
