"""Stamps: each section of the page says what it was made with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from reproductions.kept import Kept

from didyma.errors import DataError
from reproductions import __main__ as every
from reproductions import kept, stamps


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "RESULTS.md"
    path.write_text("<!-- s: begin -->\n<!-- s: end -->\nrest\n")
    return path


def test_a_section_says_what_it_was_made_with(page: Path) -> None:
    assert stamps.read(page) == {"s": ""}
    stamps.write(page, {"s": "a table"}, seed=7)
    assert "a table\n\n*Made at commit" in page.read_text()
    assert page.read_text().endswith("rest\n")
    assert f"Made at commit {stamps.commit()}, " in stamps.read(page)["s"]
    assert "seed 7; python" in stamps.read(page)["s"]
    stamps.write(page, {"s": "another table"})
    assert page.read_text().count("table") == 1


def test_a_section_without_a_place_is_an_error(page: Path) -> None:
    before = page.read_text()
    with pytest.raises(DataError, match="nowhere"):
        stamps.write(page, {"nowhere": "a table"})
    assert page.read_text() == before


def test_what_is_kept_is_of_this_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def compute() -> dict[str, int]:
        made.append(1)
        return {"n": len(made)}

    monkeypatch.setattr(kept, "commit", lambda: "abc1234")
    for _ in range(2):
        cache = Kept(tmp_path)
        assert cache.record({"a": 1}, compute) == {"n": 1}
        assert cache.arrays("a", lambda: {"n": [1, 2]})["n"].tolist() == [1, 2]
    for other in ("def5678", "abc1234+"):
        monkeypatch.setattr(kept, "commit", lambda other=other: other)
        assert Kept(tmp_path).record({"a": 1}, compute) == {"n": len(made)}
    assert Kept(None).record({"a": 1}, compute) == {"n": len(made)}
    assert len(made) == 4


def test_every_section_is_that_of_one_study_and_has_a_stamp() -> None:
    sections = [name for study in every.STUDIES.values() for name in study.sections]
    made = stamps.read(every.RESULTS)
    assert sorted(sections) == sorted(made)
    assert all(made.values())


def test_a_study_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(every, "LOGS", tmp_path / "logs")
    command = [sys.executable, "-c", "raise SystemExit('error: no data')"]
    monkeypatch.setattr(every.Study, "command", lambda self, data: command)
    assert every.main(["grades"]) == 1
    assert "grades: failed, see" in capsys.readouterr().err
    assert "error:" in (tmp_path / "logs" / "grades.log").read_text()
