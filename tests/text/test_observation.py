"""Observers of rankings."""

from __future__ import annotations

from didyma.ranking.featuriser import Windowed
from didyma.text import Reranker, SmallFeatures, TextFeatures, TextReranker
from didyma.text.observation import Scored, observing
from tests.text.texts import made


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
