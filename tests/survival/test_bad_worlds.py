"""Disks that are full, folders that vanish, files that change: a clear error, the old file kept."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import didyma
from didyma.cli import app, fit
from didyma.errors import DataError
from didyma.files import replace_when_done
from tests.survival.trials import judged


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Training that replaces an old file."""
    didyma.write(judged(0, 4), tmp_path / "train.npz")
    (tmp_path / "model").write_bytes(b"old")
    return ["fit", str(tmp_path / "train.npz"), "-o", str(tmp_path / "model")]


def refused(command: list[str]) -> str:
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 1, found.output
    assert "Traceback" not in found.output
    return found.stderr.splitlines()[-1]


def full(at: str) -> Callable[..., Any]:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fail


@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_a_full_disk_is_told_with_the_name_of_the_file(
    at: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, at, full(at))
        line = refused(command)
    assert line == f"error: {tmp_path / 'model'}: No space left on device"
    assert (tmp_path / "model").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["model", "train.npz"]


@pytest.mark.skipif(sys.platform == "win32", reason="has no limits on files")
def test_a_file_that_may_not_grow_leaves_nothing(tmp_path: Path) -> None:
    """A real refusal of the system, in the midst of writing."""
    (tmp_path / "out").write_bytes(b"old")
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "from didyma.files import replace_when_done\n"
        f"with replace_when_done({str(tmp_path / 'out')!r}, 'wb') as file:\n"
        "    file.write(bytes(100_000))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("OSError: [Errno 27] File too large: ")
    assert str(tmp_path / "out") in done.stderr
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this process may not mount a small disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_full(small_disk: Path) -> None:
    (small_disk / "out").write_bytes(b"old")
    with (
        pytest.raises(OSError, match="No space left") as caught,
        replace_when_done(small_disk / "out", "wb") as file,
    ):
        file.write(bytes(1_000_000))
    assert caught.value.filename == str(small_disk / "out")
    assert os.listdir(small_disk) == ["out"]


def test_an_index_on_a_disk_that_is_full(small_disk: Path, tmp_path: Path) -> None:
    lines = "".join(f"passage {n} of {n * n}\n" for n in range(20_000))
    (tmp_path / "passages.txt").write_text(lines)
    line = refused(["index", str(tmp_path / "passages.txt"), "-o", str(small_disk / "index")])
    assert line == f"error: {small_disk / 'index'}: No space left on device"
    assert not os.listdir(small_disk)
    told = "error: -: expected a name, as this is not written to stdout"
    assert refused(["index", str(tmp_path / "passages.txt"), "-o", "-"]) == told


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="has no device that is full")
def test_a_device_that_is_full_is_named(command: list[str], tmp_path: Path) -> None:
    told = "error: /dev/full: No space left on device"
    assert refused([*command, "-o", "/dev/full"]) == told
    model, data = str(tmp_path / "good"), str(tmp_path / "train.npz")
    assert CliRunner().invoke(app, [*command, "-o", model]).exit_code == 0
    for verb in ("predict", "rank"):
        assert refused([verb, model, data, "-o", "/dev/full"]) == told
    done = subprocess.run(
        f"{sys.executable} -m didyma predict {model} {data} > /dev/full",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "error: stdout: No space left on device\n")


def test_a_checkpoint_on_a_full_disk_does_not_end_training(
    small_disk: Path, command: list[str]
) -> None:
    (small_disk / "rest").write_bytes(bytes(60_000))
    more = ["--checkpoint", str(small_disk / "here"), "--checkpoint-every", "0"]
    found = CliRunner().invoke(app, [*command, *more])
    assert found.exit_code == 0, found.output
    assert "no checkpoint was written: No space left on device" in found.stderr
    assert os.listdir(small_disk) == ["rest"]


def test_a_folder_that_vanishes(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "away"
    place.mkdir()
    learn = fit._learn

    def learn_and_vanish(*arguments: Any) -> Any:
        place.rmdir()
        return learn(*arguments)

    monkeypatch.setattr(fit, "_learn", learn_and_vanish)
    line = refused([*command, "-o", str(place / "model")])
    assert line == f"error: {place / 'model'}: No such file or directory"


@pytest.mark.skipif(not os.path.isdir("/sys/kernel"), reason="needs a folder that is read-only")
def test_a_folder_that_is_read_only(command: list[str]) -> None:
    assert "/sys/model" in refused([*command, "-o", "/sys/model"])


def mapped(folder: Path) -> Any:
    lists = judged(0, 4)
    np.save(folder / "X.npy", lists.X)
    return np.load(folder / "X.npy", mmap_mode="r"), lists.y, lists.qid


@pytest.mark.parametrize("solver", ["bcfw", "one-slack"])
def test_a_file_that_changes_under_a_map(solver: str, tmp_path: Path) -> None:
    X, y, qid = mapped(tmp_path)

    def change(progress: Any) -> None:
        np.load(tmp_path / "X.npy", mmap_mode="r+")[0] += 1.0
        os.utime(tmp_path / "X.npy", ns=(0, progress.n_iter))

    with pytest.raises(DataError, match=r"X\.npy: has changed while it was learned from"):
        didyma.SVMRanker(solver=solver, callback=change).fit(X, y, qid=qid)


def test_a_file_that_is_replaced_under_a_map(tmp_path: Path) -> None:
    X, y, qid = mapped(tmp_path)
    alone = didyma.SVMRanker().fit(X, y, qid=qid).coef_

    def change(progress: Any) -> None:
        np.save(tmp_path / "new.npy", np.zeros(3))
        (tmp_path / "new.npy").replace(tmp_path / "X.npy")

    assert np.array_equal(didyma.SVMRanker(callback=change).fit(X, y, qid=qid).coef_, alone)


@pytest.mark.skipif(sys.platform == "win32", reason="does not let a mapped file shrink")
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_a_file_that_shrinks_under_a_map_is_told(scale: str, tmp_path: Path) -> None:
    """The system ends whoever reads beyond the end of a file: with a line, and nothing half."""
    didyma.write(judged(0, 60), tmp_path / "train.lists")
    (tmp_path / "model").write_bytes(b"old")
    program = (
        "import os\nfrom didyma.cli import fit, main\nread = fit._read\n"
        "def read_and_shrink(*arguments, **named):\n    found = read(*arguments, **named)\n"
        "    os.truncate('train.lists/X.npy', 128)\n    return found\n"
        "fit._read = read_and_shrink\nmain()\n"
    )
    command = ["fit", "train.lists", "-o", "model", "--scale", scale, "--jobs", "2"]
    done = subprocess.run(
        [sys.executable, "-c", program, *command], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    expected = "error: train.lists: cut short, or no longer readable, while it was learned from"
    assert done.stderr.splitlines()[-1] == expected
    assert (tmp_path / "model").read_bytes() == b"old"


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="cannot ask for room on a disk")
def test_scaled_rows_that_do_not_fit_on_the_disk_are_told(small_disk: Path, tmp_path: Path) -> None:
    """They are mapped as well: without room, whoever writes them would be ended."""
    didyma.write(judged(0, 60), tmp_path / "train.lists")
    more = ["-o", str(small_disk / "model"), "--scale", "standard"]
    line = refused(["fit", str(tmp_path / "train.lists"), *more])
    assert line == f"error: {small_disk}: No space left on device"
    assert os.listdir(small_disk) == []


PIPES = """
import os, shutil, sys
from pathlib import Path
import didyma
from didyma import model
from didyma.data.array_folder import is_folder

def refuses(read, path):
    try:
        read(path)
    except (didyma.errors.DataError, didyma.errors.ModelFileError) as error:
        print(error)
    else:
        print("accepted", path)

folder = Path(sys.argv[1])
os.mkfifo(folder / "pipe")
for read in (didyma.load, model.describe, didyma.TextReranker.load, didyma.SVMRanker.load):
    refuses(read, folder / "pipe")
index = folder / "index"
for file in sorted(index.iterdir()):
    whole = file.rename(folder / "whole")
    os.mkfifo(file)
    refuses(didyma.PassageIndex.open, index)
    os.replace(whole, file)
os.mkfifo(folder / "manifest.json")
assert not is_folder(folder, "passages")
refuses(didyma.PassageIndex.open, folder)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names")
def test_a_pipe_in_the_place_of_a_model_or_an_index_is_refused_at_once(tmp_path: Path) -> None:
    """Whatever is opened: a pipe that nobody writes to would be waited for, for ever."""
    didyma.PassageIndex.build(["They ring .", "It rains ."], tmp_path / "index")
    done = subprocess.run(
        [sys.executable, "-c", PIPES, tmp_path], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 4 + len(list((tmp_path / "index").iterdir())) + 1
    for line in said[:4]:
        assert line == f"{tmp_path / 'pipe'}: expected a file, found a pipe or device"
    assert all(line.startswith(str(tmp_path)) and "expected" in line for line in said)
