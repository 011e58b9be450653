"""Additive rankers are never clearly below linear ones, nor pairs below none: on held-out queries.

Of judged collections these are training and validation queries; test queries are the study's,
`reproductions/additive.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import synthetic
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.scaling import QueryMinMaxScaler
from didyma.ranking.svm import SVMRanker
from reproductions import additive


def two_parts(folder: Path) -> tuple[Lists, Lists]:
    parts = [letor.read(folder / f"S{k}.txt", sparse=False) for k in (1, 2)]
    rows = [QueryMinMaxScaler().fit_transform(part.X, qid=part.qid) for part in parts]
    first, second = (part.with_items(X) for part, X in zip(parts, rows))
    return first, second


def example(folder: Path) -> tuple[Lists, Lists]:
    train = letor.read(folder / "rank.train", sparse=False)
    train = train.with_items(np.ascontiguousarray(np.asarray(train.X)[:, :100]))  # to be quick
    half = train.groups.codes % 2 == 0
    return train.select(half), train.select(~half)


JUDGED = {
    "mq2008": ("ap", two_parts),
    "ohsumed": ("ndcg", two_parts),
    "lightgbm_lambdarank": ("ndcg", example),
}


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.filterwarnings("ignore:.*queries have rows of one class only")
def test_judged_collections(name: str, shared_data: Path) -> None:
    loss, parts = JUDGED[name]
    check_floor(loss, *parts(shared_data / name))


def test_grades_and_many_features() -> None:
    check_floor("ndcg", *(synthetic.correlated(30, 60, 40, seed=seed) for seed in range(2)))


def test_half_of_the_signal_in_pairs() -> None:
    parts = (synthetic.interacting(50, 0.5, 40, 12, 4, seed=seed) for seed in range(2))
    assert check_floor("ap", *parts) > 0.05


def check_floor(loss: str, train: Lists, held_out: Lists) -> float:
    """Ours less linear, and pairs less none, are not below zero by an error; returns the latter."""
    split = additive.Split("", train, held_out, held_out, loss, "nDCG@10")
    scaled = [QueryMinMaxScaler().fit_transform(p.X, qid=p.qid) for p in (train, held_out)]
    line = SVMRanker(loss, tol=0.01).fit(scaled[0], train.y, qid=train.qid)
    alone = AdditiveSVMRanker(loss, tol=0.01).fit(train)
    paired = AdditiveSVMRanker(loss, tol=0.01, interactions="auto").fit(train)

    def values(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return additive.measured(split, held_out, scores)

    linear, own, pairs = (
        values(scores)
        for scores in (
            line.predict(scaled[1]),
            alone.predict(held_out.X),
            paired.predict(held_out.X),
        )
    )
    for better, worse in ((own, linear), (pairs, own)):
        above, error, _ = additive.difference(better, worse)
        assert above >= -error
    return float(pairs.mean() - own.mean())
