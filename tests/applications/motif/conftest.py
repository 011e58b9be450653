"""Sequences with a motif, and others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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
