"""One label of several judges, and lists of what was judged."""

from __future__ import annotations

import pytest

from didyma.errors import DataError
from didyma.judgements import Judgement, lists_of, merge


def test_the_latest_of_a_judge_counts_and_the_lower_median_of_several() -> None:
    def said(who: str, label: int | None, day: int) -> Judgement:
        return Judgement("q", "d", label, who=who, when=f"2026-01-{day:02}T00:00:00+00:00")

    assert [own.label for own in merge([said("a", 3, 2), said("a", 1, 1)])] == [3]
    assert [own.label for own in merge([said("a", 3, 2), said("a", 1, 2)])] == [1]
    assert merge([said("a", 3, 1), said("a", None, 2)]) == []
    assert [own.label for own in merge([said("a", 3, 1), said("b", 1, 1)])] == [1]
    assert [own.label for own in merge([said("a", 3, 1), said("b", 1, 1)], {"b": 0})] == [3]
    with pytest.raises(DataError, match="0 or more"):
        merge([said("a", 3, 1)], {"a": -1})


def test_lists_have_texts_and_ids() -> None:
    lists = lists_of([Judgement("q", "d1", 1, text="They rang."), Judgement("q", "It rains.", 0)])
    assert lists.texts == ["They rang.", "It rains."]
    assert lists.docid.tolist() == ["d1", "It rains."]
    assert lists.labels.tolist() == [1.0, 0.0]
    with pytest.raises(DataError, match="found ids alone, such as 'd1'"):
        lists_of([Judgement("q", "d1", 1)])
