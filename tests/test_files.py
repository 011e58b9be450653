from __future__ import annotations

import gzip
import os
import subprocess
import sys
import urllib.error
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma import files
from didyma.errors import DataError
from didyma.files import (
    format_suffix,
    read_bytes,
    read_lines,
    replace_folder_when_done,
    replace_sections,
    replace_when_done,
    stream_lines,
)


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


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_what_is_replaced_hands_on_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(mode)
    with replace_when_done(path) as file:
        (partial,) = set(tmp_path.iterdir()) - {path}
        assert partial.stat().st_mode & 0o077 == 0  # nobody else reads what is not yet there
        file.write("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root may do that")
def test_what_is_replaced_hands_on_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    os.chown(path, 1234, 4321)
    path.chmod(0o640)
    with replace_when_done(path) as file:
        file.write("new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (1234, 4321, 0o640)


def test_an_owner_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def chown(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", chown, raising=False)
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    with replace_when_done(path) as file:
        file.write("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o7777 == 0o640


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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no device that is full")
def test_a_device_that_is_full_is_named() -> None:
    with (
        pytest.raises(OSError, match="No space left") as caught,
        replace_when_done("/dev/full") as file,
    ):
        file.write("some text")
    assert caught.value.filename == "/dev/full"


@pytest.mark.parametrize("folder", [False, True])
def test_an_error_without_a_reason(tmp_path: Path, folder: bool) -> None:
    """NumPy says only how much it has written to a disk that is full."""
    path = tmp_path / "out"
    opened = replace_folder_when_done(path, bool) if folder else replace_when_done(path)
    with pytest.raises(OSError, match="No space left") as caught, opened:
        raise OSError("8192 requested and 1024 written")
    assert caught.value.filename == str(path)
    opened = replace_folder_when_done(path, bool) if folder else replace_when_done(path)
    with pytest.raises(urllib.error.URLError, match="unknown host"), opened:
        raise urllib.error.URLError("unknown host")
    assert not os.listdir(tmp_path)


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


def test_a_pipe_is_named() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as pipe:
        pipe.write("1 qid:1 1:2\n")
        pipe.flush()
        path = f"/dev/fd/{reading}"
        with pytest.raises(DataError, match=f"{path}: a pipe, .* write it to a file"):
            files.read_text(path)


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
    page.write_text(2 * page.read_text())
    with pytest.raises(DataError, match="one: end -->, each once"):
        replace_sections(page, {"one": "newer"})


@given(
    st.lists(st.sampled_from(["", "a", "bc", "é\u2028x"]), min_size=1, max_size=8),
    st.lists(st.sampled_from(["\n", "\r", "\r\n"]), min_size=8, max_size=8),
    st.booleans(),
    st.integers(1, 5),
)
def test_lines_end_in_one_of_three_ways(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    ends: list[str],
    marked: bool,
    piece: int,
) -> None:
    for k, (line, end) in enumerate(zip(lines, ends)):  # an empty line would make one end of two
        if k and ends[k - 1] == "\r" and line == "" and end == "\n":
            ends[k] = "\r"
    path = tmp_path_factory.mktemp("lines") / "text"
    text = "".join(map("".join, zip(lines, ends)))
    path.write_bytes((b"\xef\xbb\xbf" if marked else b"") + text.encode())
    assert read_lines(path) == lines
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "PIECE", piece)
        if not (marked and piece < 3):  # a mark that is cut in two
            assert [line.decode() for line in stream_lines(path)] == lines


def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(2000)))
    assert read_bytes(path) == bytes(2000)
    monkeypatch.setenv("DIDYMA_UNPACK_LIMIT", "1999")
    with pytest.raises(DataError, match=r"bomb\.gz: unpacks to more than 1999 bytes"):
        read_bytes(path)
    with pytest.raises(DataError, match="unpacks to more"):
        list(stream_lines(path))
    monkeypatch.setenv("DIDYMA_UNPACK_LIMIT", "many")
    with pytest.raises(DataError, match="DIDYMA_UNPACK_LIMIT: expected a number of bytes"):
        read_bytes(path)


def test_contents_are_on_disk_before_the_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        assert os.fstat(descriptor).st_size == 4
        done.append("sync")
        sync(descriptor)

    def renamed(*names: Path) -> None:
        done.append("rename")
        rename(*names)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    with replace_when_done(tmp_path / "out") as file:
        file.write("text")
    assert done == ["sync", "rename"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom didyma.files import replace_when_done\n"
        f"with replace_when_done({str(tmp_path / 'out')!r}) as file:\n"
        "    file.write('half')\n    print('writing', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with replace_when_done(tmp_path / "other") as file:
            file.write("whole")
        assert len(os.listdir(tmp_path)) == 2  # that of a process that lives stays
        writer.kill()
    assert len(os.listdir(tmp_path)) == 2
    with replace_when_done(tmp_path / "other") as file:
        file.write("whole again")
    assert os.listdir(tmp_path) == ["other"]


def test_two_files_of_one_process_do_not_disturb_each_other(tmp_path: Path) -> None:
    with replace_when_done(tmp_path / "a") as first, replace_when_done(tmp_path / "b") as second:
        first.write("a")
        second.write("b")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_half_a_surrogate_pair_cannot_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match=r"out: half of a surrogate pair .* found 'x\\udc80'"),
        replace_when_done(tmp_path / "out") as file,
    ):
        file.write("x\udc80")
    assert os.listdir(tmp_path) == []
