"""Logs of users who look at positions and click on what is relevant, with known chances of both."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.applications.clicks.log import ClickLog


class Events(NamedTuple):
    """What was shown, line by line: query, document of it, position from 1 on, clicked."""

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    position: NDArray[np.int64]
    clicked: NDArray[np.bool_]

    def log(self) -> ClickLog:
        n_documents = int(self.document.max()) + 1
        pairs, pair = np.unique(self.query * n_documents + self.document, return_inverse=True)
        size = int(self.position.max()) + 1
        cells, cell = np.unique(pair * size + self.position, return_inverse=True)
        return ClickLog(
            [f"q{n}" for n in range(int(self.query.max()) + 1)],
            pairs // n_documents,
            [f"d{n}" for n in (pairs % n_documents).tolist()],
            cells // size,
            cells % size,
            np.bincount(cell),
            np.bincount(cell, self.clicked).astype(np.int64),
        )


def simulate(
    random: np.random.Generator,
    relevance: NDArray[np.float64],
    examination: NDArray[np.float64],
    *,
    orders: NDArray[np.int64] | None = None,
    n_pages: int = 50,
    swap: float = 0.3,
) -> Events:
    """Pages of each query: its order (n_queries, n_documents), with neighbours swapped at times."""
    n_queries, n = relevance.shape
    shown, clicked = [], []
    for q in range(n_queries):
        order = random.permutation(n) if orders is None else orders[q]
        pages = np.tile(order, (n_pages, 1))
        for k in range(n - 1):
            rows = random.random(n_pages) < swap
            pages[rows, k], pages[rows, k + 1] = pages[rows, k + 1], pages[rows, k]
        shown.append(pages)
        clicked.append(random.random(pages.shape) < examination * relevance[q][pages])
    return Events(
        np.repeat(np.arange(n_queries), n_pages * n),
        np.concatenate(shown).ravel(),
        np.tile(np.arange(1, n + 1), n_queries * n_pages),
        np.concatenate(clicked).ravel(),
    )
