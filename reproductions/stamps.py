"""What each section of docs/RESULTS.md was made with: a line at its end, the section's *stamp*."""

from __future__ import annotations

import platform
import re
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from didyma.files import replace_sections

__all__ = ["ROOT", "commit", "read", "write"]

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("didyma", "numpy", "scipy", "scikit-learn", "torch")
SECTION = re.compile(r"<!-- (\w+): begin -->\n(.*?)<!-- \1: end -->", re.DOTALL)
STAMP = re.compile(r"^\*(Made at commit .*)\*$", re.MULTILINE)

_begun = time.monotonic()


def write(page: Path, sections: Mapping[str, str], *, seed: int | str | None = 0) -> None:
    """Put sections into the page, each with the stamp of a run that ends now."""
    global _begun
    minutes = (time.monotonic() - _begun) / 60
    versions = {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}}
    stamp = (
        f"*Made at commit {commit()}, {datetime.now(UTC):%Y-%m-%d}, in {minutes:.1f} minutes"
        + (f", seed {seed}" if seed is not None else "")
        + f"; {', '.join(f'{name} {number}' for name, number in versions.items())}.*"
    )
    _begun = time.monotonic()
    replace_sections(page, {name: f"{body}\n\n{stamp}" for name, body in sections.items()})


def read(page: Path) -> dict[str, str]:
    """The stamps by section; empty for one that was never made."""
    sections = SECTION.findall(page.read_text(encoding="utf-8"))
    return {name: "".join(STAMP.findall(body)) for name, body in sections}


def commit() -> str:
    """The commit whose code runs; with a plus where files differ from it."""
    if not (ROOT / ".git").exists():
        return "unknown"
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=7", "--exclude=*"]
    status = ["git", "-C", str(ROOT), "status", "--porcelain", "--", "src", "reproductions"]
    name, changes = (
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        for command in (describe, status)
    )
    return f"{name}+" if changes else name
