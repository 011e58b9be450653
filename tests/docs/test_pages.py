"""Every block of every page is run, or says why not."""

from __future__ import annotations

import re
import warnings
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from didyma import execution
from didyma.serve import server
from tests.docs.blocks import PAGES, ROOT, RUN, SHOWN, blocks_of, name_of
from tests.docs.given import given
from tests.docs.session import Session

RUNNABLE = [page for page in PAGES if any(block.runs for block in blocks_of(page.read_text()))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_not_run_says_why(page: Path) -> None:
    text = page.read_text()
    assert text.count("\n```") % 2 == 0, "a fence is not closed"
    for block in blocks_of(text):
        where = f"{page.name}, line {block.line}"
        assert block.language in (*RUN, *SHOWN), f"{where}: no test knows {block.language!r}"
        if block.mark == "not run":
            assert block.language in RUN, f"{where}: would not be run anyway"
            assert block.why, f"{where}: why?"
    hidden = re.findall(r"(?m)^    (?:\$ )?(?:didyma|curl|pip|import|from) .*$", unfenced(text))
    assert not hidden, f"{page.name}: commands that are indented are not run: {hidden}"


def unfenced(text: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKEN", "secret")  # which is a line of tokens.txt
    monkeypatch.setattr("didyma.text.index.cache_home", lambda: tmp_path / "caches")
    session = Session(tmp_path)
    monkeypatch.setattr(server, "serve", session.serve)
    with (
        execution.threads(None),
        warnings.catch_warnings(),
        closing(session),
        contextmanager(given(page))(session),
    ):
        warnings.simplefilter("ignore", UserWarning)  # data that are this small deserve them
        for block in blocks_of(page.read_text()):
            session.run(page, block)


def test_a_block_that_fails_is_noticed(tmp_path: Path) -> None:
    page = "```python\nx = 1\n```\n<!-- prints -->\n```text\n2\n```\n"
    first, second = blocks_of(page)
    session = Session(tmp_path)
    session.run(ROOT / "README.md", first)
    assert session.names["x"] == 1
    with pytest.raises(AssertionError, match="promises: 2"):
        session.run(ROOT / "README.md", second)
    for line in ("didyma nothing", "make nothing", "pip install 'didyma[nothing]'", "rm x"):
        with pytest.raises(AssertionError):
            session.command(line)
