"""Scores of rows and texts where they are, and measures of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from didyma.cluster.shards import Shards, shards_of, text_shards_of
from didyma.cluster.workers import active_client, refuse_on_cluster
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.model import Model
from didyma.protocol import check_is_fitted

if TYPE_CHECKING:
    from didyma.metrics import Evaluation


def predict_on_cluster(ranker: Any, X: Any) -> Any:
    """Scores of a Dask array or data frame, as lazy as it is; of `Shards`, an array.

    The columns of a data frame must be those that the ranker was fitted on.
    """
    check_is_fitted(ranker)
    if isinstance(X, Shards):
        return _of_files(_read_and_score, X, ranker)
    if hasattr(X, "chunks"):
        X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        return X.map_blocks(ranker.predict, dtype=np.float64, drop_axis=1, meta=np.empty(0))
    return X.map_partitions(_score_frame, ranker, meta=("score", np.float64))


def predict_texts_on_cluster(reranker: Any, lists: Any) -> Any:
    """Scores of the texts of files, each of which has whole queries, in their order."""
    if not isinstance(lists, Shards):
        raise DataError("expected Shards, whose files have whole lists", field="lists")
    reranker._check_fitted()
    return _of_files(_read_and_score_texts, lists, Model.of(reranker))


def score_on_cluster(
    ranker: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    qid: Any = None,
    group: Any = None,
    docid: Any = None,
) -> float:
    """`Ranker.score`; no query is split."""
    from didyma.metrics import parse

    refuse_on_cluster(group=group, sample_weight=sample_weight, docid=docid)
    measure = parse(ranker.judged_by())
    client = active_client()
    shards = shards_of(client, X, y, qid)
    return _evaluated(client, shards, _evaluate, ranker, measure).mean(measure)


def evaluate_texts_on_cluster(
    reranker: Any, lists: Any, measures: Any = "AP, RR, nDCG@10"
) -> Evaluation:
    """`Reranker.evaluate`, where the texts are."""
    reranker._check_fitted()
    client, model = active_client(), Model.of(reranker)
    return _evaluated(client, text_shards_of(client, lists), _evaluate_texts, model, measures)


def _of_files(score: Callable[..., Any], shards: Shards, model: Any) -> Any:
    client = active_client()
    parts = client.map(score, [path for path, *_ in shards.sources(1)], model=model, pure=False)
    return np.concatenate(client.gather(parts))


def _evaluated(
    client: Any, shards: list[Any], evaluate: Callable[..., Any], model: Any, measures: Any
) -> Evaluation:
    from didyma.metrics import Evaluation

    parts = client.map(evaluate, shards, model=model, measures=measures, pure=False)
    try:
        return Evaluation.joined(client.gather(parts))
    finally:
        client.cancel([*parts, *shards], force=True)


def _evaluate(lists: Lists, model: Any, measures: Any) -> Evaluation:
    from didyma.metrics import evaluate

    return evaluate(model.predict(lists), lists.y, lists.groups, measures, docid=lists.docid)


def _evaluate_texts(lists: Lists, model: Any, measures: Any) -> Evaluation:
    evaluation: Evaluation = model.estimator.evaluate(lists, measures)
    return evaluation


def _read_and_score(path: Any, model: Any) -> Any:
    from didyma.data import formats

    return model.predict(formats.read(path, like=model))


def _read_and_score_texts(path: Any, model: Any) -> Any:
    reranker = model.estimator
    return reranker.predict(reranker._read_file(path))


def _score_frame(frame: Any, ranker: Any) -> Any:
    names, rows = tuple(map(str, frame.columns)), frame
    if getattr(ranker, "categories_in_", None) is None:  # else there are texts
        rows = Lists(frame.to_numpy(np.float64), feature_names=names)
    scores = ranker.predict(rows)
    series = type(frame.iloc[:, 0])
    return series(scores, index=frame.index, name="score")
