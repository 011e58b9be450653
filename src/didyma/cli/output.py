"""What commands say and write: results on stdout, messages on stderr, files, and exit codes."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from didyma.cli.signature import FLAGS
from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.report.table import ComparisonTable

_signal: int = signal.SIGINT  # that has interrupted the process, if one has


def listen() -> None:
    """Let SIGTERM interrupt as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        global _signal
        _signal = number
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def exit_code() -> int:
    """That of a process which was interrupted: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + _signal


def end_if_interrupted(interrupted: bool, what: str) -> None:
    """End the command with the exit code of an interruption, if there was one."""
    if interrupted:
        print_message(f"interrupted: the best {what} so far was kept")
        raise typer.Exit(exit_code())


def print_message(message: str) -> None:
    """One line on stderr."""
    typer.echo(message, err=True)


def print_warning(message: object) -> None:
    """A warning as one line on stderr."""
    print_message(f"warning: {message}")


def explain(error: BaseException) -> str:
    """An error as one line."""
    if isinstance(error, DataError) and error.field in FLAGS:
        flag = FLAGS[error.field]
        error = DataError(error.problem, path=error.path, line=error.line, field=flag)
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror}"
    lines = str(error).splitlines()
    if isinstance(error, MemoryError):
        return "out of memory" + (f" ({lines[0]})" if lines else "")
    return lines[0] if lines else type(error).__name__


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(table: ComparisonTable) -> None:
    """A comparison on stdout: drawn on a terminal, plain columns elsewhere."""
    if not sys.stdout.isatty():
        typer.echo(table.text())
        return
    from rich.console import Console

    Console().print(table.rich())


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show each warning of the library as one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: print_warning(message)
        yield


@contextmanager
def log_as_lines(name: str) -> Iterator[None]:
    """Show what a logger of the library tells, as lines on stderr."""
    import logging

    logger, lines = logging.getLogger(name), logging.StreamHandler()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(lines)
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.setLevel(level)


@contextmanager
def waiting(message: str) -> Iterator[None]:
    """Show on a terminal what takes its time."""
    if (console := terminal()) is None:
        yield
        return
    with console.status(message):
        yield


@contextmanager
def counting(message: str) -> Iterator[Callable[[str, int], None]]:
    """A function that shows on a terminal what is being done, and with how many rows so far."""
    if (console := terminal()) is None:
        yield lambda what, rows: None
        return
    with console.status(message) as status:
        yield lambda what, rows: status.update(f"{message}: {what}, {rows:,} rows")


def terminal() -> Any:
    """A console of rich on stderr, or None (and nothing is imported) where that is no terminal."""
    if not (sys.stderr.isatty() or os.environ.get("FORCE_COLOR")):
        return None
    from rich.console import Console

    return Console(stderr=True)


def check_output(path: Path | None, *inputs: Path | None) -> None:
    """Refuse, before any work is done, a file that cannot be written or that is an input."""
    if path is None:
        return
    if path.is_dir():
        raise DataError("expected a file to write, found a folder", path=path)
    _check_place(path)
    for source in inputs:
        if source is not None and path.exists() and source.exists() and path.samefile(source):
            raise DataError("is an input, and would be overwritten", path=path)


def check_report(path: Path | None, *inputs: Path | None) -> None:
    """The same for a report, whose libraries must be installed."""
    check_output(path, *inputs)
    if path is not None:
        from didyma.report.page import require_extra

        require_extra()


def check_folder(path: Path, *inputs: Path | None) -> None:
    """The same for a folder to write."""
    _check_place(path)
    for source in inputs:
        if source is not None and source.resolve().is_relative_to(path.resolve()):
            raise DataError("holds an input, and would be replaced", path=path)


def _check_place(path: Path) -> None:
    if str(path) == "-":
        raise DataError("expected a name, as this is not written to stdout", path=path)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise DataError(f"cannot be written, as there is no folder {folder}", path=path)
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise DataError("no permission to write", path=path)
