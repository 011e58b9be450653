"""Losses by name, and what is refused."""

from __future__ import annotations

import pytest

from didyma.errors import DataError
from didyma.ranking.losses import NDCG, PrecisionAt, StepLoss, parse_loss


@pytest.mark.parametrize(
    "name",
    ["ap", "rr", "roc", "ndcg", "ndcg@10", "precision@5", "ap(rel=2)", "ndcg@3(gain=linear)"],
)
def test_losses_and_their_names(name):
    assert str(parse_loss(name)) == name
    assert parse_loss(parse_loss(name)) == parse_loss(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "unknown loss 'nonsense'"),
        ("ap@10", "no cut-off"),
        ("precision@0", "^loss: expected a cut-off from 1 to .*, found 0 in 'precision@0'"),
        ("ndcg@" + "9" * 26, "^loss: expected a cut-off from 1 to 2147483647, found 99"),
        ("ndcg@" + "9" * 9999, "^loss: unknown loss"),
        ("ap(gain=linear)", "no gain"),
        ("ap(rel=two)", "number for rel"),
        ("ap(rel=inf)", "^loss: expected a finite grade"),
        ("ap(rel=1,rel=2)", "expected options as in"),
        ("ap(level=2)", "expected options as in"),
        ("ap()", "expected options as in"),
        ("ndcg(gain=cubic)", "^loss: expected 'exponential' or 'linear'"),
    ],
)
def test_losses_that_make_no_sense(name, message):
    with pytest.raises(DataError, match=message):
        parse_loss(name)


@pytest.mark.parametrize("loss", [PrecisionAt, NDCG, StepLoss])
@pytest.mark.parametrize("k", [0, -1, 2.5, "3", 2**31, 10**26])
def test_a_cut_off_is_a_rank(loss, k):
    with pytest.raises(DataError, match="k: expected a cut-off from 1 to"):
        loss(k=k)


def test_precision_needs_a_cut_off():
    with pytest.raises(DataError, match="k: expected a cut-off from 1 to 2147483647, found None"):
        PrecisionAt(k=None)
