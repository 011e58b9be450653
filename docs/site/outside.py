"""Links to pages that are in the source but not in the site, such as the list of changes.

Sphinx would look for them among its own; as files they are copied, and the link leads there.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

LINK = re.compile(r"(?<=\]\()(\.\./[^()\s#:]+\.md)(?=\))")


def as_files(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links to pages outside of the site mean files."""
    site = Path(app.srcdir).resolve()
    folder = (site / name).parent

    def link(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        return found[1] if target.is_relative_to(site) else f"path:{found[1]}"

    source[0] = LINK.sub(link, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", as_files)
    return {"parallel_read_safe": True}
