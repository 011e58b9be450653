"""Indexes of texts that were never indexed by hand, kept where this user's caches are."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from didyma.data.array_folder import is_folder
from didyma.data.texts import chunking, corpus
from didyma.errors import DataError
from didyma.files import PathName
from didyma.text.index import KIND, PassageIndex

__all__ = ["cache_home", "index_of"]


def cache_home() -> Path:
    """The folder of this user's caches; it may not exist yet."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()), "didyma")
    if configured := os.environ.get("XDG_CACHE_HOME"):
        return Path(configured, "didyma")
    try:
        return Path.home() / ".cache" / "didyma"
    except RuntimeError:  # no home folder
        return Path(tempfile.gettempdir(), f"didyma-{os.getuid()}")


def index_of(
    path: PathName,
    *,
    language: str | None = "auto",
    callback: Callable[[int], object] | None = None,
) -> PassageIndex:
    """The index at a path, or one of the texts there, which is made if they have changed.

    It is kept below ``indexes`` in the folder of this user's caches, not beside the texts, which
    may be somebody else's.
    """
    if is_folder(path, KIND):
        return PassageIndex.open(path)
    source = corpus.source(path).resolve()
    folder = cache_home() / "indexes"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = folder / f"{source.name}-{_digest(str(source), str(language))[:16]}"
    stamp = _stamp(source)
    if is_folder(kept, KIND):
        try:
            index = PassageIndex.open(kept)
        except DataError:  # damaged, or of another version: it is made anew
            pass
        else:
            if index.record.get("stamp") == stamp:
                return index
    record = {"source": str(source), "stamp": stamp}
    return PassageIndex.build(path, kept, language=language, callback=callback, record=record)


def _stamp(source: Path) -> str:
    """What tells the texts from those that were there before: names, sizes and times."""
    files = chunking.files(source)[0] if source.is_dir() else [source]
    known = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return _digest(*map(str, known))


def _digest(*texts: str) -> str:
    return sha256("\n".join(texts).encode("utf-8", "surrogateescape")).hexdigest()
