"""Agreement against scikit-learn and against definitions pair by pair."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from didyma.errors import DataError
from didyma.judgements import (
    Judgement,
    agreement,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
)

RANDOM = np.random.default_rng(0)


def test_cohens_kappa_is_that_of_scikit_learn() -> None:
    for _ in range(20):
        a, b = RANDOM.integers(0, 4, (2, 30))
        assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))
        quadratic = cohen_kappa_score(a, b, weights="quadratic", labels=np.unique([a, b]))
        assert cohen_kappa(a, b, "ordinal") == pytest.approx(quadratic)
    assert cohen_kappa([1, 1], [1, 1]) == 1.0
    with pytest.raises(DataError, match="as many labels"):
        cohen_kappa([1], [1, 0])


def test_fleiss_kappa_is_that_of_his_table() -> None:
    """The example of Fleiss (1971) as it is taught: 10 subjects, 14 raters, 5 categories."""
    table = """0 0 0 0 14, 0 2 6 4 2, 0 0 3 5 6, 0 3 9 2 0, 2 2 8 1 1,
               7 7 0 0 0, 3 2 6 3 0, 2 5 3 2 2, 6 5 2 1 0, 0 2 2 3 7"""
    counts = [[int(own) for own in row.split()] for row in table.split(",")]
    assert fleiss_kappa(counts) == pytest.approx(0.2099, abs=1e-4)
    with pytest.raises(DataError, match="same number of judges"):
        fleiss_kappa([[2, 0], [1, 0]])


def by_pairs(table: np.ndarray, level: str) -> float:
    """Alpha from its definition: pairs within items against pairs of all labels."""
    items = [row[~np.isnan(row)] for row in table]
    items = [row for row in items if len(row) > 1]
    labels = np.concatenate(items)

    def squared(a: float, b: float) -> float:
        if level == "nominal":
            return float(a != b)
        low, high = sorted((a, b))
        between = ((labels >= low) & (labels <= high)).sum()
        return float(between - ((labels == a).sum() + (labels == b).sum()) / 2) ** 2

    within = sum(
        sum(squared(a, b) for a, b in permutations(row, 2)) / (len(row) - 1) for row in items
    )
    anywhere = sum(squared(a, b) for a, b in permutations(labels, 2)) / (len(labels) - 1)
    return 1 - within / anywhere


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_krippendorffs_alpha_is_that_of_pairs(level: str) -> None:
    for _ in range(10):
        table = RANDOM.integers(0, 4, (8, 4)).astype(float)
        table[RANDOM.random(table.shape) < 0.3] = np.nan
        assert krippendorff_alpha(table, level) == pytest.approx(by_pairs(table, level))
    assert np.isnan(krippendorff_alpha([[1, np.nan]], level))


def test_a_model_is_one_more_judge_with_its_own_weight() -> None:
    truth = RANDOM.integers(0, 2, 200)
    noisy = np.where(RANDOM.random(200) < 0.3, 1 - truth, truth)
    said = [
        Judgement("q", f"d{n}", int(label), who=who)
        for who, labels in (("anna", truth), ("bert", truth), ("model", noisy))
        for n, label in enumerate(labels)
    ]
    found = agreement(said)
    weights = found.weights
    assert found.fleiss is not None
    assert found.fleiss[1:] == (200, 3)
    assert weights["model"] < 0.6 < weights["anna"]
    assert weights["model"] == pytest.approx(cohen_kappa_score(truth, noisy))
