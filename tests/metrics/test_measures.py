from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from ir_measures import AP, RR, P, nDCG

from didyma.errors import DataError
from didyma.metrics.evaluation import evaluate
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
    if needed not in ([], ["cutoff"]):
        return
    text = f"{name}@7" if needed else name
    try:
        found = parse(text)
    except DataError as error:
        assert "cannot be computed" in str(error)  # noqa: PT017
        assert not is_listed(measure) or measure.NAME in ("ERR", "RBP")  # with other parameters
    else:
        assert found == ir_measures.parse_measure(text)
        assert is_listed(measure)


def is_listed(measure: ir_measures.Measure) -> bool:
    """Whether the message about an unknown measure offers this one."""
    with pytest.raises(DataError) as caught:
        parse("unheard")
    _, _, listed = caught.value.problem.partition("there are ")
    return measure.NAME in listed.partition(" (")[0].split(", ")


EXTREMES = ("rel=2147483647", "cutoff=2147483647", "gains={1: 2147483647}", "gains={2147483647: 1}")
EXTREMES += ("beta=1e308", "p=1e308", "max_rel=2147483647", "judged_only=True, rel=2147483647")


@pytest.mark.parametrize("params", EXTREMES)
@pytest.mark.parametrize("name", sorted({m.NAME for m in ir_measures.measures.registry.values()}))
def test_what_can_be_parsed_can_be_computed(name: str, params: str) -> None:
    """Also where no label reaches a level, which trec_eval does not survive."""
    for cutoff in ("", ", cutoff=5"):
        try:
            measure = parse(f"{name}({params}{'' if 'cutoff' in params else cutoff})")
        except DataError:
            continue
        value = evaluate([3.0, 2.0, 1.0, 0.0], [1, 0, 2, 0], measures=measure).mean(measure)
        assert np.isnan(value) or 0 <= value <= 4


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
        ("nDCG(gains={0: -1})", "gains from 0 to 2147483647"),
        ("nDCG(gains={0: 1e300})", "gains from 0 to 2147483647"),
        ("nDCG@99999999999999999999", "'cutoff' to be at most 2147483647"),
        ("AP(rel=99999999999999999999)", "'rel' to be at most 2147483647"),
        (f"nDCG@{'9' * 5000}", "cannot read measure 'nDCG@9{20,60}; expected"),
        ("nDCG@010", "cannot read"),
        ("alpha_nDCG@10", "cannot be computed without the package pyndeval"),
        ("RBP(rel=1)", "cannot be computed without the package cwl_eval"),
        ("RBP", "cannot be computed with these parameters"),
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
