"""The reproduction of coreference: what the bootstrap resamples, and its intervals."""

from __future__ import annotations

import numpy as np
import pytest

from reproductions import latent_svm_coreference as coreference


@pytest.fixture
def part() -> coreference.Part:
    rng = np.random.default_rng(3)
    return coreference.Part([], [rng.integers(4, size=n) for n in (9, 5, 12, 1)])


def noisy(part: coreference.Part, share: float) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [
        np.where(rng.random(len(y)) < share, rng.integers(9, size=len(y)), y) for y in part.labels
    ]


def test_sums_over_documents_give_the_measures(part: coreference.Part) -> None:
    predicted = noisy(part, 0.4)
    found = coreference.pooled(np.array(part.compare(predicted)).sum(axis=0))
    expected = part.measure(predicted)
    assert {name: float(value) for name, value in found.items()} == pytest.approx(
        {name: expected[name] for name in ("mitre_loss", "pair_loss", "conll")}
    )


def test_differences_have_intervals(part: coreference.Part) -> None:
    good, bad = (part.compare(noisy(part, share)) for share in (0.1, 0.9))
    for name, (difference, low, high) in coreference.bootstrap(good, bad).items():
        assert low <= difference <= high
        assert (difference > 0) is (name == "conll")
    same = coreference.bootstrap(good, good)
    assert set(same.values()) == {(0.0, 0.0, 0.0)}
