"""Learning a motif, and looking for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.applications.motif.conftest import MOTIF

from didyma.applications.motif.fasta import read
from didyma.applications.motif.finder import MotifFinder
from didyma.applications.motif.gibbs import GibbsMotifSampler
from didyma.errors import NothingLearnedWarning


@pytest.fixture(scope="module")
def finder(fasta: Path) -> MotifFinder:
    sequences = [[r.sequence for r in read(fasta / f"{name}.fa")] for name in ("pos", "neg")]
    labels = np.repeat([1, -1], 40)
    return MotifFinder(10, 2, n_restarts=3).fit(sequences[0] + sequences[1], labels)


def test_files_keep_a_finder(finder: MotifFinder, fasta: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    finder.save(path)
    again = MotifFinder.load(path)
    sequences = [record.sequence for record in read(fasta / "test.fa")]
    np.testing.assert_array_equal(
        again.decision_function(sequences), finder.decision_function(sequences)
    )
    assert again.motif().consensus == finder.motif().consensus == MOTIF


def test_scan_finds_both_strands() -> None:
    finder = MotifFinder(10, 0)
    matrix = np.full((10, 4), -0.9)
    matrix[range(10), ["ACGT".index(base) for base in MOTIF]] = 0.1  # an exact match scores 1
    finder.coef_ = np.concatenate([matrix.ravel(), np.zeros(4)])
    both = MotifFinder(10, 0, both_strands=True)
    both.coef_ = finder.coef_
    turned = MOTIF[::-1].translate(str.maketrans("ACGT", "TGCA"))
    text = f"NCGCG{MOTIF}GCGNCC{turned}GCGCG"
    hits = [(hit.start, hit.strand, round(hit.score, 9), hit.bases) for hit in both.scan(text)]
    assert hits == [(5, "+", 1.0, MOTIF), (21, "-", 1.0, MOTIF)]
    assert [hit.start for hit in finder.scan(text)] == [5]
    assert finder.scan("ACG") == finder.scan("ACG", best=True) == []
    assert [hit.start for hit in both.scan(text, 2.0, best=True)] == [5]
    assert finder.sites(["ACG"]) == [None]
    assert finder.predict(["ACG", text]).tolist() == [-1, 1]


def test_zero_weights_are_told(fasta: Path) -> None:
    sequences = [record.sequence for record in read(fasta / "pos.fa")]
    with pytest.warns(NothingLearnedWarning, match="sampled sites"):
        finder = MotifFinder(4, n_restarts=2).fit(sequences * 2, np.repeat([1, -1], 40))
    assert finder.result_.value == pytest.approx(finder.C)


@pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")
def test_restarts_without_end_are_ended_by_the_callback(fasta: Path) -> None:
    """A number that no array can have, as of somebody who means to press Ctrl-C."""
    sequences = [r.sequence for name in ("pos", "neg") for r in read(fasta / f"{name}.fa")]
    labels = np.repeat([1, -1], 40)
    once = MotifFinder(4, 1, init="random", n_restarts=1).fit(sequences, labels)
    many = MotifFinder(4, 1, init="random", n_restarts=10**26)
    many.callback = lambda _: bool(many.objectives_)
    many.fit(sequences, labels)
    assert many.objectives_ == once.objectives_


def test_labels_are_needed() -> None:
    for labels, message in (([1, 1], "without"), ([1], "one per sequence")):
        with pytest.raises(ValueError, match=message):
            MotifFinder(2).fit(["ACGT", "ACGT"], labels)


def test_gibbs_sampling_finds_the_motif(fasta: Path) -> None:
    sequences = [[r.sequence for r in read(fasta / f"{name}.fa")] for name in ("pos", "neg")]
    labels = np.repeat([1, -1], 40)
    sampler = GibbsMotifSampler(10, n_sweeps=40, n_restarts=3)
    sampler.fit(sequences[0] + sequences[1], labels)
    assert sampler.motif().consensus == MOTIF
    assert np.mean(sampler.predict(sequences[0] + sequences[1]) != labels) <= 0.05
    again = GibbsMotifSampler(10, n_sweeps=40, n_restarts=3)
    again.fit(sequences[0] + sequences[1], labels)
    assert again.log_likelihood_ == sampler.log_likelihood_
