"""Two things never share a name, and one thing never has two."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import didyma

PACKAGE = Path(didyma.__file__).parent
MODULES = {path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def types_of(module: ast.Module) -> Iterator[tuple[str, str | None]]:
    """Public classes, and public names of types with what they stand for.

    Options of the command line (``Annotated``) belong to their file alone.
    """
    for node in module.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, None
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            meaning = ast.unparse(node.value).strip("'")
            if (
                isinstance(target, ast.Name)
                and target.id[0].isupper()
                and not target.id.isupper()
                and not meaning.startswith("Annotated[")
            ):
                yield target.id, meaning


def clashes(modules: dict[Path, ast.Module]) -> dict[str, list[str]]:
    """Names that mean several things, and where."""
    meanings, homes = defaultdict(set), defaultdict(list)
    for path, module in modules.items():
        for name, meaning in types_of(module):
            meanings[name].add(meaning or str(path))
            homes[name].append(str(path))
    return {name: homes[name] for name, found in meanings.items() if len(found) > 1}


def test_no_two_types_share_a_name() -> None:
    assert not clashes(MODULES)


def test_a_name_with_two_meanings_is_found() -> None:
    texts = {"a": "class A: ...\nV = list[int]", "b": "class A: ...\nV = list[int]", "c": "V = str"}
    modules = {Path(name): ast.parse(text) for name, text in texts.items()}
    assert clashes(modules) == {"A": ["a", "b"]}  # V is no name of a type: all capitals
    modules[Path("d")] = ast.parse("Row = list[int]\nclass Column: ...")
    modules[Path("e")] = ast.parse("Row = list[int]\nColumn = list[str]")
    assert clashes(modules) == {"A": ["a", "b"], "Column": ["d", "e"]}


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
        if function.name.startswith(("write", "save", "export")) and path.parts[0] != "cli":
            assert positional(function)[:1] != ["path"] or len(positional(function)) == 1, (
                f"{path}: {function.name}"
            )


# What else one might call them. On the command line they are --seed and --dev.
SYNONYMS = {"seed": "random_state", "dev": "eval_set"}


@pytest.mark.parametrize("path", sorted(MODULES), ids=str)
def test_a_parameter_has_one_name_everywhere(path: Path) -> None:
    if path.parts[0] == "cli":
        return
    for function in public_functions(MODULES[path]):
        given = {*positional(function), *(a.arg for a in function.args.kwonlyargs)}
        assert not given & SYNONYMS.keys(), f"{path}: {function.name}"
    for node in MODULES[path].body:
        if isinstance(node, ast.ClassDef):
            fields = (field.target for field in node.body if isinstance(field, ast.AnnAssign))
            assert not {ast.unparse(field) for field in fields} & SYNONYMS.keys(), node.name
