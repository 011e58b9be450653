"""Every public object is explained, with an example that doctest runs, and defaults as values."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import didyma
from didyma.learning import CCCP
from tests.docs.blocks import ROOT

SITE = runpy.run_path(str(ROOT / "docs" / "site" / "signatures.py"))

APPLICATIONS = ("alignment", "clicks", "coreference", "motif", "parsing", "passages", "tagging")
PACKAGES = (
    *("didyma", "didyma.structures", "didyma.solvers", "didyma.nn", "didyma.metrics"),
    *("didyma.ranking",),
    *("didyma.text", "didyma.nbest", "didyma.data", "didyma.report", "didyma.learning"),
    *(
        "didyma.structured",
        "didyma.polytope",
        *(f"didyma.applications.{name}" for name in APPLICATIONS),
    ),
)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_object_has_an_example(package: str) -> None:
    if package == "didyma.nn":
        pytest.importorskip("torch", reason="torch is not installed")
    found = import_module(package)
    for name in found.__all__:
        value = getattr(found, name)
        documentation = inspect.getdoc(value) or ""
        assert documentation, f"{package}.{name} has no docstring"
        if not inspect.ismodule(value):
            assert ">>>" in documentation, f"{package}.{name} has no example"


def documented(package: str) -> Iterator[tuple[str, Any]]:
    """All that a page of the reference shows a signature of: functions, classes, their methods."""
    module = import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from documented(value.__name__)
        else:
            yield f"{package}.{name}", value
        if inspect.isclass(value):
            for member, function in inspect.getmembers(value, inspect.isfunction):
                if not member.startswith("_"):
                    yield f"{package}.{name}.{member}", function


def signature_in_source(value: Any) -> str:
    """The parameters of a function or class, with defaults as they are written."""
    function = inspect.unwrap(value.__init__ if inspect.isclass(value) else value)
    if not inspect.isfunction(function) or function.__code__.co_filename == "<string>":
        return ""  # nothing that was written: a method of C, or of a data class
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    return f"({ast.unparse(definition.args)})" if isinstance(definition, ast.FunctionDef) else ""


@pytest.mark.parametrize("package", PACKAGES)
def test_no_default_is_shown_as_the_name_of_a_constant(package: str) -> None:
    if package == "didyma.nn":
        pytest.importorskip("torch", reason="torch is not installed")
    for name, value in documented(package):
        shown = SITE["with_values"](signature_in_source(value), value)
        assert not re.search(r"= ?[A-Z][A-Z0-9_]*[,)]", shown), f"{name}{shown}"


def test_constants_and_factories_are_shown_by_their_values() -> None:
    with_values = SITE["with_values"]
    assert with_values("(window=WINDOW, top=None)", didyma.TextReranker) == "(window=200, top=None)"
    assert with_values("(inner=<factory>)", CCCP) == "(inner=OneSlack())"
    assert '"signatures",' in (ROOT / "docs" / "site" / "conf.py").read_text()  # it is used
