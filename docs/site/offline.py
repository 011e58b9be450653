"""A site that asks nobody for anything: the build fails if a page loads what is not in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

# What a browser loads by itself; links that a reader may follow are none of these.
LOADS = (
    re.compile(r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?(?:https?:)?//"),
    re.compile(
        r"<link\b(?![^>]*rel=[\"'](?:canonical|author|license))[^>]*href=[\"'](?:https?:)?//"
    ),
    re.compile(r"url\([\"']?(?:https?:)?//"),
    re.compile(r"@import\s+[\"'](?:https?:)?//"),
)


def foreign(text: str) -> list[str]:
    """Places where a page or a style sheet loads something from another machine."""
    return [found.group() for pattern in LOADS for found in pattern.finditer(text)]


def check(app: Sphinx, error: Exception | None) -> None:
    """Look at every page and style sheet that was written."""
    if error is None and app.builder.format == "html":
        for path in sorted(Path(app.outdir).rglob("*")):
            if path.suffix in (".html", ".css") and (found := foreign(path.read_text())):
                raise SphinxError(f"{path}: loads from elsewhere: {found[0]}")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True}
