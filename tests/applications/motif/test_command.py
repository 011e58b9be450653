"""`didyma motif`: from FASTA files to a model, sites and figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run

from didyma.applications.motif.fasta import read
from didyma.applications.motif.finder import MotifFinder
from didyma.applications.motif.gibbs import GibbsMotifSampler
from didyma.applications.motif.meme import Motif

MOTIF = "TTTACGTTTA"


def write(path: Path, seed: int, n: int, motif: str | None) -> None:
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        letters = rng.choice(list("ACGT"), rng.integers(40, 70))
        if motif is not None:
            start = rng.integers(len(letters) - len(motif))
            letters[start : start + len(motif)] = list(motif)
        lines.append(f">s{i}\n{''.join(letters)}\n")
    path.write_text("".join(lines))


@pytest.fixture(scope="module")
def fasta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("motif")
    for seed, (name, n, motif) in enumerate(
        (("pos", 40, MOTIF), ("neg", 40, None), ("bg", 60, None), ("test", 20, MOTIF))
    ):
        write(folder / f"{name}.fa", seed, n, motif)
    write(folder / "others.fa", 9, 20, None)
    return folder


@pytest.fixture(scope="module")
def finder(fasta: Path) -> MotifFinder:
    sequences = [[r.sequence for r in read(fasta / f"{name}.fa")] for name in ("pos", "neg")]
    labels = np.repeat([1, -1], 40)
    return MotifFinder(10, 2, n_restarts=3).fit(sequences[0] + sequences[1], labels)


def test_fit_scan_eval(run: Run, fasta: Path, tmp_path: Path) -> None:
    model, meme, logo = (tmp_path / name for name in ("m.safetensors", "m.txt", "m.svg"))
    found = run(
        *("motif", "fit", fasta / "pos.fa", "--negatives", fasta / "neg.fa", "--length", 10),
        *("--background", fasta / "bg.fa", "--restarts", 3, "-o", model),
        *("--meme", meme, "--logo", logo, "--json"),
    )
    shown = json.loads(found.stdout)
    assert shown["consensus"] == MOTIF
    assert shown["training"]["error"] == 0
    assert len(shown["objectives"]) == 3
    assert "run 1 of 3: objective" in found.stderr
    assert f"MOTIF m {MOTIF}" in meme.read_text()
    assert "<svg" in logo.read_text()

    sites = run("motif", "scan", model, fasta / "test.fa", "--best").stdout
    header, *rows = (line.split("\t") for line in sites.splitlines())
    assert header == ["sequence", "start", "strand", "score", "site"]
    texts = {record.name: record.sequence for record in read(fasta / "test.fa")}
    assert len(rows) == 20
    for name, start, strand, _, site in rows:
        assert strand == "+"
        assert texts[name][int(start) : int(start) + 10] == site
    assert sum(site == MOTIF for *_, site in rows) >= 19
    output = tmp_path / "hits.tsv"
    assert (
        "sites in 20 sequences"
        in run("motif", "scan", model, fasta / "test.fa", "-o", output, "--threshold", 0.3).stderr
    )
    hits = [line.split("\t") for line in output.read_text().splitlines()[1:]]
    assert all(float(hit[3]) > 0.3 for hit in hits)

    others = ("--negatives", fasta / "others.fa")
    judged = json.loads(run("motif", "eval", model, fasta / "test.fa", *others, "--json").stdout)
    assert judged["error"] <= 0.1
    assert judged["roc"] > 0.95
    assert (judged["positives"], judged["negatives"]) == (20, 20)
    assert f"motif      {MOTIF}" in run("motif", "eval", model, fasta / "test.fa", *others).stdout


def test_mistakes_are_told_in_one_line(run: Run, fasta: Path, tmp_path: Path) -> None:
    pos, neg, short = fasta / "pos.fa", fasta / "neg.fa", tmp_path / "short.fa"
    short.write_text(">fine\nACGTACGTACGT\n>tiny\nACGTNACGT\n")
    output = tmp_path / "m.safetensors"
    found = run("motif", "fit", short, "--negatives", neg, "-l", 8, "-o", output, code=1)
    assert "short.fa, line 3: expected 8 known bases in a row" in found.stderr
    assert "'tiny'" in found.stderr
    assert not output.exists()
    found = run("motif", "fit", tmp_path / "none.fa", "--negatives", neg, code=1)
    assert "none.fa: No such file" in found.stderr
    found = run("motif", "fit", pos, "--negatives", neg, "-o", neg, code=1)
    assert "would be overwritten" in found.stderr
    found = run("motif", "fit", pos, "--negatives", neg, "--C", "-1", "-o", output, code=1)
    assert "C: expected a positive number" in found.stderr
    assert "Missing option" in run("motif", "fit", pos, code=2).stderr
    assert "not a model file" in run("motif", "scan", neg, pos, code=1).stderr


def test_help_teaches(run: Run) -> None:
    for command in ((), ("fit",), ("scan",), ("eval",)):
        assert "didyma motif" in run("motif", *command, "--help").stdout


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
    assert finder.scan("ACG") == []
    assert finder.sites(["ACG"]) == [None]
    assert finder.predict(["ACG", text]).tolist() == [-1, 1]


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


def test_a_logo_stacks_the_tallest_letter_on_top() -> None:
    from didyma.applications.motif.logo import COLOURS, logo

    shares = np.array([[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]])
    (axes,) = logo(Motif("box", shares)).axes
    boxes = [patch.get_path().get_extents() for patch in axes.patches]
    assert len(boxes) == 4, "a position without information is empty"
    total = Motif("box", shares).information[0]
    np.testing.assert_allclose(sum(box.height for box in boxes), total, atol=1e-6)
    assert max(range(4), key=lambda i: boxes[i].y1) == 3
    from matplotlib.colors import to_hex

    assert to_hex(axes.patches[3].get_facecolor()) == COLOURS["A"]
