"""Links of pages lead somewhere: to a page, a heading, a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import FENCE, ROOT, name_of

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md")])
LINK = re.compile(r"\[[^][]*(?:\[[^]]*\][^][]*)*\]\(([^()\s]+)\)")
SECTIONS = ("start", "how_to", "reference", "explanation", "evidence")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        numbered = (f"{slug}-{n}" if n else slug for n in range(len(found) + 1))
        found.add(next(name for name in numbered if name not in found))
    return found | set(re.findall(r'<a (?:name|id)="([^"]+)"', text))


def links(page: Path) -> list[str]:
    """Where a page's links lead, those outside of the project left out."""
    found = LINK.findall(FENCE.sub("", page.read_text()))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target.read_text()), f"{page.name}: {link}"


def test_every_page_is_in_a_section() -> None:
    docs = ROOT / "docs"
    listed = {docs / "index.md", *(docs / f"{name}.md" for name in SECTIONS)}
    for name in SECTIONS:
        page = docs / f"{name}.md"
        listed |= {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
    pages = {path for path in docs.rglob("*.md") if "site" not in path.parts}
    assert not pages - listed
    assert not {page.stem for page in pages} & {"search", "genindex"}  # Sphinx has these already
    assert {docs / f"{name}.md" for name in SECTIONS} <= {
        (docs / link).resolve() for link in links(docs / "index.md")
    }


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# The `k` best, again\n\n[a](#the-k-best-again) [b](other.md#x) [c](https://x)\n"
    )
    assert links(page) == ["#the-k-best-again", "other.md#x"]
    assert anchors(page.read_text()) == {"the-k-best-again"}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "explanation/decisions.md"])
def test_modules_that_a_page_names_are_there(page: str) -> None:
    package = ROOT / "src" / "didyma"
    folders = {path.name for path in package.iterdir() if path.is_dir()}
    names = re.findall(r"`([a-z_]+)\.([a-z_]+)[.`]", (ROOT / "docs" / page).read_text())
    named = [(folder, module) for folder, module in names if folder in folders]
    assert named
    for folder, module in named:
        path = package / folder / module
        assert path.is_dir() or path.with_suffix(".py").exists(), f"{page}: {folder}.{module}"
