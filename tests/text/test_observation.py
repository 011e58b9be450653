from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from didyma.data.lists import Groups
from didyma.ranking.featuriser import Windowed
from didyma.text import Reranker, SmallFeatures, TextFeatures, TextReranker
from didyma.text.drift import LOOKED_AT, Ranges
from didyma.text.observation import Scored, observing
from tests.text.texts import made


def test_sums_of_single_queries_are_compared_as_all_at_once():
    rng = np.random.default_rng(0)
    sizes = [LOOKED_AT, 1, 7, 12, 3] * 8
    X = rng.normal(size=(sum(sizes), 3)).round(1)
    X[:, 2] = 0.7  # constant
    X[rng.random(len(X)) < 0.1, 1] = np.nan
    groups, departed = Groups.from_lists(sizes), rng.random(len(sizes))
    ranges = Ranges.fit(
        rng.normal(size=(400, 3)), Groups.from_lists([10] * 40), ("a", "b", "c"), None, departed
    )
    whole = ranges.compare(X, groups, departed)
    parts = np.split(X, np.cumsum(sizes)[:-1])
    observed = [ranges.observe(part, departed[[n]]) for n, part in enumerate(parts)]
    drift = ranges.judge(reduce(lambda a, b: a + b, observed))
    assert drift.n_queries == whole.n_queries == len(sizes)
    assert [one.name for one in drift.features] == [one.name for one in whole.features]
    for own, other in zip(drift.features, whole.features):
        assert own[1:] == pytest.approx(other[1:], abs=1e-6)
    for name in ("distance", "threshold", "departure", "excess", "untried"):
        assert getattr(drift, name) == pytest.approx(getattr(whole, name))


def test_of_many_documents_some_are_looked_at():
    rng = np.random.default_rng(1)
    ranges = Ranges.fit(rng.normal(size=(400, 1)), Groups.from_lists([10] * 40), ("a",))
    X = rng.normal(size=(1000, 1))
    observed = ranges.observe(X, np.zeros(0))
    step = -(-1000 // LOOKED_AT)
    some = X[::step].astype(np.float32)
    assert observed.upto[0].tolist() == pytest.approx(
        [(some[:, 0] <= edge).mean() for edge in ranges.edges[0]]
    )
    spread = np.float32(X.std())
    assert observed.upto[1].tolist() == [float(spread <= edge) for edge in ranges.edges[1]]
    assert observed.upto[2].tolist() == [float(edge >= 1000) for edge in ranges.edges[2]]


def test_who_watches_sees_all_documents_and_nobody_else_is_told():
    reranker = TextReranker(quick=True).fit(made(12, 0))
    seen: list[Scored] = []
    with observing(seen.append):
        ranking = reranker.rank("when does the zyx sail?", ["It sails.", "No.", "A ship."], 1)
    reranker.rank("when?", ["It sails."])
    [scored] = seen
    assert len(scored.raw) == 3
    assert scored.raw.max() == ranking[0].raw
    assert scored.probability is not None
    assert scored.probability[ranking[0].index] == ranking[0].probability
    words, unseen = scored.unseen_words()
    assert words == 5
    assert unseen >= 1
    observed = scored.observed()
    assert observed is not None
    assert observed.n_queries == 1
    assert reranker.ranges_.judge(observed).n_queries == 1


def test_a_reranker_without_ranges_has_nothing_to_compare_with():
    lists = made(4, 0)
    from didyma import SVMRanker

    reranker = Reranker(TextFeatures([SmallFeatures()]), SVMRanker(C=1)).fit(lists)
    seen: list[Scored] = []
    with observing(seen.append):
        reranker.rank("when?", ["It sails."])
    assert seen[0].observed() is None
    assert seen[0].imputed() == {}
    assert isinstance(seen[0].windowed, Windowed)
