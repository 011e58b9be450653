"""What is said about optional dependencies can be done: the extras are there, and so is the way."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import PAGES, ROOT, name_of

SOURCES = sorted((ROOT / "src" / "didyma").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
FROM_AN_INDEX = re.compile(r"pip install [^\n]*\bdidyma\b(?!/)")
FROM_A_CHECKOUT = re.compile(r"pip install ['\"]?\.\[([\w,-]+)\]")


def extras_asked_for(path: Path) -> Iterator[str]:
    """The extras, as far as they are literals, that a module names when they are missing."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "MissingExtraError":
            extra = node.args[1]
            if isinstance(extra, ast.Constant):
                yield str(extra.value)


def test_every_extra_that_is_missing_can_be_installed() -> None:
    asked = {extra for path in SOURCES for extra in extras_asked_for(path)}
    assert {"serve", "tables", "torch"} <= asked <= EXTRAS


def test_nothing_is_to_be_installed_from_an_index_that_lacks_it() -> None:
    texts = {path: path.read_text() for path in (*SOURCES, *PAGES)}
    assert not [name_of(path) for path, text in texts.items() if FROM_AN_INDEX.search(text)]
    for path, text in texts.items():
        for extras in FROM_A_CHECKOUT.findall(text):
            assert set(extras.split(",")) <= EXTRAS, name_of(path)
