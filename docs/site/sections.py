"""What a section's page links to in a list is what it contains.

Pages are written to be read as they are, without a site: they have no directives. A page of
`SECTIONS` has lists of links, and these become its table of contents.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("index", "start", "how_to", "reference", "explanation", "evidence")
ENTRY = re.compile(r"^[-*] \[[^]]*\]\(([\w/]+)\.md\)", re.MULTILINE)


def toctree(pages: list[str]) -> str:
    """A table of contents that only the navigation shows."""
    return "\n".join(["", "```{toctree}", ":hidden:", "", *pages, "```", ""])


def add_toctree(app: Sphinx, name: str, source: list[str]) -> None:
    """Let a section contain what it lists."""
    if name in SECTIONS:
        folder = PurePosixPath(name).parent
        listed = [str(folder / page) for page in ENTRY.findall(source[0])]
        generated = app.config.reference_pages if name == "reference" else []
        source[0] += toctree(["/" + page for page in [*listed, *generated]])


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", add_toctree)
    return {"parallel_read_safe": True}
