"""What may import what, and what an import may cost."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import didyma
from didyma.cli import commands as cli
from didyma.lazy import EXPORT
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.scaling import QueryMinMaxScaler
from didyma.ranking.svm import SVMRanker

PACKAGE = Path(didyma.__file__).parent

# From the bottom up: a module imports only from layers below its own, or from within it.
LAYERS = [
    {"__init__"},
    {"_core", "errors", "lazy", "values"},
    {"files", "execution", "parameters"},
    {"stateful"},
    {"checkpoints"},
    {"structures"},
    {"polytope"},
    {"solvers", "testing"},
    {"data"},
    {"protocol"},
    {"metrics"},
    {"learning"},
    {"model"},
    {"cluster"},
    {"structured", "ranking"},
    {"text"},
    {"nbest"},
    {"exports"},
    {"jax", "nn"},
    {"report"},
    {"judgements"},
    {"integrations", "serve"},
    {"cli"},
    {"applications"},
    {"__main__", "features", "formats"},
]
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def part_of(module: str) -> str:
    """The layer's name of a module: that of didyma.data.letor is data."""
    name = module.split(".")[1] if "." in module else "__init__"
    return "structures" if name == "structure" else name  # the idea, and what there is of it


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
    own = part_of(".".join(("didyma", *path.relative_to(PACKAGE).with_suffix("").parts)))
    if own == "__init__":
        return  # the table of public names, resolved when used
    assert own in HEIGHT, f"{own} is not in the list of layers"
    for imported in imports_of(path):
        other = part_of(imported)
        other = other if other in HEIGHT else "__init__"
        assert other == own or HEIGHT[other] < HEIGHT[own], f"{own} imports {imported}"


REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"
DOCUMENTED = set(re.findall(r"^\| `([\w.]+)` \|", REFERENCE.read_text(), re.MULTILINE))
# What applications have that no user would: kernels of their own in the core, and the list of
# public names of a package of ours.
THEIR_OWN = {"didyma._core.applications", "didyma.lazy"}
SHARED = "didyma.applications.networks"


def file_of(module: str) -> Path:
    place = PACKAGE.joinpath(*module.split(".")[1:])
    stub = place / "__init__.pyi"
    return stub if stub.exists() else place.with_suffix(".py")


@cache
def names_in(module: str) -> set[str]:
    """The public names of a package, which its stub lists, or of a module (``__all__``)."""
    path = file_of(module)
    if path.suffix == ".pyi":
        return {name for _, name in EXPORT.findall(path.read_text())} | {"__version__"}
    if not path.exists():
        return set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(re.findall(r"'(\w+)'", ast.unparse(node.value)))
    return set()


def is_public_module(module: str) -> bool:
    """Whether the reference names a module, or a public package has it among its names."""
    package, _, name = module.rpartition(".")
    return module in DOCUMENTED or (
        bool(package) and is_public_module(package) and name in names_in(package)
    )


def is_public(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    return is_public_module(name) or (is_public_module(module) and attribute in names_in(module))


APPLICATIONS = PACKAGE / "applications"


@pytest.mark.parametrize(
    "path", sorted(APPLICATIONS.rglob("*.py")), ids=lambda path: str(path.relative_to(APPLICATIONS))
)
def test_applications_import_what_a_user_could_import(path):
    """They prove that the public names are enough to build one."""
    own = f"didyma.applications.{path.relative_to(APPLICATIONS).parts[0]}"
    allowed = tuple(f"{module}." for module in (own, SHARED, *THEIR_OWN))
    private = {
        name for name in imports_of(path) if not (f"{name}.".startswith(allowed) or is_public(name))
    }
    assert not private


def test_the_law_of_public_names_can_fail():
    assert is_public("didyma.data.Lists")
    assert is_public("didyma.data.conll.Sentence")
    assert is_public("didyma.errors.placed")
    assert not is_public("didyma.data.lists.Lists")
    assert not is_public("didyma.data.conll._columns")
    assert not is_public("didyma._core.sums.dot")
    assert not is_public("didyma.learning.scoring")


def modules_after(code: str) -> set[str]:
    output = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(output.stdout.splitlines()[-1].split())


HEAVY = {
    *("ir_measures", "numpy", "pandas", "pyarrow", "pydantic", "rich", "scipy", "sklearn", "torch")
}
MODELS = {
    "plain": lambda: SVMRanker(C=1.0),
    "scaled": lambda: make_pipeline(StandardScaler(), SVMRanker(C=1.0)),
    "in-query": lambda: make_pipeline(QueryMinMaxScaler(), SVMRanker(C=1.0)),
    "additive": lambda: AdditiveSVMRanker(bins=4),
}
# What each command may load of that, since loading takes longer than its work.
COMMANDS = {
    "--help": set(),
    **{f"{name} --help": {"rich"} for name in cli.COMMANDS},
    "rerank rank RERANKER TEXTS -o OUT": {"numpy"},
    "ask INDEX rings": {"numpy"},
    "inspect MODEL": {"numpy"},
    "inspect DATA": {"numpy"},
    "export plain --to json -o OUT": {"numpy"},
    "predict MODEL DATA": {"numpy"},
    "rank MODEL DATA -o RUN": {"numpy"},
    "eval MODEL DATA": {"numpy", "ir_measures"},
    "eval RUN QRELS": {"numpy", "ir_measures"},
    "fit DATA -o OUT": {"numpy"},
    "fit DATA --bins 4 -o OUT": {"numpy", "ir_measures"},  # settings are judged by the measure
    "fit DATA --scale query-minmax -o OUT": {"numpy"},
    "fit DATA --dev DATA --scale standard -o OUT": {"numpy", "ir_measures"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imports")
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 2)), np.tile([1.0, 0.0, 0.0], 4)
    data = didyma.Lists(X, y, np.repeat(["a", "b"], 6), zero_based=False)
    didyma.write(data, folder / "DATA")
    for name, make in MODELS.items():
        didyma.save(make().fit(X, y), folder / name)
    passages = [["They ring .", "It rains ."], ["It is late .", "They rang ."]]
    reranker = didyma.TextReranker(quick=True).fit(
        ["who rings ?", "who rang ?"], passages, [[1, 0], [0, 1]]
    )
    reranker.save(folder / "RERANKER")
    didyma.PassageIndex.build(passages[0], folder / "INDEX")
    (folder / "TEXTS").write_text("query\tpassage\nwho rings ?\tThey ring .\n")
    (folder / "RUN").write_text("a Q0 d1 1 3.0 t\na Q0 d2 2 1.0 t\n")
    (folder / "QRELS").write_text("a 0 d1 1\n")
    return folder


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (command, kind)
        for command in COMMANDS
        for kind in (MODELS if "MODEL" in command else ["plain"])
        if (command, kind) != ("inspect MODEL", "additive")  # which shows its functions
    ],
)
def test_a_command_loads_what_it_needs(files, command, kind):
    words = [kind if word == "MODEL" else word for word in command.split()]
    places = [str(files / word) if word.isupper() or word == kind else word for word in words]
    code = (
        "from didyma.cli import app\n"
        f"try:\n    app({places})\n"
        "except SystemExit as end:\n    assert not end.code, end.code"
    )
    assert modules_after(code) & HEAVY <= COMMANDS[command]


def test_import_is_light():
    loaded = modules_after("import didyma")
    assert not loaded & {"torch", "sklearn", "scipy", "numpy", "pandas", "matplotlib"}


def test_public_names_resolve():
    for name in didyma.__all__:
        assert getattr(didyma, name) is not None
    assert set(didyma.__all__) <= set(dir(didyma))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        didyma.nothing  # noqa: B018


def test_data_and_errors_load_little():
    assert "sklearn" not in modules_after("import didyma; didyma.Lists; didyma.read")


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
    heavy = {"torch._dynamo", "sympy", "sklearn", "pandas", "matplotlib", "didyma.ranking"}
    assert not loaded & (heavy | {"didyma.learning", "didyma.data"})
