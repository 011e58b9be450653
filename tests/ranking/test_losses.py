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
        ("precision@0", "at least 1"),
        ("ap(gain=linear)", "no gain"),
        ("ap(rel=two)", "number for rel"),
        ("ap(rel=inf)", "finite grade"),
        ("ap(rel=1,rel=2)", "expected options as in"),
        ("ap(level=2)", "expected options as in"),
        ("ap()", "expected options as in"),
        ("ndcg(gain=cubic)", "'exponential' or 'linear'"),
    ],
)
def test_losses_that_make_no_sense(name, message):
    with pytest.raises(DataError, match=message):
        parse_loss(name)


@pytest.mark.parametrize("loss", [PrecisionAt, NDCG, StepLoss])
@pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
def test_a_cut_off_is_a_rank(loss, k):
    with pytest.raises(DataError, match="k: expected a cut-off of at least 1"):
        loss(k=k)


def test_precision_needs_a_cut_off():
    with pytest.raises(DataError, match="k: expected a cut-off of at least 1, found None"):
        PrecisionAt(k=None)
