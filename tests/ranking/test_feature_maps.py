"""Feature maps by name, weights of ranks, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.ranking.feature_maps import Positional, parse_feature_map


@pytest.mark.parametrize(
    "name",
    ["pairwise", "positional", "positional:discount", "positional:1.0,0.5", "truncated", "top@3"],
)
def test_feature_maps_and_their_names(name):
    assert str(parse_feature_map(name)) == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("triple", "unknown feature map"),
        ("top@x", "unknown feature map"),
        ("top@0", "^feature_map: expected a cut-off from 1 to .*, found 0 in 'top@0'"),
        ("top@" + "9" * 30, "^feature_map: expected a cut-off from 1 to 2147483647, found 99"),
        ("top@" + "9" * 9999, "unknown feature map"),
        ("positional:0.1,0.5", "^feature_map: .* non-increasing"),
        ("positional:a,b", "unknown feature map"),
    ],
)
def test_feature_maps_that_make_no_sense(name, message):
    with pytest.raises(DataError, match=message):
        parse_feature_map(name)


def test_rank_weights_go_on_with_zeros():
    np.testing.assert_allclose(Positional((1.0, 0.5)).weights_for(4), [1.0, 0.5, 0.0, 0.0])
    with pytest.raises(DataError, match="rank weights for a query of 4 rows"):
        Positional((1.0, -0.5)).weights_for(4)
