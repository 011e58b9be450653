"""Tales about people, to learn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from didyma.cli import app

NAMES = ("Emma", "Harriet", "John", "Frank", "Jane", "George")


FEMALE = {"Emma", "Harriet", "Jane"}


def tale(seed: int, n_sentences: int = 14) -> str:
    """People who are named, then meant by a pronoun, then named again."""
    random = np.random.default_rng(seed)
    lines = [f"#begin document (tale{seed}); part 0"]
    for _ in range(n_sentences):
        k = int(random.integers(len(NAMES)))
        name = NAMES[k]
        her = "her" if name in FEMALE else "his"
        words = [(name, f"({k})"), ("loved", "-"), (her, f"({k})"), ("walks", "-"), (".", "-")]
        for place, (word, brackets) in enumerate(words):
            lines.append("\t".join([f"tale{seed}", "0", str(place), word, *"_" * 8, brackets]))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


@pytest.fixture(scope="module")
def tales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coref")
    for part, seeds in (("train", range(8)), ("test", range(8, 11))):
        (folder / part).mkdir()
        for seed in seeds:
            (folder / part / f"tale{seed}.conll").write_text(tale(seed))
    arguments = ["coref", "fit", folder / "train", "-o", folder / "m.safetensors"]
    found = CliRunner().invoke(app, list(map(str, arguments)))
    assert found.exit_code == 0, found.output
    return folder
