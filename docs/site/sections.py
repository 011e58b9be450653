"""What a section's page links to in a list is what it contains.

Pages are written to be read as they are, without a site: they have no directives. A page of
`SECTIONS` has lists of links, and these become its table of contents, a part for each heading.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("index", "start", "how_to", "reference", "explanation", "evidence")
ENTRY = re.compile(r"^[-*] \[[^]]*\]\(([\w/]+)\.md\)", re.MULTILINE)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def toctree(caption: str, pages: list[str]) -> str:
    """A table of contents that only the navigation shows."""
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *pages, "```", ""])


def add_toctree(app: Sphinx, name: str, source: list[str]) -> None:
    """Let a section contain what it lists."""
    if name in SECTIONS:
        folder = PurePosixPath(name).parent
        opening, *parts = HEADING.split(source[0])
        # The home page's headings are about its own contents.
        captions = [""] * len(parts[::2]) if name == "index" else parts[::2]
        generated = app.config.reference_pages if name == "reference" else []
        for caption, text in zip(["", *captions], [opening, *parts[1::2]], strict=True):
            listed = [str(folder / page) for page in ENTRY.findall(text)]
            if pages := [*listed, *([] if caption else generated)]:
                source[0] += toctree(caption, ["/" + page for page in pages])


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("source-read", add_toctree)
    return {"parallel_read_safe": True}
