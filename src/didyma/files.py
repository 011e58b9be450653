"""Read a whole file, gzip or not; write one that is either complete or not there."""

from __future__ import annotations

import codecs
import errno
import glob
import gzip
import io
import os
import re
import secrets
import shutil
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from didyma.errors import DataError

__all__ = [
    "PathName",
    "check_unpacked",
    "format_suffix",
    "locked",
    "naming",
    "open_regular",
    "read_bytes",
    "read_lines",
    "read_regular",
    "read_text",
    "replace_folder_when_done",
    "replace_sections",
    "replace_when_done",
    "restore_folder",
    "stream_lines",
    "stream_text",
    "unpack_limit",
]

PathName: TypeAlias = str | PathLike[str]

PIECE = 1 << 24  # bytes that are read at a time
LIMIT, DEFAULT_LIMIT = "DIDYMA_UNPACK_LIMIT", 16 << 30
LEFT_BEHIND, OLD = ".didyma-partial", ".old"
TRIES, PAUSE = 100, 0.01  # a rename takes no second
NUMPY_IS_CUT_SHORT = re.compile(r"\d+ requested and \d+ written")
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # of Linux


def format_suffix(path: PathName) -> str:
    """What the name says about the format: its suffix in lower case, before a final ``.gz``.

    >>> format_suffix("runs/Train.CSV.gz")
    '.csv'
    """
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix


def open_regular(path: PathName) -> IO[bytes]:
    """Open a file to read it; folders, pipes and devices, which may never answer, are refused."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    other = "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
    raise DataError(f"expected a file, found {other}", path=path)


def read_regular(path: PathName) -> bytes:
    """The contents of a file, as they are; other threads run while they are waited for."""
    with open_regular(path) as file:
        return file.read()


def read_bytes(path: PathName) -> bytes:
    """The contents of a file, unpacked if they are gzip, whatever its name."""
    return b"".join(_pieces(path))


def read_text(path: PathName) -> bytes:
    r"""The same of a text: without a byte order mark, every line ended by ``\n`` alone.

    Files end lines by ``\n``, ``\r\n`` or ``\r``; all three mean the same in every format.
    """
    text = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def read_lines(path: PathName) -> list[str]:
    """The lines of a UTF-8 text, plain or gzip, without their ends.

    The other line breaks of Unicode end no line: sentences may hold them.
    """
    contents = read_text(path)
    try:
        text = contents.decode()
    except UnicodeDecodeError as error:
        line = contents.count(b"\n", 0, error.start) + 1
        raise DataError("expected UTF-8 text", path=path, line=line) from None
    return text.removesuffix("\n").split("\n")


def stream_lines(path: PathName, size: int = PIECE) -> Iterator[bytes]:
    """The lines of a text one after the other, as bytes, with no more than a piece in memory."""
    rest, first = b"", True
    for piece in _pieces(path, size):
        lines = (rest + piece).splitlines(keepends=True)
        rest = lines.pop()  # it may go on, or end with the first half of a line end
        for line in lines:
            yield (line.removeprefix(codecs.BOM_UTF8) if first else line).rstrip(b"\r\n")
            first = False
    yield from (rest.removeprefix(codecs.BOM_UTF8) if first else rest).splitlines()


def stream_text(path: PathName, size: int = PIECE) -> Iterator[bytes]:
    r"""The text of a file in blocks of whole lines, of about ``size`` bytes, as `read_text` has it.

    Every block ends with ``\n``, the last one too.
    """
    block, pending = b"", list[bytes]()  # whole lines, and what may go on
    for number, piece in enumerate(_pieces(path, size)):
        if number == 0:
            piece = piece.removeprefix(codecs.BOM_UTF8)
        if pending and pending[-1].endswith(b"\r"):
            piece = pending.pop() + piece
        if b"\r" in piece:
            held = piece.endswith(b"\r")  # perhaps the first half of a line end
            piece = piece[: len(piece) - held].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            piece += b"\r" * held
        end = piece.rfind(b"\n") + 1
        if end:
            if block:
                yield block
            block, pending, piece = b"".join([*pending, piece[:end]]), [], piece[end:]
        if piece:
            pending.append(piece)
    if rest := b"".join(pending):
        block += rest.removesuffix(b"\r") + b"\n"
    if block:
        yield block


def unpack_limit() -> int:
    """How many bytes a file may unpack to: ``DIDYMA_UNPACK_LIMIT``, by default 16 GiB."""
    text = os.environ.get(LIMIT, "").strip()
    if text and not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise DataError(f"expected a number of bytes, found {text!r:.40}", field=LIMIT)
    return int(text) if text else DEFAULT_LIMIT


def check_unpacked(size: int, path: PathName | None) -> None:
    """Refuse what unpacks to more than the limit.

    A small file can unpack to more than any memory holds.
    """
    if size > (limit := unpack_limit()):
        raise DataError(
            f"unpacks to more than {limit} bytes; if it can be trusted, raise {LIMIT}", path=path
        )


def _pieces(path: PathName, length: int = PIECE) -> Iterator[bytes]:
    """The contents of a file, unpacked if they are gzip."""
    with open(path, "rb") as file:
        if not file.seekable():
            raise DataError("a pipe, which can be read once only: write it to a file", path=path)
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            while piece := file.read(length):
                yield piece
            return
        size = 0
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                while piece := unpacked.read(length):
                    size += len(piece)
                    check_unpacked(size, path)
                    yield piece
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"damaged or truncated gzip data ({error})", path=path) from None


@contextmanager
def replace_when_done(path: PathName, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file that takes its name only when the block ends well; otherwise nothing changes.

    ``mode`` is "w" (UTF-8 text) or "wb"; a name that ends in ``.gz`` is compressed. A device or
    pipe is written directly. What is replaced hands on its permissions, and its owner where that is
    allowed. What killed processes have left in the folder is removed.

    >>> with replace_when_done(os.devnull) as file:
    ...     _ = file.write("some text")
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with naming(path), _opened(path, path, mode) as file:
            yield file
        return
    target = Path(path).resolve()
    _remove_left_behind(target.parent)
    partial, alive = _begin(target, path)
    try:
        with naming(path, partial):
            if target.exists():
                partial.chmod(0o600)  # until it is known who may read it
            with _opened(partial, path, mode) as file:
                yield file
            _hand_on(target, partial)
            os.fsync(alive.fileno())  # the name must not be on disk before the contents are
            os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
        alive.close()


@contextmanager
def replace_folder_when_done(path: PathName, replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """A folder to fill that takes its name only when the block ends well; else nothing changes.

    A folder of that name is replaced if it is empty or ``replaceable``.
    """
    target = Path(path).resolve()
    restore_folder(target)
    if target.exists() and not (
        target.is_dir() and (replaceable(target) or not any(target.iterdir()))
    ):
        raise DataError("exists, and is not what would be replaced", path=path)
    _remove_left_behind(target.parent)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{LEFT_BEHIND}")
    try:
        with naming(path, partial):
            partial.mkdir(0o700 if target.exists() else 0o777)
            with _locked(partial):
                yield partial
                _hand_on(target, partial)
                _take_name(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        restore_folder(target)


@contextmanager
def naming(path: PathName, partial: Path | None = None) -> Iterator[None]:
    """Let an error of the system name what was asked for, in place of nothing or the partial file.

    A full disk names no file; and NumPy, which writes past Python, does not even say why.
    """
    try:
        yield
    except OSError as error:
        other = partial is None or partial.name not in str(error.filename)
        if error.filename is not None and other:
            raise
        number, problem = error.errno, error.strerror
        if number is None:
            if NUMPY_IS_CUT_SHORT.fullmatch(str(error)) is None:
                raise
            number, problem = errno.ENOSPC, os.strerror(errno.ENOSPC)
        raise OSError(number, problem, os.fspath(path)) from None


def _take_name(partial: Path, target: Path) -> None:
    """Let a complete folder take a name, and what had it, if anything, become the partial one.

    Where the system cannot exchange two names at once there is a moment with nothing under the
    name; who is killed then leaves a folder that `restore_folder` finds.
    """
    if not target.exists():
        os.rename(partial, target)
    elif not _exchange(partial, target):
        old = partial.with_suffix(OLD)
        os.rename(target, old)
        os.rename(partial, target)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names, if the system can."""
    function = _renameat2()
    return function is not None and not function(
        *(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other)), RENAME_EXCHANGE
    )


@cache
def _renameat2() -> Any:
    if sys.platform != "linux":
        return None
    import ctypes

    function = getattr(ctypes.CDLL(None), "renameat2", None)
    if function is not None:
        names = [ctypes.c_int, ctypes.c_char_p]
        function.argtypes = [*names, *names, ctypes.c_uint]
    return function


def restore_folder(path: PathName) -> None:
    """Give a folder its name back if its replacement was cut off between two renames.

    What was replaced otherwise is removed. A replacement that goes on is waited for.
    """
    target = Path(path).resolve()
    for old in target.parent.glob(f".{glob.escape(target.name)}.*{OLD}"):
        for _ in range(TRIES):
            held = _is_held(old.with_suffix(LEFT_BEHIND))
            if target.exists() or held is False:
                break
            time.sleep(PAUSE)
        with suppress(OSError):
            if target.exists():
                shutil.rmtree(old)
            elif not held:
                os.rename(old, target)


def _is_held(folder: Path) -> bool | None:
    """Whether a process is still at work on a folder; None if that cannot be known."""
    try:
        with _descriptor(folder) as descriptor:
            locked = _locks(descriptor)
    except OSError:
        return False
    return None if locked is None else not locked


@contextmanager
def _descriptor(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _hand_on(target: Path, partial: Path) -> None:
    """Give what will replace a file or folder the permissions and, if allowed, owners of that."""
    try:
        before = target.stat()
    except OSError:
        return
    if hasattr(os, "chown"):
        for owner in ((before.st_uid, -1), (-1, before.st_gid)):
            with suppress(OSError):
                os.chown(partial, *owner)
    partial.chmod(stat.S_IMODE(before.st_mode))


@contextmanager
def locked(path: PathName) -> Iterator[None]:
    """Wait until no other process holds the lock of a name, and hold it; it ends with this process.

    The file is made if it is not there, and stays. Where a file system has no locks, as some of
    networks have not, only one process may write.
    """
    with open(path, "ab") as file:
        if os.name == "nt":
            import msvcrt

            file.seek(0)
            while True:
                try:
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
                    break
                except OSError:  # after ten seconds
                    continue
        else:
            import fcntl

            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """A lock on a folder, which ends with this process."""
    if os.name == "nt":  # where an open folder cannot be renamed
        yield
        return
    with _descriptor(folder) as descriptor:
        _lock(descriptor)
        yield


def _begin(target: Path, path: PathName) -> tuple[Path, IO[bytes]]:
    """An empty file beside the target, and a lock on it, which ends with this process."""
    while True:
        partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}{LEFT_BEHIND}")
        try:
            alive = open(partial, "xb")  # noqa: SIM115 - the caller closes it
        except OSError as error:  # name the file that was asked for, not the partial one
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        if _lock(alive) and partial.exists():  # which another process had a moment to remove
            return partial, alive
        alive.close()


def _remove_left_behind(folder: Path) -> None:
    """Remove the partial files and folders that no process holds a lock on."""
    for left in folder.glob(f".*{LEFT_BEHIND}"):
        with suppress(OSError):
            if left.is_dir():
                with _descriptor(left) as descriptor:
                    if _lock(descriptor):
                        shutil.rmtree(left)
            else:
                with open(left, "rb") as file:
                    if _lock(file):
                        left.unlink()


def _lock(file: IO[bytes] | int) -> bool:
    """Take the lock on a file unless another process has it."""
    locked = _locks(file)
    return not isinstance(file, int) and file.writable() if locked is None else locked


def _locks(file: IO[bytes] | int) -> bool | None:
    """The same; None where a file system has no locks."""
    try:
        import fcntl
    except ImportError:  # Windows, where an open file cannot be removed anyway
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def _opened(place: PathName, path: PathName, mode: str) -> Iterator[IO[Any]]:
    with ExitStack() as stack:
        try:
            file: IO[Any] = stack.enter_context(open(place, "wb"))
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        if Path(path).suffix.lower() == ".gz":
            packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
            file = cast(IO[Any], stack.enter_context(packed))
        if "b" not in mode:
            file = stack.enter_context(io.TextIOWrapper(file, "utf-8", newline="\n"))
        try:
            yield file
        except UnicodeEncodeError as error:
            found = error.object[max(0, error.start - 10) : error.end + 10]
            raise DataError(
                f"half of a surrogate pair cannot be written as UTF-8, found {found!r}", path=path
            ) from None


def replace_sections(path: PathName, sections: Mapping[str, str]) -> None:
    """Rewrite a document: what stands between ``<!-- name: begin -->`` and ``<!-- name: end -->``.

    All sections are replaced or, where a mark is missing or stands twice, none.
    """
    document = Path(path).read_text(encoding="utf-8")
    for name, text in sections.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        before, found, rest = document.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed) or begin in rest:
            raise DataError(f"expected the marks {begin} and {end}, each once", path=path)
        document = f"{before}{begin}\n{text}\n{end}{after}"
    with replace_when_done(path) as file:
        file.write(document)
