from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from collections.abc import Sequence

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.metrics import evaluate, expected
from didyma.metrics.measures import ROCArea, is_native, parse, parse_all

# All of these are computed by trec_eval, with its tie rule.
SHARED = parse_all(
    "AP AP@3 AP(rel=2) AP(rel=2)@2 RR RR(rel=2) P@1 P@5 P(rel=2)@3 R@2 R(rel=2)@30 "
    "Success@1 Success(rel=3)@4 Rprec Rprec(rel=2) nDCG nDCG@1 nDCG@4 nDCG@50 "
    "nDCG(gains={0:1,1:0,2:5})@3 nDCG(gains={3:9})"
)

# Asked for together, measures with gains of their own and those without get each other's gains from
# ir-measures, depending on the order of a set.
ALIKE = [
    [measure for measure in SHARED if "gains" not in str(measure)],
    *([measure] for measure in SHARED if "gains" in str(measure)),
]

judged_rows = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(-1, 4), st.integers(-1, 3)),
    min_size=1,
    max_size=50,
)


def columns(
    rows: list[tuple[str, int, int]],
) -> tuple[Groups, list[float], list[int], list[str]]:
    qid, scores, y = (list(column) for column in zip(*rows))
    docid = [f"d{(i * 7919) % 101}" for i in range(len(rows))]
    return Groups.from_qid(qid), [score / 3 for score in scores], y, docid


@settings(deadline=None)
@given(judged_rows)
def test_values_equal_those_of_ir_measures(rows: list[tuple[str, int, int]]) -> None:
    groups, scores, y, docid = columns(rows)
    found = evaluate(scores, y, groups, SHARED, docid=docid)
    qrels: dict[str, dict[str, int]] = {name: {} for name in groups.names.tolist()}
    run: dict[str, dict[str, float]] = {name: {} for name in groups.names.tolist()}
    for (query, _, label), document, score in zip(rows, docid, scores):
        qrels[query][document] = label
        run[query][document] = score
    for judged in qrels.values():
        if max(judged.values()) < 0:
            judged.clear()  # trec_eval crashes where all labels are negative
    for together in ALIKE:
        for value in ir_measures.iter_calc(together, qrels, run):
            place = groups.names.tolist().index(value.query_id)
            assert found[value.measure][place] == pytest.approx(value.value, abs=1e-12)
        means = ir_measures.calc_aggregate(together, qrels, run)
        for measure in together:
            assert found.mean(measure) == pytest.approx(means[measure], abs=1e-12)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(1, 5))
def test_exponential_gains_and_cut_reciprocal_rank(y: list[int], k: int) -> None:
    groups = Groups.from_sizes([len(y)], len(y))
    found = evaluate(
        -np.arange(len(y)), y, groups, f"nDCG(dcg='exp-log2')@{k} RR@{k} RR(rel=2)@{k}"
    )

    def dcg(labels: Sequence[int]) -> float:
        return sum((2**y - 1) / math.log2(rank + 2) for rank, y in enumerate(labels[:k]))

    ideal = dcg(sorted(y, reverse=True))
    assert found.mean(f"nDCG(dcg='exp-log2')@{k}") == pytest.approx(dcg(y) / ideal if ideal else 0)
    for rel in (1, 2):
        ranks = [rank for rank, label in enumerate(y[:k], 1) if label >= rel]
        assert found.mean(f"RR(rel={rel})@{k}") == (1 / ranks[0] if ranks else 0)


@settings(deadline=None)
@given(judged_rows)
def test_roc_area_counts_tied_pairs_half(rows: list[tuple[str, int, int]]) -> None:
    groups, scores, y, _ = columns(rows)
    found = evaluate(scores, y, groups, "ROCArea")["ROCArea"]
    for q in range(len(groups)):
        own = groups.rows[groups.starts[q] : groups.starts[q + 1]]
        relevant = np.array(y)[own] >= 1
        if relevant.all() or not relevant.any():
            assert found[q] == float(relevant.all())
        else:
            assert found[q] == pytest.approx(roc_auc_score(relevant, np.array(scores)[own]))


def test_the_toy_example_of_yue_et_al() -> None:
    y, groups = [1, 0, 0, 0, 0, 1, 1, 0], Groups.from_sizes([8], 8)
    first = evaluate(np.arange(8, 0, -1), y, groups, "AP ROCArea")
    second = evaluate(np.arange(1, 9), y, groups, "AP ROCArea")
    assert (round(first.mean("AP"), 4), round(second.mean("AP"), 4)) == (0.5873, 0.5139)
    assert (round(first.mean(ROCArea), 4), round(second.mean(ROCArea), 4)) == (0.4667, 0.5333)


def test_measures_without_a_kernel_are_left_to_ir_measures() -> None:
    random = np.random.default_rng(5)
    qid = random.integers(0, 8, 200)
    groups, y, scores = Groups.from_qid(qid), random.integers(0, 3, 200), random.normal(size=200)
    measures = parse_all("Bpref AP infAP(rel=2) IPrec@0.5 SetP AP(judged_only=True)@5")
    found = evaluate(scores, y, groups, measures)
    assert list(found.values) == list(measures)
    qrels = [
        ir_measures.Qrel(str(q), str(i), int(label)) for i, (q, label) in enumerate(zip(qid, y))
    ]
    run = [ir_measures.ScoredDoc(str(q), str(i), s) for i, (q, s) in enumerate(zip(qid, scores))]
    for value in ir_measures.iter_calc(measures, qrels, run):
        place = groups.names.tolist().index(int(value.query_id))
        assert found[value.measure][place] == pytest.approx(value.value)


def test_negative_labels_do_not_crash_trec_eval() -> None:
    groups = Groups.from_sizes([2, 2], 4)
    for _ in range(50):
        found = evaluate([2, 1, 2, 1], [-1, -2, 1, -1], groups, "Bpref SetP")
        assert found["SetP"].tolist() == [0, 0.5]


def test_one_tie_rule_holds_for_measures_without_a_kernel() -> None:
    groups = Groups.from_sizes([3, 1], 4)
    docid, y = ["c", "a", "b", "a"], [0, 1, 1, 1]
    tied = evaluate([1.0, 1.0, 1.0, 1.0], y, groups, "Bpref", docid=docid)
    strict = evaluate([3.0, 1.0, 2.0, 1.0], y, groups, "Bpref")
    assert tied["Bpref"].tolist() == strict["Bpref"].tolist()


def test_a_query_that_ir_measures_leaves_out_is_not_averaged() -> None:
    groups = Groups.from_sizes([2, 2], 4)
    found = evaluate([2, 1, 2, 1], [1, 0, 0, 0], groups, "Accuracy")
    assert np.isnan(found["Accuracy"]).tolist() == [False, True]
    assert found.mean("Accuracy") == 1.0
    assert found.to_dict()["queries"]["1"] == {"Accuracy": None}


def all_orders(scores: Sequence[int]) -> list[list[int]]:
    """Every ranking of the rows by descending score."""
    blocks = [np.flatnonzero(scores == score) for score in np.unique(scores)[::-1]]
    orders = itertools.product(*(itertools.permutations(block) for block in blocks))
    return [[row for block in order for row in block] for order in orders]


@pytest.mark.parametrize("seed", range(14))
def test_expectations_average_over_all_orders_of_ties(seed: int) -> None:
    random = np.random.default_rng(seed)
    size = 1 + seed % 7
    scores, y = random.integers(0, 3, size), random.integers(0, 3, size)
    measures = parse_all(
        "AP AP@2 AP(rel=2) RR RR@2 P@1 P@3 R@2 Success@2 Rprec nDCG nDCG@3 "
        "nDCG(dcg='exp-log2')@2 ROCArea"
    )
    found = expected(scores, y, Groups.from_sizes([size], size), measures)
    orders = all_orders(scores)
    labels = y[np.array(orders)].ravel()
    one_query_each = Groups.from_sizes([size] * len(orders), len(labels))
    strict = evaluate(-np.arange(len(labels)), labels, one_query_each, measures)
    for measure in measures:
        assert found.mean(measure) == pytest.approx(strict.mean(measure), abs=1e-12)


def test_expectations_stop_at_the_border_of_a_query() -> None:
    groups = Groups.from_sizes([2, 2], 4)
    found = expected([1, 1, 1, 1], [1, 0, 1, 1], groups, "AP RR P@1 ROCArea nDCG@1")
    for measure in "AP", "RR":
        assert found[measure].tolist() == [0.75, 1.0]
    for measure in "P@1", "ROCArea", "nDCG@1":
        assert found[measure].tolist() == [0.5, 1.0]


@settings(deadline=None)
@given(judged_rows)
def test_without_ties_the_expectation_is_the_measure(rows: list[tuple[str, int, int]]) -> None:
    groups, _, y, _ = columns(rows)
    scores = np.arange(len(y))
    strict, mean = evaluate(scores, y, groups, SHARED), expected(scores, y, groups, SHARED)
    for measure in SHARED:
        assert mean[measure] == pytest.approx(strict[measure])


def test_an_expectation_needs_a_kernel() -> None:
    with pytest.raises(DataError, match="no expectation over ties is known for Bpref"):
        expected([1, 2], [0, 1], Groups.from_sizes([2], 2), "AP Bpref")


@pytest.mark.parametrize("seed", ["0", "4"])
def test_measures_with_gains_of_their_own_are_not_confused(seed: str) -> None:
    """Whatever the order of sets: with hashes of seed 0 ir-measures mixes these two up."""
    code = """
from didyma.metrics import evaluate, parse_all
measures = parse_all("nDCG(judged_only=True) nDCG(judged_only=True,gains={0:1,1:0,2:5})@3")
found = evaluate([0.0], [1], qid=["a"], measures=measures, docid=["d0"])
print(*(found[measure][0] for measure in measures))
"""
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1.0", "0.0"]


def test_kernels_cover_what_they_can() -> None:
    assert all(map(is_native, parse_all("AP@5 RR@5 nDCG P@5 R@5 Success@5 Rprec ROCArea")))
    assert is_native(parse("nDCG(dcg='exp-log2')"))
    for other in (
        parse("Bpref"),
        parse("AP(judged_only=True)"),
        ir_measures.nDCG(dcg="exp-log2", gains={1: 2}),
    ):
        assert not is_native(other)
