"""Motifs as probabilities, as MEME files and as logos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex

from didyma.applications.motif import meme
from didyma.applications.motif.meme import COLOURS, Motif, logo
from didyma.errors import DataError


def test_meme_file(tmp_path: Path) -> None:
    counts = np.array([[8.0, 0, 0, 0], [0, 4, 4, 0], [2, 2, 2, 2], [0, 3, 0, 5]])
    motif = meme.Motif.from_counts("box", counts)
    assert (motif.consensus, motif.n_sites) == ("ASNY", 8)
    assert motif.reverse_complement.consensus == "RNST"
    np.testing.assert_allclose(motif.probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(motif.log_odds, np.log2(motif.probabilities / 0.25))
    path = tmp_path / "motif.txt"
    meme.write([motif], path, both_strands=True)
    lines = path.read_text().splitlines()
    assert lines[0] == "MEME version 4"
    assert "strands: + -" in lines
    start = lines.index("MOTIF box ASNY") + 1
    assert lines[start] == "letter-probability matrix: alength= 4 w= 4 nsites= 8 E= 0"
    found = np.array([line.split() for line in lines[start + 1 :]], dtype=float)
    np.testing.assert_allclose(found, motif.probabilities, atol=1e-6)
    with pytest.raises(DataError, match="white space"):
        meme.write([meme.Motif("a b", motif.probabilities)], path)


def test_softmax_of_weights() -> None:
    weights = np.array([[0.0, 800.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    motif = meme.Motif.from_weights("box", weights)
    np.testing.assert_allclose(motif.probabilities, [[0, 1, 0, 0], [0.25] * 4])
    assert motif.consensus == "CN"
    np.testing.assert_allclose(motif.information, [2, 0], atol=1e-12)


def test_a_logo_stacks_the_tallest_letter_on_top() -> None:
    shares = np.array([[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]])
    (axes,) = logo(Motif("box", shares)).axes
    boxes = [patch.get_path().get_extents() for patch in axes.patches]
    assert len(boxes) == 4, "a position without information is empty"
    total = Motif("box", shares).information[0]
    np.testing.assert_allclose(sum(box.height for box in boxes), total, atol=1e-6)
    assert max(range(4), key=lambda i: boxes[i].y1) == 3
    assert to_hex(axes.patches[3].get_facecolor()) == COLOURS["A"]
