"""Every public object is explained, with an example that doctest runs."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

PACKAGES = (
    *("didyma", "didyma.structures", "didyma.nn", "didyma.metrics", "didyma.features"),
    *("didyma.formats", "didyma.report", "didyma.learning"),
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
