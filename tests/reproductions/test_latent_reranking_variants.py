"""The variants of latent perceptrons: what is read, and a run in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reproductions import latent_reranking_variants as variants


def write_questions(path: Path, n_questions: int, seed: int) -> None:
    """Answers repeat a word of their question; every fourth question has no answer."""
    rng = np.random.default_rng(seed)
    lines = []
    for n in range(n_questions):
        asked = f"who saw the w{seed}x{n} ?"
        for k in range(4):
            is_answer = k == n % 3 and n % 4 != 3
            word = f"w{seed}x{n}" if is_answer or rng.random() < 0.2 else f"other{k}"
            lines.append(f"{asked}\ta man saw the {word} of v{rng.integers(9)}\t{int(is_answer)}")
    path.write_text("\n".join(lines) + "\n")


def test_variants_in_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, (name, n) in enumerate({"train": 40, "dev": 12}.items()):
        write_questions(tmp_path / f"{name}.txt", n, seed)
    for name, value in (("EPOCHS", 2), ("CS", (1.0,)), ("EXPONENTS", (0.5, 1.0)), ("N_SEEDS", 2)):
        monkeypatch.setattr(variants, name, value)
    results = variants.run(tmp_path)
    assert results["sizes"] == {"train": 24, "choose": 6, "dev": 9}
    found = results["found"]
    assert len(found) == 3 * 4 + 2
    assert {one["a"] for one in found["LSP-AP, as published, shuffled"]["chosen"]} == {1.0}
    assert all(np.mean(row["AP"]) > 0.5 for row in found.values())
    text = variants.table(results)
    assert "| LSP-AP*, in file order " in text
