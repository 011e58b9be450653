"""What to judge next, against the formula row by row."""

from __future__ import annotations

import math

import numpy as np

from didyma.judgements import work_list
from didyma.text.text_reranker import TextReranker
from tests.text.texts import made


def test_values_are_those_of_the_formula() -> None:
    lists = made(8, 0)
    reranker, other = (TextReranker(quick=True).fit(made(12, seed)) for seed in (1, 2))
    found = work_list(reranker, lists, other, top=10_000)
    assert len(found) == len(lists)
    assert [own.value for own in found] == sorted((own.value for own in found), reverse=True)
    texts, scores = lists.texts, other.predict(lists)
    for number, query in enumerate(lists.query_texts):
        rows = lists.groups.rows_of(number)
        ranked = reranker.rank(query, [texts[row] for row in rows])
        before = rows[np.argsort(-scores[rows], kind="stable")].tolist()
        for place, one in enumerate(ranked, 1):
            row = int(rows[one.index])
            p, other_place = one.probability, before.index(row) + 1
            gains = [1 / math.log2(1 + at) for at in (place, other_place)]
            least = math.sqrt(p * (1 - p)) * (gains[0] + abs(gains[0] - gains[1]))
            (item,) = [own for own in found if (own.query, own.text) == (query, texts[row])]
            assert least * (1 - 1e-9) <= item.value <= 2 * least * (1 + 1e-9)
            if "unlike" not in item.why and other_place == place:
                assert "uncertain top" in item.why


def test_what_is_judged_is_left_out() -> None:
    lists = made(4, 0)
    reranker = TextReranker(quick=True).fit(made(8, 1))
    first, *others = work_list(reranker, lists)
    again = work_list(reranker, lists, judged={(first.query, first.document)})
    assert again == others
    assert len(work_list(reranker, lists, top=3)) == 3
