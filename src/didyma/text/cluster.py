"""Rerankers whose texts are on a cluster: features are made where the texts are.

What a featuriser learns, such as how many passages have a word, it learns here, from a sample of
whole lists of all shards; where there are few enough these are all lists.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import numpy as np

from didyma.cluster.shards import RemoteRows, text_shards_of
from didyma.cluster.workers import active_client
from didyma.data.lists import Lists
from didyma.data.row_blocks import concatenate
from didyma.errors import DataError
from didyma.model import Model
from didyma.ranking.featuriser import Featuriser

SAMPLE = 100_000  # passages that features are learned from


def refuse(reranker: Any, *data: Any, **options: Any) -> NoReturn:
    """Raise, as this reranker learns on one machine only."""
    raise DataError(
        f"{type(reranker).__name__} does not learn on a cluster, where "
        "Reranker(featuriser, ranker) does: give it lists"
    )


def fit_on_cluster(reranker: Any, lists: Any, eval_set: Lists | None = None) -> Any:
    """`Reranker.fit` where the texts are, with the active Dask client."""
    featuriser, ranker = reranker.featuriser, reranker.ranker
    if not hasattr(ranker, "_fit_shards"):
        name = type(ranker).__name__
        raise DataError(f"{name} does not learn on a cluster: give a ranker", field="ranker")
    if reranker.gate is not None:
        raise DataError("is for lists on one machine: leave it out", field="gate")
    client, rows = active_client(), list[Any]()
    shards = text_shards_of(client, lists)
    try:
        n_rows = sum(client.gather(client.map(len, shards, pure=False)))
        sample = partial(_sample, share=min(1.0, SAMPLE / n_rows))
        featuriser.fit(concatenate(client.gather(client.map(sample, shards, pure=False))))
        rows = client.map(_rows_on_worker, shards, learned=Model.of(featuriser), pure=False)
        watched = {} if eval_set is None else {"eval_set": _rows(eval_set, featuriser)}
        ranker.fit(RemoteRows(tuple(rows)), **watched)
    finally:
        client.cancel([*rows, *shards], force=True)
    reranker.model_ = Model.of(ranker)
    reranker._gated = reranker.gate_ = reranker.trained_on_ = None
    return reranker


def _sample(lists: Lists, share: float) -> Lists:
    """A random share of the lists."""
    if share == 1.0:
        return lists
    numbers = np.random.default_rng(0).permutation(len(lists.groups))
    return lists.select_lists(np.sort(numbers[: int(np.ceil(share * len(numbers)))]))


def _rows_on_worker(lists: Lists, learned: Model) -> Lists:
    return _rows(lists, learned.estimator)


def _rows(lists: Lists, featuriser: Featuriser) -> Lists:
    names = featuriser.names
    return Lists(featuriser.transform(lists), lists.y, lists.qid, feature_names=names)
