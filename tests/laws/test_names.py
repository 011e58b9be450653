"""Two things never share a name, and one thing never has two."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import didyma
from didyma.lazy import EXPORT

PACKAGE = Path(didyma.__file__).parent
MODULES = {path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def is_command(path: Path) -> bool:
    """Whether a module is of the command line, where --seed and --dev are what people expect."""
    return path.parts[0] == "cli" or path.name == "command.py" or "networks/options" in str(path)


def test_a_public_name_means_one_thing() -> None:
    homes = defaultdict(set)
    for stub in PACKAGE.rglob("__init__.pyi"):
        for home, name in EXPORT.findall(stub.read_text()):
            if name[0].isupper():
                homes[name].add(home)
    assert len(homes) > 60
    assert not {name: where for name, where in homes.items() if len(where) > 1}


def public_functions(module: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions that a user of the module calls, methods and initialisers among them."""
    for node in module.body:
        nodes = [node]
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            nodes = node.body
        for function in nodes:
            if isinstance(function, ast.FunctionDef) and (
                function.name == "__init__" or not function.name.startswith("_")
            ):
                yield function


def positional(function: ast.FunctionDef) -> list[str]:
    """Names of the arguments that may be given by place; a method's object is not given."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


@pytest.mark.parametrize("path", sorted(MODULES), ids=str)
def test_what_is_written_stands_before_where(path: Path) -> None:
    for function in public_functions(MODULES[path]):
        if function.name.startswith(("write", "save", "export")) and not is_command(path):
            assert positional(function)[:1] != ["path"] or len(positional(function)) == 1, (
                f"{path}: {function.name}"
            )


# What else one might call them. On the command line they are --seed and --dev.
SYNONYMS = {"seed": "random_state", "dev": "eval_set"}


@pytest.mark.parametrize("path", sorted(MODULES), ids=str)
def test_a_parameter_has_one_name_everywhere(path: Path) -> None:
    if is_command(path):
        return
    for function in public_functions(MODULES[path]):
        given = {*positional(function), *(a.arg for a in function.args.kwonlyargs)}
        assert not given & SYNONYMS.keys(), f"{path}: {function.name}"
    for node in MODULES[path].body:
        if isinstance(node, ast.ClassDef):
            fields = (field.target for field in node.body if isinstance(field, ast.AnnAssign))
            assert not {ast.unparse(field) for field in fields} & SYNONYMS.keys(), node.name


def test_no_public_class_is_made_with_a_private_name() -> None:
    """A field of a dataclass becomes a parameter, if it is not told that it is none."""
    classes = [value for name in didyma.__all__ if isinstance(value := getattr(didyma, name), type)]
    assert len(classes) > 30
    for public in classes:
        if is_dataclass(public):
            made_with = [field.name for field in fields(public) if field.init]
            assert not [name for name in made_with if name.startswith("_")], public.__name__
