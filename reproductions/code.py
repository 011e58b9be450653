"""The code that a study runs: modules that it imports, directly or not, and a hash of each."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["hash_of", "hashes", "source"]

ROOT = Path(__file__).resolve().parents[1]
ROOTS = {"didyma": ROOT / "src", "benchmarks": ROOT, "reproductions": ROOT}


@dataclass(frozen=True)
class Module:
    """What a file of code does and where it has it from."""

    hash: str
    imports: tuple[tuple[str, str | None], ...]  # modules, and the names that are taken from them
    homes: Mapping[str, tuple[str, str]]  # what it has from others, also for type checkers only

    @classmethod
    def read(cls, path: Path) -> Module:
        """Comments, layout, docstrings and names for type checkers do not count."""
        return cls._read(path, path.stat().st_mtime_ns)

    @classmethod
    @cache
    def _read(cls, path: Path, changed: int) -> Module:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        homes = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                done = [each for each in body if not (_is_text(each) or _is_for_types(each))]
                node.body = done
        imports: list[tuple[str, str | None]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imports += [(alias.name, None) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imports += [(node.module or "", alias.name) for alias in node.names]
        digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:8]
        return cls(digest, tuple(imports), homes)


def hashes(*modules: str) -> dict[str, str]:
    """Each module that these use, themselves among them, and a hash of what it does.

    Packages that only pass on names are not among them.
    """
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = source(name)
        if name in found or path is None or name in ROOTS:
            continue
        module = Module.read(path)
        found[name] = module.hash
        waiting += [_home(*each) for each in module.imports]
    return dict(sorted(found.items()))


def hash_of(*modules: str) -> str:
    """One hash of all code that these modules use."""
    return hashlib.sha256(repr(hashes(*modules)).encode()).hexdigest()[:16]


def source(module: str) -> Path | None:
    """The file of one of our modules."""
    root = ROOTS.get(module.partition(".")[0])
    if root is None:
        return None
    place = root.joinpath(*module.split("."))
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.exists()), None)


def _home(module: str, name: str | None) -> str:
    """Where a name lives that is imported from a module: there, or where a package has it from."""
    path = source(module)
    if name is None or path is None:
        return module
    if source(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    if path.name == "__init__.py":
        home, own = Module.read(path).homes.get(name, (module, name))
        if home != module:
            return _home(home, own)
    return module


def _is_text(node: ast.stmt) -> bool:
    is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_constant and isinstance(node.value.value, str)


def _is_for_types(node: ast.stmt) -> bool:
    is_choice = isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    return is_choice and node.test.id == "TYPE_CHECKING"
