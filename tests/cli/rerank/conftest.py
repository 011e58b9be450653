"""Judged texts and rerankers that were trained on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from didyma.cli import app
from didyma.data.texts import json_lines
from didyma.text.text_reranker import TextReranker
from tests.text.texts import made

EXAMPLES = Path(__file__).parents[3] / "examples" / "data"
PASSAGES = "It rains today .\nThe castle of Belaford was built by Ada Falk .\nA clock has hands .\n"


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rerank")
    for name, n_lines in (("train", 500), ("test", 120)):
        lines = (EXAMPLES / f"passages-{name}.tsv").read_text().splitlines()[:n_lines]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    (folder / "passages.txt").write_text(PASSAGES)
    return folder


@pytest.fixture(scope="session")
def model(data: Path) -> Path:
    path = data / "model.didyma.safetensors"
    arguments = ["rerank", "fit", str(data / "train.tsv"), "-o", str(path), "--quick", "--json"]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    (data / "fit.json").write_text(found.stdout)
    return path


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models (old, new), queries of their training, and others."""
    folder = tmp_path_factory.mktemp("comparing")
    lists = made(40, 0)
    for name, numbers in {"old": range(6), "new": range(6, 20)}.items():
        TextReranker(quick=True).fit(lists.select_lists(numbers)).save(
            folder / f"{name}.safetensors"
        )
    json_lines.write(lists, folder / "all.jsonl")
    json_lines.write(lists.select_lists(range(20, 40)), folder / "test.jsonl")
    return folder
