"""What commands say of errors, and files that they refuse to write."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from didyma.cli.output import check_output, explain
from didyma.errors import DataError


def test_errors_are_one_line() -> None:
    assert explain(FileNotFoundError(errno.ENOENT, "No such file", "a")) == "a: No such file"
    assert explain(OSError("something")) == "something"
    assert explain(MemoryError("2 TiB")) == "out of memory (2 TiB)"
    assert explain(MemoryError()) == "out of memory"
    assert explain(ValueError("first\nsecond")) == "first"
    assert explain(ValueError()) == "ValueError"


def test_outputs_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a"
    source.touch()
    check_output(None)
    check_output(tmp_path / "b", source, None)
    check_output(Path(os.devnull), source)
    (tmp_path / "link").symlink_to(source)
    for path, message in (
        (tmp_path / "link", "is an input"),
        (tmp_path, "a folder"),
        (tmp_path / "none" / "b", "there is no folder"),
        (Path("-"), "-: expected a name, as this is not written to stdout"),
    ):
        with pytest.raises(DataError, match=message):
            check_output(path, source)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DataError, match="no permission"):
        check_output(tmp_path / "b")
