"""Stamps: what code a study uses, and that each section says whether that code has changed."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest
from reproductions.kept import Kept

from didyma.errors import DataError
from reproductions import __main__ as every
from reproductions import code, stamps

PAGE = every.RESULTS
STAMPS = stamps.read(PAGE)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small library: a study that uses a lazy package, which has its names from two modules."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "RESULTS.md").write_text("<!-- s: begin -->\n<!-- s: end -->\nrest\n")
    package = tmp_path / "reproductions"
    package.mkdir()
    files = {
        "__init__": "if TYPE_CHECKING:\n    from reproductions.one import f\n"
        "    from reproductions.two import g\n",
        "one": "import numpy\ndef f():\n    from reproductions import three\n",
        "two": "def g(): ...\n",
        "three": "import reproductions.study\n",
        "study": "from reproductions import f\n",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.setattr(code, "ROOTS", {"reproductions": tmp_path})
    return tmp_path


STUDY = "reproductions.study"


def test_a_study_uses_what_it_imports_and_no_more(library: Path) -> None:
    found = code.hashes(STUDY)
    assert list(found) == [f"reproductions.{name}" for name in ("one", "study", "three")]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("import numpy\ndef f():\n    from reproductions import three  # why\n", False),
        (
            '"""Doc."""\nimport numpy\ndef f():\n  """D."""\n  from reproductions import three\n',
            False,
        ),
        ("import numpy\ndef f():\n    from reproductions import three\n    return 1\n", True),
    ],
)
def test_only_what_code_does_counts(library: Path, text: str, counts: bool) -> None:
    before = code.hash_of(STUDY)
    (library / "reproductions" / "one.py").write_text(text)
    assert (code.hash_of(STUDY) != before) is counts


def test_a_section_tells_that_its_code_has_changed(library: Path) -> None:
    page = library / "docs" / "RESULTS.md"
    stamps.write(page, {"s": "a table"}, STUDY, seed=7)
    fresh = page.read_text()
    assert "a table\n\n*Made at commit" in fresh
    assert "seed 7; python" in fresh
    assert fresh.endswith("rest\n")
    assert "changed" not in fresh
    stamps.mark(page)
    assert page.read_text() == fresh
    (library / "reproductions" / "three.py").write_text("x = 1\n")
    (library / "reproductions" / "one.py").unlink()
    stamps.mark(page)
    assert "Code that it runs has changed since.*" in page.read_text()
    stamps.write(page, {"s": "another table"}, STUDY)
    assert "a table" not in page.read_text().replace("another table", "")
    assert "changed" not in page.read_text()


def test_a_section_without_a_place_is_an_error_and_leaves_no_stamp(library: Path) -> None:
    page = library / "docs" / "RESULTS.md"
    with pytest.raises(DataError, match="nowhere"):
        stamps.write(page, {"nowhere": "a table"}, STUDY)
    assert stamps.read(page) == {}


def test_what_is_kept_is_of_this_code(library: Path) -> None:
    made = []

    def compute() -> dict[str, int]:
        made.append(1)
        return {"n": len(made)}

    for _ in range(2):
        kept = Kept(library / "kept", STUDY)
        assert kept.record({"a": 1}, compute) == {"n": 1}
        assert kept.arrays("a", lambda: {"n": [1, 2]})["n"].tolist() == [1, 2]
    (library / "reproductions" / "three.py").write_text("x = 1\n")
    assert Kept(library / "kept", STUDY).record({"a": 1}, compute) == {"n": 2}
    assert Kept(None, STUDY).record({"a": 1}, compute) == {"n": 3}


def test_every_section_is_that_of_one_study_and_has_a_stamp() -> None:
    sections = [name for study in every.STUDIES.values() for name in study.sections]
    assert sorted(sections) == sorted(STAMPS)
    page = PAGE.read_text(encoding="utf-8")
    assert all(page.count(f"<!-- {name}: begin -->") == 1 for name in sections)
    assert page.count(": begin -->") == len(sections)


@pytest.mark.skipif(
    not platform.python_version().startswith("3.11."), reason="hashes are those of Python 3.11"
)
@pytest.mark.parametrize("name", STAMPS)
def test_a_section_whose_code_has_changed_says_so(name: str) -> None:
    section = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name}: end -->")[0]
    assert section.endswith(f"\n\n{stamps.text(STAMPS[name])}\n"), (
        f"code that made {name} has changed: run the study (python -m reproductions --list), "
        "or let the page say so (python -m reproductions --mark)"
    )


def test_studies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert every.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(every.STUDIES)
    assert every.state("new", every.Study("x", ("nothing",)), {}).endswith("never run")


def test_a_study_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(every, "LOGS", tmp_path / "logs")
    command = [sys.executable, "-c", "raise SystemExit('error: no data')"]
    monkeypatch.setattr(every.Study, "command", lambda self, data: command)
    assert every.main(["grades"]) == 1
    assert "grades: failed, see" in capsys.readouterr().err
    assert "error:" in (tmp_path / "logs" / "grades.log").read_text()
