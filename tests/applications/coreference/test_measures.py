"""Coreference measures: worked examples of the papers, and their definitions done slowly."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.applications.coreference.measures import (
    b_cubed,
    ceaf_e,
    ceaf_m,
    conll,
    evaluate,
    mitre_loss,
    muc,
    pair_loss,
)
from didyma.errors import DataError

labels = st.lists(st.integers(0, 4), min_size=1, max_size=7)
clusterings = st.integers(0, 7).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


# Vilain et al. 1995: links of the key that a response has, and the other way round.
@pytest.mark.parametrize(
    ("gold", "predicted", "recall", "precision"),
    [
        ([0, 0, 0, 0], [0, 0, 1, 1], 2 / 3, 1.0),
        ([0, 0, 1, 1], [0, 0, 0, 0], 1.0, 2 / 3),
        ([0, 0, 0, 0], [0, 0, 0, 0], 1.0, 1.0),
        ([0, 0, 0, 0], [0, 0, 1, 2], 1 / 3, 1.0),
        ([0, 0, 0, 1, 1], [0, 0, 1, 1, 1], 2 / 3, 2 / 3),
    ],
)
def test_muc_counts_links(gold, predicted, recall, precision):
    score = muc(gold, predicted)
    assert (score.recall, score.precision) == pytest.approx((recall, precision))


KEY = [0] * 5 + [1] * 2 + [2] * 5
RESPONSES = {
    "second and third together": [0] * 5 + [1] * 7,
    "first and third together": [0] * 5 + [1] * 2 + [0] * 5,
    "all together": [0] * 12,
    "all apart": list(range(12)),
}


# Bagga & Baldwin 1998: MUC cannot tell the first two responses apart, B³ can.
def test_b_cubed_punishes_the_larger_mistake():
    first, second = (list(RESPONSES.values())[k] for k in (0, 1))
    assert muc(KEY, first).precision == muc(KEY, second).precision == pytest.approx(0.9)
    assert b_cubed(KEY, first).precision == pytest.approx(16 / 21)
    assert b_cubed(KEY, second).precision == pytest.approx(7 / 12)
    assert b_cubed(KEY, first).recall == b_cubed(KEY, second).recall == 1.0


# Luo 2005, Table 1: F1 of MUC, B³, CEAF_m and CEAF_e.
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("second and third together", (0.947, 0.865, 0.833, 0.733)),
        ("first and third together", (0.947, 0.737, 0.583, 0.667)),
        ("all together", (0.900, 0.545, 0.417, 0.294)),
        ("all apart", (0.0, 0.400, 0.250, 0.178)),
    ],
)
def test_the_table_of_luo(name, values):
    found = [measure(KEY, RESPONSES[name]).f1 for measure in (muc, b_cubed, ceaf_m, ceaf_e)]
    assert found == pytest.approx(values, abs=5e-4)
    assert mitre_loss(KEY, RESPONSES[name]) == pytest.approx(1 - found[0])
    assert conll(KEY, RESPONSES[name]) == pytest.approx((found[0] + found[1] + found[3]) / 3)


def sets(labels):
    return [{i for i, own in enumerate(labels) if own == label} for label in sorted(set(labels))]


@given(clusterings)
def test_measures_equal_their_definitions(both):
    gold, predicted = both
    G, P = sets(gold), sets(predicted)
    n = len(gold)

    def ratio(a, b):
        return a / b if b else 1.0

    links = sum(len(g) - sum(bool(g & p) for p in P) for g in G)
    assert muc(gold, predicted).recall == pytest.approx(ratio(links, n - len(G)))
    own = [(next(g for g in G if i in g), next(p for p in P if i in p)) for i in range(n)]
    score = b_cubed(gold, predicted)
    assert score.recall == pytest.approx(ratio(sum(len(g & p) / len(g) for g, p in own), n))
    assert score.precision == pytest.approx(ratio(sum(len(g & p) / len(p) for g, p in own), n))
    few, many = sorted((G, P), key=len)
    for measure, worth in (
        (ceaf_m, lambda a, b: len(a & b)),
        (ceaf_e, lambda a, b: 2 * len(a & b) / (len(a) + len(b))),
    ):
        best = max(
            sum(worth(a, b) for a, b in zip(few, chosen)) for chosen in permutations(many, len(few))
        )
        total = sum(worth(g, g) for g in G)
        assert measure(gold, predicted).recall == pytest.approx(ratio(best, total))
    pairs = list(combinations(range(n), 2))
    wrong = sum((gold[i] == gold[j]) != (predicted[i] == predicted[j]) for i, j in pairs)
    assert pair_loss(gold, predicted) == pytest.approx(wrong / len(pairs) if pairs else 0.0)


@given(clusterings)
def test_precision_is_recall_with_roles_exchanged(both):
    for measure in (muc, b_cubed, ceaf_m, ceaf_e):
        score, turned = measure(*both), measure(*reversed(both))
        assert (score.precision, score.recall) == pytest.approx((turned.recall, turned.precision))
    assert pair_loss(*both) == pair_loss(*reversed(both))


@given(labels)
def test_the_gold_clusters_are_perfect_under_any_names(gold):
    renamed = [f"cluster {9 - label}" for label in gold]
    found = evaluate([gold], [renamed])
    assert all(found[name].f1 == 1.0 for name in ("muc", "b_cubed", "ceaf_m", "ceaf_e"))
    assert found["mitre_loss"] == found["pair_loss"] == 0.0


def test_documents_are_pooled():
    golds = [np.array([0, 0, 0, 0]), np.array([0, 0])]
    predicted = [np.array([0, 0, 1, 1]), np.array([0, 0])]
    found = evaluate(golds, predicted)
    assert found["muc"].recall == pytest.approx(3 / 4)
    assert found["pair_loss"] == pytest.approx(4 / 7)
    assert found["mean_pair_loss"] == pytest.approx((4 / 6 + 0) / 2)
    assert found["mean_mitre_loss"] == pytest.approx((1 - 0.8) / 2)


def test_different_mentions_are_refused():
    with pytest.raises(DataError, match="two clusterings of the same mentions"):
        muc([0, 0], [0, 0, 0])
    with pytest.raises(DataError, match="found 1 for 2"):
        evaluate([[0], [0]], [[0]])
