"""Measures that have no kernel here, by ir_measures itself."""

from __future__ import annotations

from collections.abc import Sequence

import ir_measures
import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.metrics.measures import Measure


def per_query(
    measures: Sequence[Measure],
    queries: Sequence[str],
    run: dict[str, list[str]],
    qrels: dict[str, dict[str, float]],
) -> dict[Measure, NDArray[np.float64]]:
    """Values for each of ``queries``: ``run`` has their documents best first, ``qrels`` the labels.

    ir_measures sees ranks for scores, so that one tie rule holds whichever program it asks, and one
    measure at a time: together it confuses those with gains of their own. A query that it leaves
    out has the value NaN.
    """
    values = {measure: np.full(len(queries), np.nan) for measure in measures}
    place = {query: i for i, query in enumerate(queries)}
    ranks = {
        query: {document: float(-rank) for rank, document in enumerate(documents)}
        for query, documents in run.items()
    }
    labels = {query: _labels(judged) for query, judged in qrels.items()}
    try:
        for measure in measures:
            for found in ir_measures.iter_calc([measure], labels, ranks):
                if found.query_id in place:
                    values[measure][place[found.query_id]] = found.value
    except (ArithmeticError, AssertionError, RuntimeError, TypeError, ValueError) as error:
        names = ", ".join(map(str, measures))
        raise DataError(f"ir_measures cannot compute {names}: {error}") from error
    return values


def _labels(judged: dict[str, float]) -> dict[str, int]:
    for label in judged.values():
        if label != int(label):
            raise DataError(f"this measure needs integers for labels, found {label}", field="y")
    if all(label < 0 for label in judged.values()):
        return {}  # which means the same to trec_eval, but does not crash it
    return {document: int(label) for document, label in judged.items()}
