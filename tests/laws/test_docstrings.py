"""Docstrings that tools have damaged: variables in capitals, and nouns replaced by a class."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import didyma

PACKAGE = Path(didyma.__file__).parent
MODULES = {path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
METHODS = {"SparseMAP"}  # classes that have the name of what they compute
FORMULA = re.compile(r"([^\W\d_]\w{0,4}) (?:[=≤≥·∝]|[+−-]=)\s")


def damaged(modules: dict[Path, ast.Module]) -> Iterator[str]:
    """Where a docstring begins with a parameter that the code writes small, or with a class."""
    nodes = [(path, node) for path, module in modules.items() for node in ast.walk(module)]
    classes = {node.name for _, node in nodes if isinstance(node, ast.ClassDef)} - METHODS
    for path, node in nodes:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        formula = FORMULA.match(text) if isinstance(node, ast.FunctionDef) else None
        names = {own.arg for own in ast.walk(node) if isinstance(own, ast.arg)}
        small = formula and formula[1] not in names and formula[1].lower() in names
        camel = re.match(r"[A-Z]\w*[a-z][A-Z]\w* (?!:)", text)
        if small or (camel and camel[0].strip() in classes):
            yield f"{path}, {node.name}: {text.splitlines()[0]}"


def test_no_docstring_is_damaged() -> None:
    # What is left in kernels is on its way into the core, which is not Python.
    modules = {path: module for path, module in MODULES.items() if path.parts[0] != "kernels"}
    assert not list(damaged(modules))


def test_damage_is_found() -> None:
    code = """
class JudgedRows:
    'Rows with labels.'
def sample(workers):
    'JudgedRows of all shards.'
def subtract(a, b, out):
    'Out = a − b.'
def covariance(X):
    'C = X′X of a view X.'
def add(a, b, c):
    'B += c a.'
"""
    found = list(damaged({Path("a.py"): ast.parse(code)}))
    assert [line.split(":")[0] for line in found] == ["a.py, sample", "a.py, subtract", "a.py, add"]
