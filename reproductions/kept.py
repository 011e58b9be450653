"""What a study has computed, kept so that a run that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from didyma.files import replace_when_done
from reproductions.stamps import commit

__all__ = ["Kept"]


class Kept:
    """Results by their keys, in a folder that is named after the commit whose code runs.

    So nothing is ever taken from another version of the code. Nothing is kept without a folder, or
    while files differ from the commit.
    """

    def __init__(self, folder: Path | None) -> None:
        name = commit()
        self.folder = None if folder is None or name.endswith("+") else folder / name

    def record(self, key: Any, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """What ``compute`` returns, as JSON has it."""
        path = self._path(key, ".json")
        if path is None:
            return {**compute()}
        if not path.exists():
            with replace_when_done(path) as file:
                json.dump(compute(), file)
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def arrays(self, key: Any, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """What ``compute`` returns, as arrays."""
        path = self._path(key, ".npz")
        if path is None:
            return {**compute()}
        if not path.exists():
            with replace_when_done(path, "wb") as file:
                np.savez(file, **compute())
        with np.load(path, allow_pickle=False) as found:
            return dict(found)

    def _path(self, key: Any, suffix: str) -> Path | None:
        if self.folder is None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        text = key if isinstance(key, str) else json.dumps(key, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}{suffix}"
