"""Folders of arrays are complete or not there, and what is damaged is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from didyma import files
from didyma.data.array_folder import check_replaceable, is_folder, open_folder, replace_folder
from didyma.errors import DataError

KIND = "a test"


def make(path, value=1):
    with replace_folder(path, KIND, 1) as writer:
        writer.array("numbers", np.arange(5) * value)
        writer.array("none", np.zeros((0, 2), np.float32))
        with writer.file("texts") as file:
            file.write("füß\n".encode())
        writer.record["value"] = value


def test_what_is_written_is_read_and_mapped(tmp_path):
    make(tmp_path / "a", 3)
    found = open_folder(tmp_path / "a", KIND, 1)
    assert isinstance(found.arrays["numbers"], np.memmap)
    assert found.arrays["numbers"].tolist() == [0, 3, 6, 9, 12]
    assert found.arrays["none"].shape == (0, 2)
    assert found.record == {"value": 3}
    found.verify()
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_a_folder_is_replaced_and_whoever_has_it_keeps_it(tmp_path):
    make(tmp_path / "a", 1)
    old = open_folder(tmp_path / "a", KIND, 1)
    make(tmp_path / "a", 2)
    assert old.arrays["numbers"].tolist() == [0, 1, 2, 3, 4]
    assert open_folder(tmp_path / "a", KIND, 1).record == {"value": 2}
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_nothing_changes_where_the_block_fails(tmp_path):
    make(tmp_path / "a", 1)
    with pytest.raises(ValueError), replace_folder(tmp_path / "a", KIND, 1) as writer:
        writer.array("numbers", np.array([{}]))  # after its file was begun
    assert open_folder(tmp_path / "a", KIND, 1).record == {"value": 1}
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    make(tmp_path / "mine")  # an empty one may be taken
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    (tmp_path / "file").write_text("dear")
    for path, problem in (
        ("other", "holds other files, not a test"),
        ("file", "found a file"),
        ("none/here", "there is no folder"),
    ):
        with pytest.raises(DataError, match=problem):
            check_replaceable(tmp_path / path, KIND)
    assert (tmp_path / "other" / "letter.txt").read_text() == "dear"
    assert is_folder(tmp_path / "mine", KIND)
    assert not is_folder(tmp_path / "mine", "another")
    assert not is_folder(tmp_path / "other", KIND)


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"kind": "a test", "version": 1, "files": []}',
        b'{"kind": "a test", "version": 1, "files": {"../secret": {"bytes": 1}}}',
        b'{"kind": "a test", "version": 1, "files": {"numbers.npy": {}}}',
        b'{"kind": "another", "version": 1, "files": {}}',
        b'{"kind": "a test", "version": 2, "files": {}}',
        b"[" * 100_000,
    ],
)
def test_damaged_manifests(tmp_path, manifest):
    make(tmp_path / "a")
    (tmp_path / "a" / "manifest.json").write_bytes(manifest)
    with pytest.raises(DataError, match=str(tmp_path)):
        open_folder(tmp_path / "a", KIND, 1)


def test_damaged_files(tmp_path):
    make(tmp_path / "a")
    path = tmp_path / "a" / "numbers.npy"
    contents = path.read_bytes()
    path.write_bytes(contents[:-1])
    with pytest.raises(DataError, match=r"numbers.npy: expected a file of \d+ bytes"):
        open_folder(tmp_path / "a", KIND, 1)
    path.write_bytes(contents[:-1] + b"\x01")
    with pytest.raises(DataError, match=r"numbers.npy: is damaged: its checksum differs"):
        open_folder(tmp_path / "a", KIND, 1).verify()
    path.write_bytes(b"x" * len(contents))
    with pytest.raises(DataError, match=r"numbers.npy: is damaged: expected an array"):
        open_folder(tmp_path / "a", KIND, 1)
    path.unlink()
    with pytest.raises(DataError, match=r"numbers.npy: expected a file"):
        open_folder(tmp_path / "a", KIND, 1)
    with pytest.raises(DataError, match="expected a folder with a test"):
        open_folder(tmp_path / "none", KIND, 1)


def test_arrays_that_could_run_code_are_refused(tmp_path):
    make(tmp_path / "a")
    path, manifest = tmp_path / "a" / "numbers.npy", tmp_path / "a" / "manifest.json"
    np.save(path, np.array([{}], object), allow_pickle=True)
    record = json.loads(manifest.read_text())
    record["files"]["numbers.npy"]["bytes"] = path.stat().st_size
    manifest.write_text(json.dumps(record))
    with pytest.raises(DataError, match="expected an array"):
        open_folder(tmp_path / "a", KIND, 1)


PROGRAM = """
import os, signal, sys
from didyma import files
from didyma.data.array_folder import replace_folder

def die(*_): os.kill(os.getpid(), signal.SIGKILL)
def die_after(function):
    def call(*arguments):
        function(*arguments)
        die()
    return call

path, moment = sys.argv[1:]
if moment != "exchange":
    files._exchange = lambda *_: False
real, calls = os.rename, []
def rename(*names):
    calls.append(names)
    if moment == "second" and len(calls) == 2:
        die()
    real(*names)
    if moment == "first" or (moment == "removal" and len(calls) == 2):
        die()
os.rename = rename
if moment == "exchange":
    files._exchange = die_after(files._exchange)
with replace_folder(path, "numbers", 1) as writer:
    writer.array("x", __import__("numpy").arange(2))
"""


@pytest.mark.skipif(os.name == "nt", reason="needs a signal that ends a process at once")
@pytest.mark.parametrize("moment", ["exchange", "first", "second", "removal"])
@pytest.mark.parametrize("use", ["open", "ask", "replace"])
def test_a_kill_leaves_the_old_folder_or_the_new_one(tmp_path, moment, use):
    """At whatever moment: between the names, or before what was replaced is removed."""
    path = tmp_path / "[a].numbers"
    with replace_folder(path, "numbers", 1) as writer:
        writer.array("x", np.arange(1))
    process = subprocess.run([sys.executable, "-c", PROGRAM, str(path), moment])
    assert process.returncode == -signal.SIGKILL
    if use == "ask":
        assert is_folder(path, "numbers")
    if use != "replace":
        length = 2 if moment in ("exchange", "removal") else 1
        assert len(open_folder(path, "numbers", 1).arrays["x"]) == length
    with replace_folder(path, "numbers", 1) as writer:
        writer.array("x", np.arange(3))
    assert len(open_folder(path, "numbers", 1).arrays["x"]) == 3
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_name_that_cannot_be_taken_leaves_the_old_folder(tmp_path, monkeypatch, exchanges):
    path = tmp_path / "a"
    with replace_folder(path, "numbers", 1) as writer:
        writer.array("x", np.arange(1))
    rename = os.rename

    def fail(one, other):
        if str(one).endswith(".didyma-partial"):
            raise OSError(5, "Input/output error", str(one))
        rename(one, other)

    monkeypatch.setattr(os, "rename", fail)
    if not exchanges:
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
        with pytest.raises(OSError, match="Input/output error"), replace_folder(path, "numbers", 1):
            pass
    elif sys.platform == "linux":  # where no rename is needed
        with replace_folder(path, "numbers", 1):
            pass
    assert len(open_folder(path, "numbers", 1).arrays) == (0 if exchanges else 1)
    assert os.listdir(tmp_path) == ["a"]


def test_a_replacement_that_goes_on_is_left_alone(tmp_path, monkeypatch):
    """Whoever asks in the moment between the names waits, and takes nothing away."""
    monkeypatch.setattr(files, "TRIES", 3)
    partial = tmp_path / ".a.01234567.didyma-partial"
    partial.mkdir()
    (tmp_path / ".a.01234567.old").mkdir()
    with files._locked(partial):
        files.restore_folder(tmp_path / "a")
        assert not (tmp_path / "a").exists()
        with replace_folder(tmp_path / "b", "numbers", 1):
            pass
    files.restore_folder(tmp_path / "a")
    assert (tmp_path / "a").exists()


@pytest.mark.skipif(os.name == "nt", reason="permissions are others there")
def test_a_folder_hands_on_its_permissions(tmp_path):
    path = tmp_path / "a"
    path.mkdir()
    path.chmod(0o750)
    with replace_folder(path, "numbers", 1):
        pass
    assert path.stat().st_mode & 0o777 == 0o750
