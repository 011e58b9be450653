"""Additive rankers are never clearly below linear ones, nor pairs below none: on held-out queries.

Linear ones have the C that is best in the cross-validation that ours choose theirs by. Each half of
a collection is held out in turn, and queries are pooled. Of judged ones these are training and
validation queries; test queries are the study's, `reproductions/additive.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reproductions.svmmap_trials import read_collections

from benchmarks import synthetic
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.data.texts import qa
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.held_out import cross_validate
from didyma.ranking.losses import parse_loss
from didyma.ranking.problem import trainable_queries
from didyma.ranking.scaling import QueryMinMaxScaler
from didyma.ranking.svm import SVMRanker
from didyma.text import ExtendedFeatures, TextFeatures
from reproductions import additive

Halves = tuple[Lists, Lists]


def two_parts(folder: Path) -> list[Halves]:
    first, second = (scaled(letor.read(folder / f"S{k}.txt", sparse=False)) for k in (1, 2))
    return [(first, second)]


def example(folder: Path) -> list[Halves]:
    return [halves(letor.read(folder / "rank.train", sparse=False))]


def runs(folder: Path) -> list[Halves]:
    """Scores of 78 runs, most of which lack most documents: the old and the new topics."""
    collections = (collection.data for collection in read_collections(folder))
    return [halves(scaled(data.with_items(without_missing(data.X)))) for data in collections]


def questions(folder: Path) -> list[Halves]:
    train = qa.read_wikiqa(folder / "train.txt")
    features = TextFeatures([ExtendedFeatures()], "english").fit(train)
    return [halves(train.with_items(features.transform(train)))]


def scaled(lists: Lists) -> Lists:
    return lists.with_items(QueryMinMaxScaler().fit_transform(lists.X, qid=lists.qid))


def halves(lists: Lists) -> Halves:
    even = lists.groups.codes % 2 == 0
    return lists.select(even), lists.select(~even)


def without_missing(X: Any) -> NDArray[np.float64]:
    return np.nan_to_num(X, nan=np.nanmin(X))


JUDGED = {
    "robust03": ("ap", runs),
    "wikiqa": ("ap", questions),
    "mq2008": ("ap", two_parts),
    "ohsumed": ("ndcg", two_parts),
    "lightgbm_lambdarank": ("ndcg", example),
}


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.filterwarnings("ignore:.*queries have rows of one class only")
def test_judged_collections(name: str, shared_data: Path) -> None:
    loss, parts = JUDGED[name]
    check_floor(loss, parts(shared_data / name))


def test_grades_and_many_features() -> None:
    first, second = (synthetic.correlated(30, 60, 40, seed=seed) for seed in range(2))
    check_floor("ndcg", [(first, second)])


def test_half_of_the_signal_in_pairs() -> None:
    first, second = (synthetic.interacting(50, 0.5, 40, 12, 4, seed=seed) for seed in range(2))
    assert check_floor("ap", [(first, second)]) > 0.05


def check_floor(loss: str, pairs: list[Halves]) -> float:
    """Ours less linear, and pairs less none, are not below zero by an error; returns the latter."""
    values = [measured(loss, *parts) for pair in pairs for parts in permutations(pair)]
    linear, alone, crossed = (np.concatenate(parts) for parts in zip(*values))
    for better, worse in ((alone, linear), (crossed, alone)):
        above, error, _ = additive.difference(better, worse)
        assert above >= -error
    return float(crossed.mean() - alone.mean())


def measured(loss: str, train: Lists, held_out: Lists) -> list[NDArray[np.float64]]:
    """nDCG@10 of held-out queries by a linear ranker, an additive one, and one with pairs."""
    split = additive.Split("", train, held_out, held_out, loss, additive.GRADED[1])
    linear, rows = scaled(train), scaled(held_out).X

    def fit(train: Lists, test: Lists) -> Iterator[NDArray[np.float64]]:
        for C in additive.CS:
            yield SVMRanker(loss, C=C, tol=0.01).fit(train).predict(test.X)

    usable = trainable_queries(train.y, train.groups, parse_loss(loss))
    found = cross_validate(linear, usable, split.measure, fit)
    assert found is not None
    C = additive.CS[int(found.argmax())]
    scores = [
        SVMRanker(loss, C=C, tol=0.01).fit(linear).predict(rows),
        AdditiveSVMRanker(loss, tol=0.01, interactions=0).fit(train).predict(held_out.X),
        AdditiveSVMRanker(loss, tol=0.01).fit(train).predict(held_out.X),
    ]
    return [additive.measured(split, held_out, each) for each in scores]
