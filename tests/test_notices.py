"""NOTICE.md names the origin and the licence of all that is not code of this library."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from didyma.applications.demo import corpus
from didyma.text.features.languages import LANGUAGES

ROOT = Path(__file__).parents[1]
NOTICE = (ROOT / "NOTICE.md").read_text()
CODE = {".py", ".pyi", ".js", ".css", ".html", ".j2", ".svg", ".typed", ".so", ".pyd"}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = NOTICE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def listed(cell: str) -> Iterator[Path]:
    """The files of a cell: patterns, or a folder and the names in it."""
    folder = ""
    for pattern in re.findall(r"`(.*?)`", cell):
        if pattern.endswith("/"):
            folder = pattern
            continue
        found = list(ROOT.glob(folder + pattern))
        assert found, f"NOTICE.md names {folder + pattern}, which is not there"
        yield from found


def test_every_list_and_text_has_an_origin_and_a_licence() -> None:
    table = rows("Word lists and texts")
    named = [path for files, *_ in table for path in listed(files)]
    assert len(named) == len(set(named))
    there = [*(ROOT / "src" / "didyma").rglob("*"), *(ROOT / "examples" / "data").iterdir()]
    there = [path for path in there if path.is_file() and path.parent.name != "npm"]  # our scorer
    data = {path for path in there if path.suffix not in CODE | {".pyc"}}
    assert set(named) == data
    assert {path.stem for path in named if path.parent.name == "stop_words"} == set(LANGUAGES)
    for _, what, origin, licence in table:
        assert what
        assert origin
        assert licence.startswith("BSD-3-Clause")


def test_every_licence_of_somebody_else_is_there_in_full() -> None:
    for part, origin, _ in rows("Compiled into the core"):
        notice = NOTICE.partition(f"\n### {part}\n")[2].partition("\n### ")[0]
        assert re.search(rf"Copyright \(c\) \d+.*{origin.partition(',')[0]}", notice), part
        assert "WARRANTIES OF MERCHANTABILITY" in notice.replace("\n", " ")
    assert "Dr Martin Porter" in NOTICE.partition("\n### Snowball\n")[2]
    linked = re.findall(
        r"find_package\((?!Threads|Python)(\w+)", (ROOT / "CMakeLists.txt").read_text()
    )
    assert set(linked) <= {part for part, *_ in rows("Compiled into the core")}


def test_the_text_of_the_demonstration_has_an_origin() -> None:
    assert "from pydoc_data.topics import" in Path(corpus.__file__).read_text()
    assert "`pydoc_data.topics`" in NOTICE


def test_the_wheel_carries_the_notices() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license-files"] == ["LICENSE", "NOTICE.md"]
    for recipe in ("Dockerfile", ".dockerignore"):  # a build without them fails
        assert "NOTICE.md" in (ROOT / recipe).read_text()
