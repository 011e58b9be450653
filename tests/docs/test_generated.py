"""What is generated is what `docs/build.py` would generate now."""

from __future__ import annotations

import re
import runpy
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, name_of
from tests.docs.test_links import PAGES


def test_the_command_line_reference_is_up_to_date() -> None:
    constraints = (ROOT / "constraints.txt").read_text()
    for name in ("click", "rich", "typer"):
        if f"\n{name}=={version(name)}\n" not in constraints:
            pytest.skip(f"help is laid out differently by {name} {version(name)}")
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    written = (ROOT / "docs" / "cli.md").read_text()
    assert build["command_line"]() == written, "run: python docs/build.py cli"


def test_the_missed_targets_are_those_of_the_tables() -> None:
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    found = (ROOT / "docs" / "BENCHMARKS.md").read_text()
    assert f"\n{build['missed']()}\n" in found, "run: python docs/build.py missed"


def test_the_speeds_are_those_of_the_tables() -> None:
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    assert f"\n{build['speed']()}\n" in (ROOT / "README.md").read_text(), "run: docs/build.py speed"


def test_rerankers_compare_as_their_page_says() -> None:
    """About: on another processor some lists may be decided otherwise."""
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    shown = _losses((ROOT / "docs" / "nbest.md").read_text().partition("<!-- compare -->")[2])
    assert shown == pytest.approx(_losses(build["comparison"]()), abs=0.05), (
        "run: docs/build.py nbest"
    )


def _losses(text: str) -> dict[str, float]:
    lines = text.partition("```text\n")[2].partition("loss:")[0].splitlines()[1:]
    return {name: float(loss) for name, loss, *_ in map(str.split, lines)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_section_has_one_beginning_and_one_end(page: Path) -> None:
    text = page.read_text()
    begun = re.findall(r"^<!-- (?!prints )(\w+)(?:: begin)? -->$", text, re.MULTILINE)
    ended = re.findall(r"^<!-- (?:/(\w+)|(\w+): end) -->$", text, re.MULTILINE)
    assert begun == [one or other for one, other in ended]
    assert len(begun) == len(set(begun))


def test_every_target_of_the_makefile_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)
    assert set(phony.replace("\\", " ").split()) == set(re.findall(r"^([a-z-]+):", makefile, re.M))


def test_the_readme_says_how_to_try_and_to_test_and_what_that_does() -> None:
    readme = (ROOT / "README.md").read_text()
    typed = dict(re.findall(r"^\$ make (\S+) +# (.+)$", readme, re.MULTILINE))
    assert {"demo", "test"} <= set(typed)
    assert readme.count("$ make ") == len(typed), "each on a line of its own, with what it does"
