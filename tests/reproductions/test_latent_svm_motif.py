"""The reproduction of motif finding: negatives of the same composition, baselines, a small run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from didyma.applications.motif.fasta import decode
from reproductions import latent_svm_motif as motif

SIZE, SITE = 80, "TTTATGTTTAG"


@pytest.fixture(scope="module")
def genome(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chromosome, one half of it rich in A and T, with origins in that half that hold a site."""
    data = tmp_path_factory.mktemp("genome")
    folder = data / motif.FOLDER
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    rich = rng.choice(4, 30_000, p=[0.36, 0.14, 0.14, 0.36])
    codes = np.concatenate([rich, rng.integers(4, size=30_000)]).astype(np.uint8)
    bases, origins = list(decode(codes)), []
    for n, begin in enumerate(range(500, 13_000, 1_040)):
        at = begin + 5 * n
        bases[at : at + len(SITE)] = SITE
        text = "".join(bases[begin : begin + SIZE])
        origins.append(f">ARS{n} range=chrI:{begin + 1}-{begin + SIZE}\n{text}\n")
    (folder / "chr01.fsa").write_text(f">chrI\n{''.join(bases)}\n")
    (folder / "chr01-confirmed.fsa").write_text("".join(origins))
    for kind in ("likely", "dubious"):
        (folder / f"chr01-{kind}.fsa").write_text("")
    return data


def shares(origins: motif.Origins, label: int) -> np.ndarray:
    return np.array(
        [motif.at_share(s) for s, y in zip(origins.sequences, origins.labels) if y == label]
    )


def test_windows_have_the_composition_of_their_origins(genome: Path) -> None:
    matched = motif.read_origins(genome / motif.FOLDER)
    anywhere = motif.read_origins(genome / motif.FOLDER, is_matched=False)
    positive = shares(matched, 1)
    assert np.abs(positive - shares(matched, -1)).max() <= motif.ALIKE + 1e-9
    assert np.abs(positive - shares(anywhere, -1)).max() > 5 * motif.ALIKE
    assert [len(s) for s in matched.sequences] == [SIZE] * len(matched.labels)


def test_windows_neither_meet_origins_nor_each_other(genome: Path) -> None:
    chromosome = motif.Chromosome(np.zeros(100, np.uint8), np.random.default_rng(0))
    chromosome.codes = np.arange(100, dtype=np.uint8)  # so that windows say where they stand
    chromosome.is_free[40:60] = False
    drawn = np.concatenate([chromosome.draw(10) for _ in range(4)])
    assert len(set(drawn.tolist())) == 40
    assert not set(drawn.tolist()) & set(range(40, 60))
    with pytest.raises(motif.DataError, match="no window of 41 bases"):
        chromosome.draw(41)


def test_a_threshold_makes_the_fewest_errors() -> None:
    scores, labels = np.array([0.1, 0.4, 0.4, 0.9]), np.array([-1, -1, 1, 1])
    assert motif.best_threshold(scores, labels) in (0.1, 0.4)
    assert motif.least_error(scores, labels) == 0.25
    assert motif.least_error(np.zeros(3), np.array([1, 1, -1])) == pytest.approx(1 / 3)


def test_words_are_counted_on_both_strands() -> None:
    codes = np.array([0, 1, 2, 3, 0, 0], np.uint8)
    reverse = (3 - codes)[::-1]
    first, second = motif.count_words([codes, reverse]).toarray()
    np.testing.assert_allclose(first, second)
    assert np.count_nonzero(first) == 2


@pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")
def test_motif_in_small(genome: Path) -> None:
    found = motif.run(
        genome,
        lengths=(11,),
        n_folds=2,
        n_run=2,
        n_seeds=2,
        n_background=3,
        multiples=(1.0, 10.0),
        both_strands=False,
    )
    text = motif.table(found)
    for title in (*motif.NAMES.values(), *motif.COMPOSITION.values()):
        assert f"| {title} " in text
    assert found["AT"]["matched"] == pytest.approx(found["AT"]["origins"], abs=motif.ALIKE)
    assert found["lengths"][11]["Gibbs, test"]["mean"] <= found["lengths"][11]["Gibbs"]["mean"]
    times = [sum(one["multiple"] == C for one in found["lengths"][11]["chosen"]) for C in (1, 10)]
    assert sum(times) == 2
    assert f", {times[0]} times |" in text
