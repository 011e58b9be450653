"""Ctrl-C and SIGTERM mean the same: training ends, and the best so far is kept."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

import typer

from didyma.cli.output import print_message

_received: int = signal.SIGINT


def listen() -> None:
    """From now on SIGTERM interrupts as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _interrupt)


def exit_code() -> int:
    """That of a process which was interrupted: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + _received


def end_if_interrupted(interrupted: bool, what: str) -> None:
    """End the command with the exit code of an interruption, if there was one."""
    if interrupted:
        print_message(f"interrupted: the best {what} so far was kept")
        raise typer.Exit(exit_code())


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    global _received
    _received = number
    raise KeyboardInterrupt
