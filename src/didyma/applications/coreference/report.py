"""Measures of coreference as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from didyma import DataError
from didyma.applications.coreference.reader import Document
from didyma.report import aligned, decimal


def labels_of(
    path: Path, predicted: Sequence[Document], gold: Sequence[Document]
) -> list[list[str]]:
    """Predicted cluster of each gold mention; both must mark the same ones."""
    known = {(document.name, document.part): document for document in predicted}
    labels = []
    for document in gold:
        found = known.get((document.name, document.part))
        if found is None:
            raise DataError(
                f"expected a document {document.name}, part {document.part}, found none", path=path
            )
        ours = sorted((m.start, m.stop, m.cluster) for m in found.mentions)
        order = sorted(range(len(document.mentions)), key=lambda k: document.mentions[k][:2])
        theirs = [document.mentions[k][:2] for k in order]
        if [mention[:2] for mention in ours] != theirs:
            where = set(theirs) ^ {mention[:2] for mention in ours}
            words = f", first {document.words[slice(*min(where))]}" if where else ""
            raise DataError(
                f"document {document.name}, part {document.part}: expected the {len(theirs)} "
                f"mentions of the gold file, found {len(ours)} that differ{words}",
                path=found.path,
            )
        own = [""] * len(order)
        for k, mention in zip(order, ours):
            own[k] = mention[2]
        labels.append(own)
    return labels


def scores_dict(found: dict[str, Any]) -> dict[str, Any]:
    """Measures, ready for JSON."""
    return {
        name: value
        if isinstance(value, float)
        else {"precision": value.precision, "recall": value.recall, "f1": value.f1}
        for name, value in found.items()
    }


def scores_text(
    documents: Sequence[Document], found: dict[str, Any], single: Sequence[dict[str, Any]]
) -> str:
    """Measures of all documents, and of each."""
    names = {"muc": "MUC", "b_cubed": "B3", "ceaf_m": "CEAF_m", "ceaf_e": "CEAF_e"}
    rows = [["", "precision", "recall", "F1"]]
    for key, name in names.items():
        score = found[key]
        rows.append([name, *map(decimal, (score.precision, score.recall, score.f1))])
    rows.append(["CoNLL", "", "", decimal(found["conll"])])
    losses = {
        "MITRE loss": decimal(found["mitre_loss"]),
        "pair loss": decimal(found["pair_loss"]),
        "documents": str(len(documents)),
    }
    parts = [aligned(rows), aligned(list(losses.items()))]
    if single:
        head = ["document", "mentions", *names.values(), "CoNLL"]
        each = [
            [
                document.name,
                str(len(document.mentions)),
                *(decimal(own[key].f1) for key in names),
                decimal(own["conll"]),
            ]
            for document, own in zip(documents, single)
        ]
        parts.append(aligned([head, *each]))
    return "\n\n".join(parts)
