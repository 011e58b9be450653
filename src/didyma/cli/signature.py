"""The parameters of a class: its constructor's signature, and what its docstring says of each.

Both are read from the source, as documentation tools do: the help of a command must not import
what takes seconds (SciPy, PyTorch) or is not installed.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

ENTRY = re.compile(r"(\w+(?:, \w+)*)(?: : (.*))?")  # of a section of numpydoc
SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z`\"])")
# What the command line has no use for: references to the library, and marks of code.
REFERENCES = re.compile(r"[;,]? see `[^`]*`| \(`[^`]*`\)")
MARKS = re.compile(r"``?|\"")
FLAGS = {"eval_set": "--dev", "random_state": "--seed"}  # what it calls otherwise


@dataclass(frozen=True)
class Parameter:
    """A parameter of a constructor, as its signature and its docstring describe it.

    ``annotation`` and ``source`` of the default are as written; ``type`` is numpydoc's.
    """

    name: str
    annotation: str
    source: str
    type: str
    description: str

    @property
    def default(self) -> Any:
        """The default, which must be a literal or an expression of such."""
        return eval(self.source, {}) if self.source else inspect.Parameter.empty

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values of a Literal, or of ``{"a", "b"}`` in the docstring; none if it has others."""
        literal = re.match(r"Literal\[(.*)\]", self.annotation) or re.match(r"{(.*)}", self.type)
        return () if literal is None else ast.literal_eval(f"({literal[1]},)")

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Least and greatest value: of ``int in [2, 254]`` or ``float >= 0`` in the docstring."""
        if between := re.search(r"in \[(\S+), (\S+)\]", self.type):
            return ast.literal_eval(between[1]), ast.literal_eval(between[2])
        least = re.search(r">= (\S+?)(?:,|$)", self.type)
        return (None if least is None else ast.literal_eval(least[1])), None

    def sentences(self, number: int = 1) -> str:
        """The first sentences of the description, as plain text in the words of commands."""
        text = REFERENCES.sub("", " ".join(SENTENCE.split(self.description)[:number]))
        for name, flag in FLAGS.items():
            text = text.replace(f"``{name}``", flag)
        return MARKS.sub("", text)


@cache
def parameters_of(path: str) -> dict[str, Parameter]:
    """The parameters of a class by name; a base's docstring has those that its own leaves out.

    >>> tol = parameters_of("didyma.ranking.svm.SVMRanker")["tol"]
    >>> tol.annotation, tol.default, tol.sentences()
    ('float', 0.001, 'Relative duality gap at which training stops.')
    """
    entries: dict[str, tuple[str, str]] = {}
    arguments: dict[str, tuple[str, str]] = {}
    complete = False
    for definition in _bases(path):
        entries = {**_entries(ast.get_docstring(definition) or ""), **entries}
        if not complete:
            # A data class has the fields of its bases, and no constructor of theirs.
            fields = _fields(definition)
            if not fields:
                arguments = arguments or _constructor(definition)
                complete = bool(arguments)
            arguments = {**fields, **arguments}
        if complete and all(name in entries for name in arguments):
            break
    return {
        name: Parameter(name, annotation, source, *entries.get(name, ("", "")))
        for name, (annotation, source) in arguments.items()
    }


def _bases(path: str) -> Iterator[ast.ClassDef]:
    """The definition of a class of the library and of those that it derives from."""
    module, _, name = path.rpartition(".")
    classes, imports = _names(module)
    if name in imports:
        yield from _bases(imports[name])
    elif name in classes:
        yield classes[name]
        for base in classes[name].bases:
            yield from _bases(f"{module}.{ast.unparse(base).partition('[')[0]}")


@cache
def _names(module: str) -> tuple[dict[str, ast.ClassDef], dict[str, str]]:
    """The classes that a module defines, and the paths of those of the library that it imports."""
    spec = find_spec(module)
    assert spec is not None
    body = ast.parse(spec.loader.get_source(module)).body  # type: ignore[union-attr]
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    imports = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("didyma.")
        for alias in node.names
    }
    return classes, imports


def _constructor(definition: ast.ClassDef) -> dict[str, tuple[str, str]]:
    """Annotation and default of each parameter of the constructor, if the class defines one."""
    for node in definition.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            positional, named = node.args.args[1:], node.args.kwonlyargs
            padding = [None] * (len(positional) - len(node.args.defaults))
            defaults = [*padding, *node.args.defaults, *node.args.kw_defaults]
            return {
                argument.arg: (_source(argument.annotation), _source(default))
                for argument, default in zip([*positional, *named], defaults)
            }
    return {}


def _fields(definition: ast.ClassDef) -> dict[str, tuple[str, str]]:
    """The same of the fields of a data class that its constructor takes."""
    if not any("dataclass" in ast.unparse(decorator) for decorator in definition.decorator_list):
        return {}
    return {
        node.target.id: (_source(node.annotation), _source(node.value))
        for node in definition.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value
        and "init=False" not in ast.unparse(node.value)
        and not ast.unparse(node.annotation).startswith("ClassVar")
    }


def _source(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node)


def _entries(docstring: str) -> dict[str, tuple[str, str]]:
    """Type and description by name, of what the sections of numpydoc list."""
    entries: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    for line in docstring.splitlines():
        entry = ENTRY.fullmatch(line)
        if entry is not None:
            names = entry[1].split(", ")
            entries |= dict.fromkeys(names, (entry[2] or "", ""))
        elif line.startswith("    ") and names:
            type, text = entries[names[0]]
            entries |= dict.fromkeys(names, (type, f"{text} {line.strip()}".strip()))
        elif line.strip():
            names = []
    return entries
