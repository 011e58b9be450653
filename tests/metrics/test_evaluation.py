from __future__ import annotations

import gzip
import json
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.metrics import Evaluator, RunEvaluator, evaluate, evaluate_run
from didyma.metrics.evaluation import warn_if_all_relevant
from didyma.metrics.measures import ROCArea, parse, parse_all

SHARED = parse_all(
    "AP AP@3 AP(rel=2) RR RR(rel=2) P@2 R@2 R(rel=2)@30 Success@2 Rprec nDCG nDCG@3 "
    "nDCG(gains={0:1,1:4})@4 Bpref SetP AP(judged_only=True)"
)


@dataclass(frozen=True)
class Run:
    qid: NDArray[Any]
    docid: NDArray[Any]
    score: NDArray[Any]


@dataclass(frozen=True)
class Qrels:
    qid: NDArray[Any]
    docid: NDArray[Any]
    relevance: NDArray[Any]


def make_run(rows: list[tuple[str, str, float]]) -> Run:
    qid, docid, score = zip(*rows)
    return Run(np.array(qid), np.array(docid), np.array(score))


def make_qrels(rows: list[tuple[str, str, int]]) -> Qrels:
    qid, docid, relevance = zip(*rows)
    return Qrels(np.array(qid), np.array(docid), np.array(relevance))


def unique_documents(last: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    row = st.tuples(
        st.sampled_from(["q1", "q2", "q3", "q4"]), st.sampled_from("abcdefghijkl"), last
    )
    return st.lists(row, min_size=1, max_size=40, unique_by=lambda row: row[:2])


def assert_equal_to_ir_measures(run: Run, qrels: Qrels, measures: tuple[Any, ...]) -> None:
    found = evaluate_run(run, qrels, measures)
    place = {query: i for i, query in enumerate(found.queries.tolist())}
    judged: dict[str, dict[str, int]] = {query: {} for query in place}
    for query, document, label in zip(qrels.qid.tolist(), qrels.docid.tolist(), qrels.relevance):
        judged[query][document] = int(label)
    for labels in judged.values():
        if max(labels.values()) < 0:
            labels.clear()  # trec_eval crashes where all labels are negative
    retrieved = [
        ir_measures.ScoredDoc(*row)
        for row in zip(run.qid.tolist(), run.docid.tolist(), run.score.tolist())
    ]
    for measure in measures:  # one at a time: together ir_measures confuses gains of their own
        for value in ir_measures.iter_calc([measure], judged, retrieved):
            assert found[measure][place[value.query_id]] == pytest.approx(value.value, abs=1e-12)
        mean = ir_measures.calc_aggregate([measure], judged, retrieved)[measure]
        assert found.mean(measure) == pytest.approx(mean, abs=1e-12)


@settings(deadline=None)
@given(unique_documents(st.integers(0, 4)), unique_documents(st.integers(-1, 3)))
def test_values_of_runs_equal_those_of_ir_measures(
    run: list[tuple[str, str, int]], qrels: list[tuple[str, str, int]]
) -> None:
    if {row[0] for row in run} & {row[0] for row in qrels}:
        assert_equal_to_ir_measures(
            make_run([(q, d, s / 3) for q, d, s in run]), make_qrels(qrels), SHARED
        )


def test_a_real_run_has_the_values_of_ir_measures(shared_data: Path) -> None:
    folder = shared_data / "robust03"
    path = sorted(folder.rglob("*.gz"))[0]
    with gzip.open(path, "rt") as lines:
        fields = [line.split() for line in lines]
    run = make_run([(field[0], field[2], float(field[4])) for field in fields])
    path = next(p for p in folder.rglob("*qrels*") if p.is_file())
    fields = [line.split() for line in path.read_text().splitlines()]
    qrels = make_qrels([(field[0], field[2], int(field[3])) for field in fields])
    assert_equal_to_ir_measures(run, qrels, parse_all("AP RR P@10 nDCG@20 R@1000 Rprec"))


def test_what_is_missing_or_unjudged() -> None:
    qrels = make_qrels([("1", "a", 1), ("1", "b", 2), ("1", "c", 0), ("2", "a", 1), ("3", "a", 0)])
    run = make_run([("1", "x", 9.0), ("1", "b", 8.0), ("9", "a", 1.0), ("3", "a", 1.0)])
    found = evaluate_run(run, qrels, "AP R@5 nDCG ROCArea RR@1")
    assert found.queries.tolist() == ["1", "2", "3"]
    assert found["AP"].tolist() == [0.25, 0, 0]
    assert found["R@5"].tolist() == [0.5, 0, 0]
    assert found["nDCG"][0] == pytest.approx((2 / np.log2(3)) / (2 + 1 / np.log2(3)))
    # The relevant document that was not retrieved stands below x, like the one that was.
    assert found[ROCArea].tolist() == [0, 0, 0]


def test_roc_area_of_a_run_places_missing_documents_last() -> None:
    qrels = make_qrels([("1", "a", 1), ("1", "b", 1)])
    run = make_run([("1", "a", 2.0), ("1", "x", 1.0)])
    assert evaluate_run(run, qrels, ROCArea).mean(ROCArea) == 0.5


def test_numbers_and_text_name_the_same_query() -> None:
    qrels = Qrels(np.array([301, 301]), np.array(["a", "b"]), np.array([0, 1]))
    assert evaluate_run(make_run([("301", "b", 1.0)]), qrels, "AP").mean("AP") == 1


def test_measures_to_which_all_rows_are_relevant_are_told() -> None:
    grades, measures = np.array([1.0, 5.0, 3.0, 2.0, 4.0]), parse_all("AP P@2 AP(rel=4) nDCG")
    with pytest.warns(UserWarning, match=r"to AP, P@2; give a level, as AP\(rel=4\)"):
        warn_if_all_relevant(measures, grades)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for labels in (grades - 1, np.ones(5), -grades, np.zeros(0)):
            warn_if_all_relevant(measures, labels)


def test_an_evaluator_serves_many_runs() -> None:
    qrels = make_qrels([("1", "a", 1), ("1", "b", 0), ("2", "c", 1)])
    evaluator = RunEvaluator(qrels, "AP")
    assert evaluator(make_run([("1", "a", 1.0), ("1", "b", 2.0)]))["AP"].tolist() == [0.5, 0]
    assert evaluator(make_run([("2", "c", 1.0)]))["AP"].tolist() == [0, 1]


def test_mistakes_in_runs_are_explained() -> None:
    qrels = make_qrels([("1", "a", 1)])
    with pytest.raises(DataError, match="no query of the run is judged"):
        evaluate_run(make_run([("2", "a", 1.0)]), qrels, "AP")
    with pytest.raises(DataError, match="run: row 2: document a is listed twice for query 1"):
        evaluate_run(make_run([("1", "a", 1.0), ("1", "b", 1.0), ("1", "a", 2.0)]), qrels, "AP")
    with pytest.raises(DataError, match="qrels: row 1: document a is listed twice for query 1"):
        evaluate_run(make_run([("1", "a", 1.0)]), make_qrels([("1", "a", 1), ("1", "a", 0)]), "AP")
    with pytest.raises(DataError, match="scores: row 0: expected a number, found NaN"):
        evaluate_run(make_run([("1", "a", float("nan"))]), qrels, "AP")
    with pytest.raises(DataError, match="no judgements"):
        RunEvaluator(Qrels(np.array([]), np.array([]), np.array([])), "AP")


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.integers(-1, 4), st.integers(-1, 3)),
        min_size=1,
        max_size=50,
    ),
    st.randoms(use_true_random=False),
)
def test_with_ids_the_order_of_rows_does_not_matter(
    rows: list[tuple[str, int, int]], random: Random
) -> None:
    qid, scores, y = (list(column) for column in zip(*rows))
    docid = [f"d{i}" for i in range(len(rows))]
    mixed = list(range(len(rows)))
    random.shuffle(mixed)
    first = evaluate(scores, y, Groups.from_qid(qid), "AP nDCG@3 P@2", docid=docid)
    second = evaluate(
        [scores[i] for i in mixed],
        [y[i] for i in mixed],
        Groups.from_qid([qid[i] for i in mixed]),
        "AP nDCG@3 P@2",
        docid=[docid[i] for i in mixed],
    )
    for measure in first.values:
        assert dict(zip(first.queries, first[measure])) == dict(
            zip(second.queries, second[measure])
        )


def test_an_evaluator_serves_many_scores() -> None:
    random = np.random.default_rng(3)
    groups = Groups.from_qid(random.integers(0, 20, 500))
    y = random.integers(0, 3, 500)
    evaluator = Evaluator(y, groups, "AP nDCG@5 Rprec")
    for _ in range(3):
        scores = random.integers(0, 9, 500)
        once = evaluate(scores, y, groups, "AP nDCG@5 Rprec")
        again = evaluator(scores)
        assert all((once[m] == again[m]).all() for m in evaluator.measures)


@pytest.mark.parametrize(
    ("scores", "y", "measures", "message"),
    [
        ([1, np.nan], [0, 1], "AP", "scores: row 1: expected a number, found NaN"),
        ([1], [0, 1], "AP", r"scores: expected 2 values, found shape \(1,\)"),
        ([1, 2], [0], "AP", r"y: expected 2 values, found shape \(1,\)"),
        ([1, 2], [0, np.nan], "AP", "y: row 1: expected a finite label, found nan"),
        ([1, 2], [0, 0.5], "Bpref", "y: this measure needs integers for labels, found 0.5"),
        ([1, 2], [0, 1], "AQ", "unknown measure 'AQ'"),
        ([1, 2], [0, 1], "RBP", "'RBP' cannot be computed"),
    ],
)
def test_mistakes_are_explained(
    scores: list[float], y: list[float], measures: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        evaluate(scores, y, Groups.from_sizes([2], 2), measures)


def test_there_must_be_a_query() -> None:
    with pytest.raises(DataError, match="no queries"):
        evaluate([], [], Groups.from_sizes([], 0), "AP")


def test_results_are_found_by_name_and_written_as_json() -> None:
    result = evaluate([2, 1, 1, 2], [1, 0, 1, 0], Groups.from_qid([7, 7, 8, 8]), "map P@1")
    assert result["AP"] is result[parse("AP")]
    assert json.loads(json.dumps(result.to_dict())) == {
        "mean": {"AP": 0.75, "P@1": 0.5},
        "queries": {"7": {"AP": 1.0, "P@1": 1.0}, "8": {"AP": 0.5, "P@1": 0.0}},
    }
    assert repr(result) == "Evaluation(2 queries: AP 0.7500, P@1 0.5000)"
    with pytest.raises(KeyError, match=r"RR was not evaluated; there are AP, P@1"):
        result["RR"]


def test_importing_metrics_imports_little() -> None:
    code = (
        "import sys, didyma.metrics; "
        "sys.exit(str({'sklearn', 'pandas', 'scipy.stats'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "set()"
