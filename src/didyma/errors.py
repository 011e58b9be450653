"""The errors a user can cause, each with a message that says where and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from types import FrameType

__all__ = [
    "CheckpointWarning",
    "DataError",
    "DidymaError",
    "LeftOutWarning",
    "MissingExtraError",
    "MissingPackageError",
    "ModelFileError",
    "NothingLearnedWarning",
    "check_choice",
    "placed",
    "warn",
    "warn_left_out",
]

LONGEST = 400  # characters of a message: what a file holds instead of a word may have no end


class DidymaError(Exception):
    """Base of every error that the command line shows as one line, without a traceback.

    >>> import didyma
    >>> try:
    ...     didyma.SVMRanker().fit([[1.0], [2.0]], [1, 0], group=[3])
    ... except didyma.DidymaError as error:
    ...     print(error)
    group: sizes add up to 3 but there are 2 rows
    """


class DataError(DidymaError, ValueError):
    """Input that cannot be used, with the place where it stands.

    >>> print(DataError("expected a number, found 'abc'", path="train.txt", line=3, field="label"))
    train.txt, line 3, label: expected a number, found 'abc'
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        if len(problem) > LONGEST:
            problem = f"{problem[:LONGEST]} …"
        self.problem, self.path, self.line, self.field = problem, path, line, field
        place = [str(path)] if path is not None else []
        if line is not None:
            place.append(f"line {line}")
        if field is not None:
            place.append(field)
        super().__init__(f"{', '.join(place)}: {problem}" if place else problem)


def check_choice(value: object, choices: Iterable[object], field: str) -> None:
    """Refuse a value that is none of the choices.

    >>> check_choice("two", ["one", "three"], "n")
    Traceback (most recent call last):
    didyma.errors.DataError: n: expected 'one' or 'three', found 'two'
    """
    names = [repr(choice) for choice in choices]
    value = str(value) if isinstance(value, str) else value  # NumPy's are shown in another way
    if repr(value) not in names:
        expected = " or ".join(names) if len(names) == 2 else f"one of {', '.join(names)}"
        raise DataError(f"expected {expected}, found {value!r}", field=field)


@contextmanager
def placed(path: str | PathLike[str], line: int | None = None) -> Iterator[None]:
    """Add the file, and the line where it is not known yet, to an error about its contents."""
    try:
        yield
    except DataError as error:
        line = line if error.line is None else error.line
        raise type(error)(error.problem, path=path, line=line, field=error.field) from None


class CheckpointWarning(UserWarning):
    """Training that goes on, but could not be saved on the way."""


class LeftOutWarning(UserWarning):
    """Parts of a file that could not be used, though it was read."""


class ModelFileError(DidymaError, ValueError):
    """A model file that is damaged, of another kind, or written by a newer version."""


class MissingPackageError(DidymaError, ImportError):
    """A package of others that is not installed, with the command that installs it.

    >>> print(MissingPackageError("encoder='fastembed:NAME'", "fastembed"))
    encoder='fastembed:NAME' needs a package that is not installed: pip install fastembed
    """

    def __init__(self, purpose: str, package: str) -> None:
        super().__init__(f"{purpose} needs a package that is not installed: pip install {package}")


class MissingExtraError(DidymaError, ImportError):
    """An optional dependency that is not installed, with the command that installs it.

    >>> print(MissingExtraError("reading Parquet", "tables"))
    reading Parquet needs an optional dependency: pip install '.[tables]' in a checkout
    """

    def __init__(self, purpose: str, extra: str) -> None:
        # No package index has this library, so a name would install somebody else's, or nothing.
        command = f"pip install '.[{extra}]' in a checkout"
        super().__init__(f"{purpose} needs an optional dependency: {command}")


class NothingLearnedWarning(UserWarning):
    """A model that is worth no more than zero weights or a constant score."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn, naming the line outside of this library and of torch that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and _package(frame) in ("didyma", "torch"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def warn_left_out(message: str, path: str | PathLike[str] | None = None) -> None:
    """Warn of parts of a file, or of documents, that are not used."""
    warn(message if path is None else f"{path}: {message}", LeftOutWarning)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
