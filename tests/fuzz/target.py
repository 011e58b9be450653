"""What is given damaged inputs, and the law that it keeps.

A target reads an input, and makes use of what it has read. Either it does, or an error of ours, or
of the system if a file is not there, says so, and names the place if it is about the input.
Anything else is a fault: another error, a file that was changed or left behind, memory by the
gigabyte; and, since these end the process, a crash or a hang.
"""

from __future__ import annotations

import faulthandler
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from didyma.errors import DidymaError
from tests.fuzz.mutators import Parts

__all__ = ["CORPUS", "Fault", "Outcome", "Target", "attempt", "kept", "parts_of"]

CORPUS = Path(__file__).parent / "corpus"
ROOM = 2 << 30  # bytes that an input may make us ask for
LONGEST = 300  # seconds, of which a busy machine and a compiler may need some

Outcome: TypeAlias = Literal["result", "told"]


class Fault(AssertionError):
    """What no input should lead to."""


@dataclass(frozen=True)
class Target:
    """What reads inputs: ``read`` is given their folder, ``use`` what it found and a folder."""

    name: str
    seed: Callable[[Path], Parts]
    read: Callable[[Path], Any]
    use: Callable[[Any, Path], object] = lambda found, folder: None


def attempt(target: Target, parts: Parts, folder: Path) -> Outcome:
    """Give one input to a target; a `Fault`, or whatever else is raised, is a fault."""
    place, other = folder / "given", folder / "made"
    for path in (place, other):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    write(parts, place)
    with _limited(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = _outcome(target, place, other)
    if parts_of(place) != parts:
        raise Fault("files of the input were changed, or others left beside them")
    return outcome


def _outcome(target: Target, place: Path, other: Path) -> Outcome:
    try:
        found = target.read(place)
    except (DidymaError, OSError) as error:
        if str(place) not in str(error):
            raise Fault(f"an error that does not say where: {error}") from error
        return "told"
    try:
        target.use(found, other)
    except (DidymaError, MemoryError):  # what is read may be more than there is room to learn from
        return "told"
    return "result"


@contextmanager
def _limited() -> Iterator[None]:
    """No gigabytes, and not forever."""
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    try:
        if sys.platform == "linux":
            import resource

            pages = int(Path("/proc/self/statm").read_text().split()[0])
            soft, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, hard))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        else:
            yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def write(parts: Parts, place: Path) -> None:
    """Write the files of an input."""
    for name, contents in parts.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)


def parts_of(place: Path) -> Parts:
    """The files in a folder."""
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


def kept(target: str) -> dict[str, Parts]:
    """The inputs of the corpus that were once a fault of this target, by name."""
    return {path.name: parts_of(path) for path in sorted(CORPUS.glob(f"{target}/*"))}
