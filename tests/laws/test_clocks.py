"""What takes how long is told by clocks that nobody sets."""

from __future__ import annotations

import ast
from pathlib import Path

import didyma

PACKAGE = Path(didyma.__file__).parent
# Where it is a date that is told, to people, or compared with that of a file.
DATES = {
    *("serve/app.py", "serve/logs.py", "serve/served.py", "serve/samples.py", "serve/watch.py"),
    *("cli/index.py", "judgements/store.py", "model/container.py", "text/steps/factors.py"),
}
WALL = {"time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "datetime.today"}


def wall_clocks(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{node.value.id}.{node.attr}")
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            found |= {f"time.{alias.name}" for alias in node.names}
    return found & WALL


def test_budgets_and_checkpoints_do_not_look_at_the_wall() -> None:
    looking = {
        str(path.relative_to(PACKAGE)): found
        for path in PACKAGE.rglob("*.py")
        if (found := wall_clocks(path))
    }
    assert looking.keys() <= DATES, looking
