"""Orders that need no training: the figures that what was learned is compared with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import didyma
from didyma import DataError, Lists, TextReranker
from didyma.data.texts import reader
from didyma.metrics import Evaluator, evaluate
from tests.text.texts import made


@pytest.mark.parametrize("scores", [False, True])
def test_figures_of_the_gate_can_be_made_again(scores: bool, tmp_path: Path) -> None:
    lists = made(30, scores=scores)
    reranker = TextReranker(quick=True).fit(lists)
    gate = reranker.gate_
    assert not reranker.interrupted_
    reranker.save(tmp_path / "model")
    for own in (reranker, didyma.load(tmp_path / "model")):
        name, before = own.baseline(lists)
        assert name == gate.baseline
        assert evaluate(before, lists.y, lists.groups).mean("AP") == gate.baseline_value
    held_out = evaluate(reranker.out_of_fold_, lists.y, lists.groups).mean("AP")
    assert held_out == pytest.approx(gate.value)
    assert gate.baseline_value == max(order.value for order in gate.opponents)
    if scores:
        with pytest.raises(DataError, match="first stage's scores"):
            reranker.predict(made(3))


def test_ties_are_broken_by_ids_as_in_reports() -> None:
    lists = made(20)
    names = [[f"{q}-{n}" for n in range(6)] for q in range(20)]
    ids = Lists(
        lists.items,
        lists.y,
        docid=np.array(names).ravel(),
        queries=lists.queries,
        grouping=lists.groups,
    )
    reranker = TextReranker(quick=True).fit(ids)
    _, scores = reranker.baseline(ids)
    evaluation = Evaluator(ids.y, ids.groups, "AP", docid=ids.docid)(scores)
    assert reranker.gate_.baseline_value == pytest.approx(evaluation.mean("AP"))


def test_figures_of_a_file_and_of_lists_differ_by_ties_only(tmp_path: Path) -> None:
    """Ties are broken at random, seeded by the query's name: a file counts from 1, lists from 0.

    The mean over all orders of the ties is the same.
    """
    queries, texts = ["where is it", "who is it"], ["It is here.", "It is he.", "No.", "It is she."]
    labels = [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]]
    lists = Lists.of_texts(queries, [texts, texts], labels)
    lines = [{"query": q, "passages": texts, "labels": own} for q, own in zip(queries, labels)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    read = reader.read(tmp_path / "a.jsonl")
    assert (lists.groups.names.tolist(), read.groups.names.tolist()) == ([0, 1], ["1", "2"])
    named = Lists(
        lists.items, lists.y, read.qid, queries=lists.queries
    )  # the lists, by the names of the file
    tied, expected = np.zeros(8), []
    for own in (lists, named, read):
        evaluator = Evaluator(own.y, own.groups, "AP")
        expected.append(evaluator.expected(tied)["AP"].tolist())
    assert expected[0] == expected[1] == expected[2]
    first, second, third = (
        Evaluator(own.y, own.groups, "AP")(tied)["AP"].tolist() for own in (lists, named, read)
    )
    assert second == third != first
