"""A real browser, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium (Playwright's `Browser`); without one the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs Chromium on the path")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
