"""How well a motif tells sequences that have it from others, and its best sites."""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.applications.motif.fasta import FastaRecord
from didyma.applications.motif.finder import MotifFinder


def hits_of(finder: MotifFinder, record: FastaRecord, threshold: float, best: bool) -> list[Any]:
    """The sites of a sequence above a threshold, or the best one, whatever its score is."""
    if not best:
        return finder.scan(record.sequence, threshold)
    (site,) = finder.sites([record.sequence])
    if site is None:
        return []
    piece = record.sequence[site.start : site.start + finder.length + finder.order]
    (hit,) = (
        hit
        for hit in finder.scan(piece, float("-inf"))
        if hit.start == 0 and hit.strand == site.strand
    )
    return [hit._replace(start=site.start)]


def errors_of(
    finder: MotifFinder, positives: list[FastaRecord], negatives: list[FastaRecord]
) -> dict[str, Any]:
    """Errors on sequences that have the motif and on others, and the ROC area of best scores."""
    scores = [
        finder.decision_function([record.sequence for record in records])
        for records in (positives, negatives)
    ]
    missed, false = int(np.sum(scores[0] <= 0)), int(np.sum(scores[1] > 0))
    higher = np.searchsorted(np.sort(scores[1]), scores[0], side="left")
    as_high = np.searchsorted(np.sort(scores[1]), scores[0], side="right")
    return {
        "error": (missed + false) / (len(positives) + len(negatives)),
        "positives": len(positives),
        "missed": missed,
        "negatives": len(negatives),
        "false": false,
        "roc": float(np.mean(higher + as_high) / 2 / len(negatives)),
    }
