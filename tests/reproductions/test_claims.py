"""The page of claims: each row has a verdict, and each figure of ours stands where it links to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
VERDICTS = ("agrees", "does not", "cannot be told")
LINK = re.compile(r"\(?\[([^]]+)\]\((RESULTS\.md)#([^)]+)\)\)?")
FIGURE = re.compile(r"(?<![\w.@])[+-]?[\d,]*\.?\d+(?:e-\d+)?(?:/\d+)?(?: %)?")


def rows() -> list[tuple[str, ...]]:
    """The cells of each row of each table."""
    found = []
    for line in (DOCS / "CLAIMS.md").read_text(encoding="utf-8").splitlines():
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if line.startswith("|") and cells[0] not in ("claim", "---"):
            found.append(cells)
    return found


def sections() -> dict[str, str]:
    """What stands under each heading of the results, deeper headings among it, by its anchor."""
    page = (DOCS / "RESULTS.md").read_text(encoding="utf-8")
    headings = list(re.finditer(r"^(#+) (.+)$", page, re.MULTILINE))
    found: dict[str, str] = {}
    for n, heading in enumerate(headings):
        ends = (h.start() for h in headings[n + 1 :] if len(h[1]) <= len(heading[1]))
        text = page[heading.start() : next(ends, len(page))]
        anchor = re.sub(r"[^\w\- ]", "", heading[2].lower()).replace(" ", "-")
        found.setdefault(anchor, text)
    return found


ROWS, SECTIONS = rows(), sections()


def test_every_row_has_a_claim_both_sides_and_a_verdict() -> None:
    assert len(ROWS) > 30
    for cells in ROWS:
        assert len(cells) == 5, cells
        claim, theirs, ours, verdict, _ = cells
        assert claim, cells
        assert theirs, cells
        assert verdict in VERDICTS, cells
        assert LINK.search(ours) or (ours == "not run" and verdict == VERDICTS[-1]), cells


def missing(text: str, page: str) -> list[str]:
    """Figures of a text that a page does not have."""
    return [
        figure
        for figure in FIGURE.findall(text)
        if not re.search(rf"(?<![\w.]){re.escape(figure)}(?![\w.]*\d)", page)
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_our_figures_stand_in_the_section_that_is_linked(row: tuple[str, ...]) -> None:
    before = 0
    for link in LINK.finditer(row[2]):
        assert not missing(row[2][before : link.start()], SECTIONS[link[3]])
        before = link.end()
    assert not missing(row[4], SECTIONS["results"])


def test_a_figure_that_is_not_there_is_missing() -> None:
    assert missing("1.5 against 12 %, .30 and 1,400", "11.5 12 % .301 1,400") == ["1.5", ".30"]
