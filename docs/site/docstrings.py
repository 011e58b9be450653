"""Docstrings as reStructuredText: they are written for people who read them in an editor.

What is indented is a formula, to be shown as it stands, and an example after the last list of
parameters belongs to no parameter.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

HEADING = re.compile(r"(Parameters|Attributes|Returns|Args:|Raises|Yields)")
ITEM = re.compile(r"([-*•]|\d+\.)\s")
# What reStructuredText takes for a link, an address, a substitution or emphasis, outside of code
# and of *words*.
SIGN = re.compile(
    r"(`[^`]*`|``.*?``|\*+[^*\s][^*]*\*+)|(?<=\w)_(?=\W|$)|(?<=\w)@(?=\w)|[|]|\*(?=\S)"
)


def plain(line: str) -> str:
    """A line of prose whose bars, stars and other signs mean themselves."""
    return SIGN.sub(lambda found: found[1] or rf"\{found[0]}", line)


def marked(lines: list[str]) -> list[str]:
    """The lines of a docstring, formulas and examples marked as such."""
    found: list[str] = []
    in_section = in_item = False
    for place, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        opens = bool(line.strip()) and (place == 0 or not lines[place - 1].strip())
        if not indent and line.strip():
            in_item = bool(ITEM.match(line))
            if HEADING.match(line):
                in_section = True
            elif opens and in_section and line.startswith(">>>"):
                found += ["Examples", "--------"]
                in_section = False
            elif opens and in_section and not line.startswith("-"):
                found += ["Notes", "-----"]
                in_section = False
        elif opens and indent >= 4 and not (in_section or in_item or _goes_on(lines, place)):
            found += [] if line.lstrip().startswith(">>>") else ["::", ""]
        shown = line.lstrip().startswith((">>>", "...")) or (indent and not in_section)
        found.append(line if shown or (in_section and not indent) else plain(line))
    return found


def _goes_on(lines: list[str], place: int) -> bool:
    """Whether an indented paragraph belongs to one that is indented as well."""
    before = next((line for line in reversed(lines[:place]) if line.strip()), "")
    return before.startswith(" ")


def process(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Called by autodoc, before napoleon."""
    lines[:] = marked(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True}
