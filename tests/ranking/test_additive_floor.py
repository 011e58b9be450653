"""Additive rankers are never clearly below linear ones, nor pairs below none: on held-out queries.

Linear ones have the C that is best in the cross-validation that ours choose theirs by. Each half of
a collection is held out in turn. Of judged ones these are training and validation queries; test
queries are the study's, `reproductions/additive.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import synthetic
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.held_out import cross_validate
from didyma.ranking.losses import parse_loss
from didyma.ranking.problem import trainable_queries
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


def check_floor(loss: str, *halves: Lists) -> float:
    """Ours less linear, and pairs less none, are not below zero by an error; returns the latter."""
    values = [measured(loss, *parts) for parts in permutations(halves)]
    linear, alone, pairs = (np.concatenate(parts) for parts in zip(*values))
    for better, worse in ((alone, linear), (pairs, alone)):
        above, error, _ = additive.difference(better, worse)
        assert above >= -error
    return float(pairs.mean() - alone.mean())


def measured(loss: str, train: Lists, held_out: Lists) -> list[NDArray[np.float64]]:
    """nDCG@10 of held-out queries by a linear ranker, an additive one, and one with pairs."""
    split = additive.Split("", train, held_out, held_out, loss, additive.GRADED[1])
    scaled, rows = (QueryMinMaxScaler().fit_transform(p.X, qid=p.qid) for p in (train, held_out))
    scaled = train.with_items(scaled)

    def fit(train: Lists, test: Lists) -> Iterator[NDArray[np.float64]]:
        for C in additive.CS:
            yield SVMRanker(loss, C=C, tol=0.01).fit(train).predict(test.X)

    usable = trainable_queries(train.y, train.groups, parse_loss(loss))
    found = cross_validate(scaled, usable, split.measure, fit)
    assert found is not None
    C = additive.CS[int(found.mean(axis=1).argmax())]
    scores = [
        SVMRanker(loss, C=C, tol=0.01).fit(scaled).predict(rows),
        AdditiveSVMRanker(loss, tol=0.01, interactions=0).fit(train).predict(held_out.X),
        AdditiveSVMRanker(loss, tol=0.01).fit(train).predict(held_out.X),
    ]
    return [additive.measured(split, held_out, each) for each in scores]
