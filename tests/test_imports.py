"""What may import what, and what an import may cost."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import didyma

PACKAGE = Path(didyma.__file__).parent

# From the bottom up: a module imports only from layers below its own, or from within it.
LAYERS = [
    {"__init__"},
    {"errors"},
    {"data", "files", "execution"},
    {"kernels"},
    {"structure"},
    {"metrics", "formats", "structures"},
    {"polytope"},
    {"learning"},
    {"tasks"},
    {"model"},
    {"features"},
    {"estimators"},
    {"nn"},
    {"report"},
    {"demo"},
    {"cli", "service"},
    {"__main__"},
]
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def part_of(module: str) -> str:
    """The layer's name of a module: didyma.kernels.jit is kernels."""
    return module.split(".")[1] if "." in module else "__init__"


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "didyma"}


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_imports_only_go_down(path):
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if own == "__init__":
        return  # the table of public names, resolved when used
    assert own in HEIGHT, f"{own} is not in the list of layers"
    for imported in imports_of(path):
        other = part_of(imported)
        other = other if other in HEIGHT else "__init__"
        assert other == own or HEIGHT[other] < HEIGHT[own], f"{own} imports {imported}"


def modules_after(code: str) -> set[str]:
    output = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(output.stdout.split())


def test_import_is_light():
    loaded = modules_after("import didyma")
    assert not loaded & {"torch", "sklearn", "numba", "scipy", "numpy", "pandas", "matplotlib"}


def test_public_names_resolve():
    for name in didyma.__all__:
        assert getattr(didyma, name) is not None
    assert set(didyma.__all__) <= set(dir(didyma))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        didyma.nothing  # noqa: B018


def test_data_and_errors_need_no_compiler():
    assert "numba" not in modules_after("import didyma; didyma.RankingData; didyma.read")


def test_layers_and_losses_load_little_beside_torch():
    """Neither torch's compiler nor what learners need, before and after a layer is used."""
    before = modules_after("import torch")
    code = """
import torch
from didyma.nn import FenchelYoungLoss, SparseMAP
from didyma.structures import Choice
scores = torch.zeros(2, 3, requires_grad=True)
FenchelYoungLoss(Choice())(SparseMAP(Choice())(scores), [0, 1]).backward()
"""
    loaded = modules_after(code) - before
    heavy = {"torch._dynamo", "sympy", "sklearn", "pandas", "matplotlib", "didyma.estimators"}
    assert not loaded & (heavy | {"didyma.tasks", "didyma.learning", "didyma.formats"})
