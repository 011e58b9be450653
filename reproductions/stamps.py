"""What each section of docs/RESULTS.md was made with, and whether its code has changed since.

A *stamp* stands at the end of a section and, for programs, in ``stamps.json`` beside the page: the
commit, the versions, the seed, the time that it took, and a hash of every module that was used.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from didyma.files import replace_sections, replace_when_done
from reproductions.code import ROOT, hashes, source

__all__ = ["changed", "mark", "read", "write"]

PACKAGES = ("didyma", "numpy", "scipy", "scikit-learn", "torch")
BEGINNING = "*Made at commit "

_begun = time.monotonic()


def write(
    page: Path, sections: Mapping[str, str], *modules: str, seed: int | str | None = 0
) -> None:
    """Put sections into the page, each with the stamp of a run of these modules that ends now."""
    global _begun
    stamp = {
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "minutes": round((time.monotonic() - _begun) / 60, 1),
        "seed": seed,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
        "modules": hashes(*modules),
    }
    _begun = time.monotonic()
    _put(page, sections, {**read(page), **dict.fromkeys(sections, stamp)})


def mark(page: Path) -> None:
    """Let every section say whether its code has changed since it was made."""
    stamps = read(page)
    document = page.read_text(encoding="utf-8")
    _put(page, {name: _section(document, name) for name in stamps}, stamps)


def read(page: Path) -> dict[str, Any]:
    """The stamps by section."""
    path = page.with_name("stamps.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def changed(stamp: Mapping[str, Any]) -> list[str]:
    """Modules that are not as they were when the section was made."""
    before = stamp["modules"]
    now = hashes(*(name for name in before if source(name) is not None))
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def text(stamp: Mapping[str, Any]) -> str:
    """A stamp as a reader sees it."""
    versions = stamp["versions"]
    with_what = ", ".join(f"{name} {number}" for name, number in versions.items())
    said = [
        f"{BEGINNING}{stamp['commit']}, {stamp['date']}",
        f", in {stamp['minutes']:g} minutes" if stamp["minutes"] is not None else "",
        f", seed {stamp['seed']}" if stamp["seed"] is not None else "",
        f"; {with_what}." if versions else ". Its versions and its time were not kept.",
    ]
    if changed(stamp):
        said.append(" Code that it runs has changed since.")
    return "".join(said) + "*"


def commit() -> str:
    """The commit whose code runs; with a plus where files differ from it."""
    if not (ROOT / ".git").exists():
        return "unknown"
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=7", "--exclude=*"]
    code = ["--", "src", "reproductions", "benchmarks"]
    known = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    status = ["git", "-C", str(ROOT), "status", "--porcelain", *code]
    is_clean = not subprocess.run(status, check=True, capture_output=True, text=True).stdout.strip()
    return known if is_clean else f"{known}+"


def _put(page: Path, sections: Mapping[str, str], stamps: Mapping[str, Any]) -> None:
    replace_sections(page, {n: f"{body}\n\n{text(stamps[n])}" for n, body in sections.items()})
    with replace_when_done(page.with_name("stamps.json")) as file:
        json.dump(dict(sorted(stamps.items())), file, indent=1)
        file.write("\n")


def _section(document: str, name: str) -> str:
    """What a study wrote, without the stamp."""
    body = document.partition(f"<!-- {name}: begin -->")[2].partition(f"<!-- {name}: end -->")[0]
    return body.rpartition(f"\n\n{BEGINNING}")[0].strip("\n") or body.strip("\n")
