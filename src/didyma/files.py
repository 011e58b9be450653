"""Read a whole file, gzip or not; write one that is either complete or not there."""

from __future__ import annotations

import gzip
import io
import os
import secrets
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from didyma.errors import DataError

__all__ = [
    "PathName",
    "format_suffix",
    "read_bytes",
    "read_lines",
    "replace_sections",
    "replace_when_done",
]

PathName: TypeAlias = str | PathLike[str]


def format_suffix(path: PathName) -> str:
    """What the name says about the format: its suffix in lower case, before a final ``.gz``.

    >>> format_suffix("runs/Train.CSV.gz")
    '.csv'
    """
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_bytes(path: PathName) -> bytes:
    """The contents of a file, unpacked if they are gzip, whatever its name."""
    contents = Path(path).read_bytes()
    if not contents.startswith(b"\x1f\x8b"):
        return contents
    try:
        return gzip.decompress(contents)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"damaged or truncated gzip data ({error})", path=path) from None


def read_lines(path: PathName) -> list[str]:
    """The lines of a UTF-8 text, plain or gzip, without their ends.

    Only ``\\n`` ends a line: sentences may hold the other line breaks of Unicode.
    """
    contents = read_bytes(path)
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = contents.count(b"\n", 0, error.start) + 1
        raise DataError("expected UTF-8 text", path=path, line=line) from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


@contextmanager
def replace_when_done(path: PathName, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that takes its name only when the block ends well; otherwise nothing changes.

    ``mode`` is "w" (UTF-8 text) or "wb"; a name that ends in ``.gz`` is compressed. A device or
    pipe is written directly.

    >>> with replace_when_done(os.devnull) as file:
    ...     _ = file.write("some text")
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with _opened(path, path, mode) as file:
            yield file
        return
    target = Path(path).resolve()
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with _opened(partial, path, mode) as file:
            yield file
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _opened(place: PathName, path: PathName, mode: str) -> Iterator[IO[Any]]:
    with ExitStack() as stack:
        try:
            file: IO[Any] = stack.enter_context(open(place, "wb"))
        except OSError as error:  # name the file that was asked for, not the partial one
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        if Path(path).suffix.lower() == ".gz":
            packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
            file = cast(IO[Any], stack.enter_context(packed))
        if "b" not in mode:
            file = stack.enter_context(io.TextIOWrapper(file, "utf-8", newline="\n"))
        yield file


def replace_sections(path: PathName, sections: Mapping[str, str]) -> None:
    """Rewrite a document: what stands between ``<!-- name: begin -->`` and ``<!-- name: end -->``.

    All sections are replaced or, where a mark is missing, none.
    """
    document = Path(path).read_text(encoding="utf-8")
    for name, text in sections.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, found, rest = document.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise DataError(f"expected the marks {begin} and {end}", path=path)
        document = f"{before}{begin}\n{text}\n{end}{after}"
    with replace_when_done(path) as file:
        file.write(document)
