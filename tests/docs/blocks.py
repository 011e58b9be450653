"""The code blocks of pages, and what is said about those that are not run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = ("python", "sh", "console")
SHOWN = ("text", "json", "ini", "js", "c")  # what is read or printed; scripts of another language
GENERATED = ("cli.md", "examples.md")  # from what is tested elsewhere
PAGES = sorted(
    [
        *(path for path in (ROOT / "docs").rglob("*.md") if path.name not in GENERATED),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    ]
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- (not run|prints)(?:: ([^\n]+))? -->\n\Z")


@dataclass(frozen=True)
class Block:
    """A block of a page; a mark stands on the line above it."""

    language: str
    code: str
    line: int  # of its first line of code
    mark: str | None  # "not run", for a reason, or "prints", of what the page has printed
    why: str | None

    @property
    def runs(self) -> bool:
        """Whether a test runs it."""
        return self.language in RUN and self.mark != "not run"


def blocks_of(text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    for found in FENCE.finditer(text):
        mark, why = None, None
        if above := MARK.search(text[: found.start()]):
            mark, why = above.groups()
        line = text.count("\n", 0, found.start(2)) + 1
        yield Block(found[1], found[2], line, mark, why)


def name_of(page: Path) -> str:
    """A page's path as its test is called."""
    return page.relative_to(ROOT).as_posix()
