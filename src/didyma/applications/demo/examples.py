"""A few test topics to read: how the first stage ranks them, and how a learned ranker does."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from didyma.data import Lists
from didyma.metrics.ranking import order, tie_break
from didyma.report import decimal
from didyma.report.html import Example, RankedPassage

N_PASSAGES = 5
N_LETTERS = 220


def examples(
    data: Lists,
    scores: Mapping[str, NDArray[np.float64]],
    precision: Mapping[str, NDArray[np.float64]],
) -> list[Example]:
    """The topic that gains most, one that is ranked neither well nor badly, and the worst loss.

    ``scores`` (one per row) and ``precision`` (AP, one per query) are those of two systems.
    """
    assert data.queries is not None
    first, second = precision
    ties = tie_break(data.groups, data.docid)
    ranked = {name: order(values, data.groups, ties) for name, values in scores.items()}
    gain = precision[second] - precision[first]
    chosen = {int(gain.argmax()): "The greatest gain of all."}
    chosen.setdefault(_middle(precision[second]), f"A topic in the middle by AP of {second}.")
    chosen.setdefault(int(gain.argmin()), "The greatest loss, or the smallest gain, of all.")
    return [
        Example(
            str(data.queries[query]),
            f"{remark} AP {decimal(precision[first][query])} by {first}, "
            f"{decimal(precision[second][query])} by {second}.",
            _rankings(data, query, ranked),
        )
        for query, remark in chosen.items()
    ]


def _middle(values: NDArray[np.float64]) -> int:
    return int(np.argsort(values, kind="stable")[len(values) // 2])


def _rankings(
    data: Lists,
    query: int,
    ranked: Mapping[str, NDArray[np.int64]],
) -> dict[str, list[RankedPassage]]:
    start, stop = data.groups.starts[query : query + 2]
    rows = {name: places[start:stop].tolist() for name, places in ranked.items()}
    first, second = rows
    return {
        name: [
            RankedPassage(
                rank,
                rows[other].index(row) + 1,
                textwrap.shorten(data.items[row], N_LETTERS, placeholder=" …"),
                bool(data.y[row] > 0),
            )
            for rank, row in enumerate(rows[name][:N_PASSAGES], 1)
        ]
        for name, other in ((first, second), (second, first))
    }
