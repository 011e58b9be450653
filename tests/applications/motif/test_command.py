"""`didyma motif`: from FASTA files to a model, sites and figures."""

from __future__ import annotations

import json
from pathlib import Path

from tests.applications.motif.conftest import MOTIF
from tests.cli.conftest import Run

from didyma.applications.motif.fasta import read


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
    assert run("motif", "scan", model, fasta / "test.fa", "--best", "-o", "-").stdout == sites
    assert run("motif", "scan", model, tmp_path / "none.fa", code=1).stdout == ""
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
    found = run("motif", "fit", pos, "--negatives", neg, "--C", "-1", "-o", output, code=2)
    assert "--C: expected a number above 0" in found.stderr
    found = run("motif", "fit", pos, "--negatives", neg, "--logo", "a.txt", "-o", output, code=1)
    assert "a.txt: expected a name that ends in .png, .svg or .pdf" in found.stderr
    assert not output.exists()
    assert "Missing option" in run("motif", "fit", pos, code=2).stderr
    assert "not a model file" in run("motif", "scan", neg, pos, code=1).stderr
