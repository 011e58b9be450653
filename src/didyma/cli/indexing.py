"""What commands do with indexes: make them, open them, and show how that goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from didyma.cli.output import say, terminal
from didyma.cli.progress import progress_bars

if TYPE_CHECKING:
    from didyma.text.index import PassageIndex

__all__ = ["Language", "described", "indexing", "open_or_make", "spoken"]

EVERY = 100_000  # passages between two lines

Language = Annotated[
    str,
    typer.Option(
        "--language", metavar="NAME", help="Language of stop words and stems, auto, or none."
    ),
]


def spoken(language: str) -> str | None:
    """The language that an option names."""
    return None if language == "none" else language


@contextmanager
def indexing(path: Path) -> Iterator[Callable[[int], None]]:
    """A callback that shows how many passages were read: a bar on a terminal, else lines."""
    if (console := terminal()) is None:

        def line(n_passages: int) -> None:
            if n_passages // EVERY > (n_passages - 10_000) // EVERY:
                say(f"{path}: {n_passages:,} passages so far")

        yield line
        return
    with progress_bars(console) as bars:
        task = bars.add_task(f"indexing {path}", total=None, state="")
        yield lambda n_passages: bars.update(task, state=f"{n_passages:,} passages")


def open_or_make(path: Path, language: str) -> PassageIndex:
    """The index at a path, or one of the texts there, kept for the next time."""
    from didyma.text.index_cache import index_of

    began = time.time()
    with indexing(path) as callback:
        index = index_of(path, language=spoken(language), callback=callback)
    if (index.path / "manifest.json").stat().st_mtime >= began:
        say(f"{path}: indexed in {index.path}, {described(index)}")
    return index


def described(index: PassageIndex) -> str:
    """How much it holds."""
    size = index.n_bytes
    return f"{len(index):,} passages, {index.language or 'no language'}, {size / 1e6:.1f} MB"
