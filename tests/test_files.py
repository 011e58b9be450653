from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from didyma.errors import DataError
from didyma.files import format_suffix, read_bytes, replace_sections, replace_when_done


def test_a_finished_file_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with replace_when_done(path) as file:
        file.write("new é\n")
        assert path.read_text() == "old"
    assert path.read_bytes() == "new é\n".encode()
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("before", [None, "old"])
def test_an_interrupted_file_leaves_nothing_behind(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "out.txt"
    if before is not None:
        path.write_text(before)

    def interrupted() -> None:
        with replace_when_done(path) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [p.read_text() for p in tmp_path.iterdir()] == ([] if before is None else [before])


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with replace_when_done(tmp_path / "out", "wb") as file:
        file.write(b"x")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_keeps_pointing_at_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with replace_when_done(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_device_is_not_replaced() -> None:
    with replace_when_done(os.devnull) as file:
        file.write("gone")
    assert not os.path.isfile(os.devnull)


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "out.txt"
    with pytest.raises(FileNotFoundError) as caught, replace_when_done(path):
        pass
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_gzip_by_name_is_read_by_content(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "out.txt.GZ"
    with replace_when_done(path, mode) as file:
        file.write("text" if mode == "w" else b"text")
    assert gzip.decompress(path.read_bytes()) == b"text"
    renamed = path.rename(tmp_path / "out.txt")
    assert read_bytes(renamed) == b"text"


def test_damaged_gzip_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.gz"
    packed = gzip.compress(b"some text" * 100)
    for damaged in (packed[:-20], packed[:12], packed[:-8] + bytes(8), packed[:10] + bytes(40)):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"data\.gz: damaged or truncated gzip"):
            read_bytes(path)


@pytest.mark.parametrize(
    ("name", "suffix"), [("a.CSV", ".csv"), ("a.b.tsv.gz", ".tsv"), ("a", ""), ("x/a.gz", "")]
)
def test_suffix(name: str, suffix: str) -> None:
    assert format_suffix(name) == suffix


def test_only_marked_sections_are_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- one: begin -->\nold\n<!-- one: end -->\nb\n")
    for _ in range(2):
        replace_sections(page, {"one": "new"})
        assert page.read_text() == "a\n<!-- one: begin -->\nnew\n<!-- one: end -->\nb\n"
    with pytest.raises(DataError, match="two: begin"):
        replace_sections(page, {"one": "newer", "two": "new"})
    assert "newer" not in page.read_text()
