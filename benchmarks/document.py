"""Write the figures into docs/BENCHMARKS.md, each benchmark between its own markers.

Those of `structures` are a table of another page.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import scipy
from reproductions.stamps import commit
from threadpoolctl import threadpool_info

import didyma
from benchmarks.row import Row
from benchmarks.timing import cores
from didyma.files import replace_sections

__all__ = ["DOCUMENT", "write"]

DOCUMENT = Path(__file__).parents[1] / "docs" / "BENCHMARKS.md"
CROSSED = {"structures": DOCUMENT.with_name("structures.md")}


def write(results: Mapping[str, Sequence[Row]], path: Path = DOCUMENT) -> None:
    """Replace the sections of the benchmarks that were run; the others stay as they are."""
    replace_sections(
        path,
        {
            name: f"{table(rows)}\n\n{setting()}"
            for name, rows in results.items()
            if name not in CROSSED
        },
    )
    for name, page in CROSSED.items():
        if name in results:
            replace_sections(page, {name: f"{crossed(results[name])}\n\n{setting()}"})


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| | figure | unit | target | |", "|---|---:|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.name} | {row.figure} | {row.unit} | {row.target} | {row.verdict} |")
    return "\n".join(lines)


def crossed(rows: Sequence[Row]) -> str:
    """Rows named "line: column" as a table of both."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        line, column = row.name.rsplit(": ", 1)
        cells.setdefault(line, {})[column] = "no" if row.figure == "absent" else row.figure
    columns = list(dict.fromkeys(column for line in cells.values() for column in line))
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for name, line in cells.items():
        lines.append(f"| {name} | {' | '.join(line[column] for column in columns)} |")
    return "\n".join(lines)


def setting() -> str:
    """Where figures come from: a commit, a processor and versions."""
    blas = {
        f"{info['internal_api']} {info['version']}"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }
    versions = [
        f"didyma {didyma.__version__}",
        f"Python {platform.python_version()}",
        f"NumPy {np.__version__}",
        f"SciPy {scipy.__version__}",
        *sorted(blas),
    ]
    made = f"Commit {commit()}, {datetime.now(UTC):%Y-%m-%d}"
    return f"*{made}; {_processor()}, {cores()} cores; {', '.join(versions)}.*"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
