from __future__ import annotations

import ir_measures
import pytest
from ir_measures import AP, RR, P, nDCG

from didyma.errors import DataError
from didyma.metrics.measures import ROCArea, parse, parse_all


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("AP", AP),
        ("map", AP),
        ("MAP@100", AP @ 100),
        ("AP(rel=2)", AP(rel=2)),
        ("AP(rel=2)@5", AP(rel=2) @ 5),
        ("AP(cutoff=5)", AP @ 5),
        ("mrr", RR),
        ("RR(rel=2)", RR(rel=2)),
        ("recip_rank", RR),
        ("nDCG", nDCG),
        ("ndcg@10", nDCG @ 10),
        ("nDCG @ 10", nDCG @ 10),
        ("ndcg_cut_10", nDCG @ 10),
        ("nDCG(dcg='exp-log2')@5", nDCG(dcg="exp-log2") @ 5),
        ("nDCG(gains={1: 3, 2: 7})@5", nDCG(gains={1: 3, 2: 7}) @ 5),
        ("p@1", P @ 1),
        ("P_5", P @ 5),
        ("precision@5", P @ 5),
        ("recall@10", ir_measures.R @ 10),
        ("success@1", ir_measures.Success @ 1),
        ("rprec", ir_measures.Rprec),
        ("bpref", ir_measures.Bpref),
        ("IPrec@0.1", ir_measures.IPrec @ 0.1),
        ("IPrec@1", ir_measures.IPrec @ 1.0),
        ("ROCArea", ROCArea),
        ("auc(rel=2)", ROCArea(rel=2)),
    ],
)
def test_names_mean_measures(text: str, measure: ir_measures.Measure) -> None:
    assert parse(text) == measure
    assert parse(parse(text)) == measure
    assert parse(str(measure)) == measure


@pytest.mark.parametrize("name", sorted(ir_measures.measures.registry))
def test_names_of_ir_measures_keep_their_meaning(name: str) -> None:
    measure = ir_measures.measures.registry[name]
    needed = [key for key, info in measure.SUPPORTED_PARAMS.items() if info.required]
    if not needed:
        assert parse(name) == ir_measures.parse_measure(name)
    elif needed == ["cutoff"]:
        assert parse(f"{name}@7") == measure @ 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mapp", r"unknown measure 'mapp'; there are .*AP, .*nDCG.*ROCArea"),
        ("nDCG10", "unknown measure"),
        ("", "cannot read"),
        ("AP@", "cannot read"),
        ("AP(2)", "cannot read"),
        ("AP(rel=x)", "cannot read"),
        ("AP(rel=2", "cannot read"),
        ("AP(**{'rel': 2})", "cannot read"),
        ("P@5(rel=2)", "cannot read"),
        ("P", "needs a cutoff, as in P@10"),
        ("P@0", "'cutoff' to be at least 1"),
        ("AP(rel=0)", "'rel' to be at least 1"),
        ("AP(rel=1.5)", "1.5 is no int"),
        ("nDCG@1.5", "1.5 is no int"),
        ("AP(grade=2)", "no parameter 'grade'; it has: cutoff, rel"),
        ("nDCG(gains={0: -1})", "gains that are nonnegative numbers"),
        ("nDCG(dcg='log10')", "'log10' is no str that 'dcg' can take"),
    ],
)
def test_mistakes_are_explained(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse(text)


def test_a_measure_given_as_a_value_is_checked_too() -> None:
    # trec_eval would end the process at a cutoff of 0.
    with pytest.raises(DataError, match="at least 1"):
        parse(P @ 0)


def test_several_measures_are_listed_once_and_in_order() -> None:
    expected = (AP, nDCG(gains={0: 1, 1: 5}) @ 5, P(rel=2) @ 5)
    assert parse_all("map, nDCG(gains={0: 1, 1: 5})@5 P(rel=2)@5 AP") == expected
    assert parse_all(["MAP", *expected]) == expected
    assert parse_all(AP) == (AP,)
    with pytest.raises(DataError, match="at least one measure"):
        parse_all([])
