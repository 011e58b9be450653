"""What a model has learned, and what a data file holds, as JSON shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from didyma.data.lists import Lists
from didyma.data.matrix import Columns
from didyma.data.text_columns import distinct
from didyma.model import Model
from didyma.text.observation import OLD_FILE


def model_summary(path: Path, top: int) -> dict[str, Any]:
    """What a model file says, and the ``top`` weights or importances, ready for JSON."""
    model = Model.read(path)
    sizes = {"bytes": path.stat().st_size, "bytes_of": _sizes(model)}
    version = {"version": model.version.to_dict()}
    summary = {"file": str(path), **version, **sizes, **model.describe(), "weights": []}
    if model.name == "AdditiveSVMRanker":
        if len(model.steps) == 1:
            summary["importances"] = _importances(model.estimator)[:top]
        return summary
    learned = model
    if model.name == "TextReranker":
        learned = model.estimator.model_
        summary["n_features"] = learned.features.count
        summary["parameters"] = summary["state"]["parameters"]
        tried = len(model.estimator.trials_)
        summary["summary"] |= {"verdict": str(model.estimator.gate_), "ways_tried": tried}
        summary["calibration"] = model.estimator.calibration_report()
        if model.estimator.has_old_probabilities:
            summary["summary"]["probability"] = OLD_FILE
    weights = sorted(learned.weights.items(), key=lambda item: -abs(item[1]))
    for name, weight in weights[:top]:
        if weight != 0:
            summary["weights"].append({"feature": name, "weight": weight})
    return summary


def _sizes(model: Model) -> dict[str, int]:
    """Bytes of the arrays of each part of a model, the largest first."""
    sizes: dict[str, int] = {}
    for name, array in model.tensors.items():
        owner, _, _ = name.rpartition("/")
        if f"{owner}/concepts" in model.tensors:
            owner = "concepts"
        elif owner.endswith("reader"):
            owner = "words and their counts"
        sizes[owner or name] = sizes.get(owner or name, 0) + array.nbytes
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def _importances(ranker: Any) -> list[dict[str, Any]]:
    """Features and pairs of an additive ranker that add anything, the most important first."""
    names = Columns.of(ranker).labels
    names += [f"{names[first]} × {names[second]}" for first, second in ranker.pairs_]
    values = np.concatenate([ranker.feature_importances_, ranker.pair_importances_])
    order = [k for k in np.argsort(-values, kind="stable") if values[k] > 0]
    return [{"feature": names[k], "importance": float(values[k])} for k in order]


def data_summary(data: Lists) -> dict[str, Any]:
    """Sizes, labels, and queries that training would skip, ready for JSON."""
    groups, relevant = data.groups, data.y >= 1
    dense = isinstance(data.X, np.ndarray)
    positives = np.bincount(groups.codes, weights=relevant, minlength=len(groups))
    stored = np.count_nonzero(data.X) if isinstance(data.X, np.ndarray) else data.X.count_nonzero()
    labels, counts = np.unique(data.y, return_counts=True)
    return {
        "rows": len(data),
        "queries": len(groups),
        "features": data.X.shape[1],
        "feature_names": None if data.feature_names is None else list(data.feature_names),
        "categories": _categories(data),
        "storage": "dense" if dense else "sparse",
        "density": round(float(stored / max(1, data.X.shape[0] * data.X.shape[1])), 6),
        "missing_values": int(np.isnan(data.X).sum()) if isinstance(data.X, np.ndarray) else 0,
        "labels": {f"{label:g}": int(count) for label, count in zip(labels, counts)},
        "rows_per_query": {
            "min": int(groups.sizes.min()),
            "median": float(np.median(groups.sizes)),
            "max": int(groups.sizes.max()),
        },
        "queries_without_relevant": int(np.sum(positives == 0)),
        "queries_without_other": int(np.sum(positives == groups.sizes)),
        "document_ids": data.docid is not None,
        "duplicate_document_ids": _duplicates(data.qid, data.docid),
    }


def _categories(data: Lists) -> dict[str, int] | None:
    """How many categories each column of texts has."""
    pairs = zip(data.feature_names or (), data.categories or ())
    return {name: len(texts) for name, texts in pairs if texts is not None} or None


def _duplicates(qid: Any, docid: Any) -> int:
    """Rows whose document their query has had before; rows without an id do not count."""
    if docid is None:
        return 0
    ids = docid.astype(str)
    named = ids != ""
    _, first = distinct(qid.astype(str)[named], ids[named])
    return int(named.sum()) - len(first)
