"""The page on data larger than memory: its commands and its Python are run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from didyma import formats
from tests.cli.conftest import Run, make

PAGE = Path(__file__).parents[2] / "docs" / "large_data.md"


def test_the_page_does_what_it_says(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train", "dev", "test")):
        formats.write(make(seed), f"{name}.txt")
    text = PAGE.read_text()
    (commands,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for line in commands.splitlines():
        program, *words = shlex.split(line)
        assert program == "didyma"
        run(*words)
    assert len((tmp_path / "scores.txt").read_text().splitlines()) == len(make(2))
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    run("convert", "train.lists", "--check")
    for file in re.findall(r"`(\w+\.(?:npy|json))`", text):
        sparse = file in ("data.npy", "indices.npy", "indptr.npy")
        assert (tmp_path / "train.lists" / file).exists() != sparse
    run("convert", "train.lists", "back.txt")
    assert formats.read("back.txt").qid.tolist() == make(0).qid.tolist()
