"""Scores of rows where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.data import Lists
from didyma.distributed.shards import Shards
from didyma.distributed.workers import active_client

__all__ = ["predict_on_cluster"]


def predict_on_cluster(ranker: Any, X: Any) -> Any:
    """Scores of a Dask array or data frame, as lazy as it is; of `Shards`, an array.

    The columns of a data frame must be those that the ranker was fitted on.
    """
    if isinstance(X, Shards):
        client = active_client()
        parts = client.map(_read_and_score, X.sources(1), ranker=ranker, pure=False)
        return np.concatenate(client.gather(parts))
    if hasattr(X, "chunks"):
        X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        return X.map_blocks(ranker.predict, dtype=np.float64, drop_axis=1, meta=np.empty(0))
    return X.map_partitions(_score_frame, ranker, meta=("score", np.float64))


def _read_and_score(source: Any, ranker: Any) -> Any:
    from didyma import formats

    return ranker.predict(formats.read(source[0], like=ranker))


def _score_frame(frame: Any, ranker: Any) -> Any:
    names = tuple(map(str, frame.columns))
    scores = ranker.predict(Lists(frame.to_numpy(np.float64), feature_names=names))
    series = type(frame.iloc[:, 0])
    return series(scores, index=frame.index, name="score")
