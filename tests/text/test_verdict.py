"""The verdict: which trial is selected, whether it ranks, and the figures that say so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from didyma import Lists, TextReranker
from didyma.data.texts import reader
from didyma.metrics import Evaluator
from didyma.metrics.significance import wilcoxon
from didyma.text.candidates import SINGLE, Candidate
from didyma.text.selection import Trial, decide, select
from tests.text.texts import made


def trial(values: np.ndarray) -> Trial:
    return Trial(Candidate("few", ("bm25",), (1.0,)), 1.0, SINGLE, np.zeros(0), values)


def test_the_surest_gain_is_kept() -> None:
    base = np.full(20, 0.5)
    sure, wild = np.full(20, 0.55), np.where(np.arange(20) < 11, 1.0, 0.1)
    assert wild.mean() > sure.mean()
    trials = [trial(values) for values in (base, sure, wild)]
    best = select(trials, base)
    assert best is trials[1]  # what could be chance makes room for what is sure
    bold = trial(np.where(np.arange(20) < 12, 0.7, 0.5))  # a gain of .12, of standard error .02
    assert select([*trials[:2], bold], base) is bold
    assert select([], base) is None
    passed = decide(best, "bm25", base, "AP")
    assert passed.passed
    assert passed.gain == pytest.approx(0.05)
    assert passed.p_value == wilcoxon(sure, base)  # the test that reports use
    assert passed.verdict.startswith("What was learned ranks")
    failed = decide(select(trials, base + 0.2), "bm25", base + 0.2, "AP")
    assert not failed.passed
    assert "so the order is that of bm25" in failed.verdict


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
