"""Training that outlives its process: a folder that a killed run goes on from.

Training is a program whose time goes into *steps*: a problem that is solved, a setting that is
tried, a start that is searched for. Given the same data and settings it takes the same steps in the
same order. So a checkpoint is what each finished step has found, and the state of the one under
way; and to go on is to run the program once more: a finished step answers from the checkpoint, the
one under way resumes from its state, and the rest is trained. Paths over C, rounds of CCCP,
restarts and searches need nothing of their own.

    000000.npz, 000001.npz, …   what the steps have found, written once
    now.npz                     settings, names of the steps, the state of the one under way, and
                                of finished ones what a later step could start from

Arrays are as NumPy writes them, all else is JSON in an array of bytes; nothing is pickled. Each
file is written whole or not at all, ``now.npz`` last: it alone says what counts.

A checksum finds damage. It cannot tell who wrote a file, so types, sizes, indices and ranges are
checked against what is being trained before compiled loops trust them (`Stateful.restore`).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from didyma.errors import CheckpointWarning, ModelFileError, warn
from didyma.files import PathName, replace_when_done
from didyma.stateful import Stateful, array_of

__all__ = [
    "EVERY",
    "Checkpoint",
    "StepState",
    "active",
    "array_of",
    "check_same",
    "checkpoint",
    "checkpointing",
    "fingerprint",
    "maybe_save",
    "remember",
    "restoring",
    "resume",
]

EVERY = 300.0  # seconds between two checkpoints, and before the first
NOW = "now"
RECORD, CHECKSUM = "record", "checksum"
LONGEST = 60  # characters of a value that an error shows


@dataclass(frozen=True)
class StepState:
    """What a checkpoint holds of a step: its result if it was finished, else its last state.

    ``live`` is the state of the result, for a later step to start from.
    """

    answer: Any = None
    state: Any = None
    live: Any = None


@dataclass
class _Step:
    """A finished step; its answer is forgotten once it is on disk."""

    name: str
    answer: Any
    found: ReferenceType[Any] | None  # what nobody has any more, nobody can start from
    written: bool


class Checkpoint:
    """A folder that training is saved to every now and then, and goes on from; see `checkpoint`.

    ``identity`` says what must be the same, by name: values, or functions that tell when it is
    needed. Without ``resume`` an earlier run's checkpoint is not looked at, and is replaced.
    """

    def __init__(
        self,
        folder: PathName,
        identity: Mapping[str, Any],
        *,
        every: float = EVERY,
        resume: bool = True,
    ) -> None:
        self.folder, self.every = Path(folder), every
        self.interrupted = False
        self._given = identity
        self._identity: dict[str, str] | None = None
        self._run = secrets.token_hex(8)
        self._steps: list[_Step] = []
        self._under_way: tuple[str, Callable[[], Any]] | None = None
        self._read_before: dict[str, Any] = {}  # empty once training is beyond what was read
        self._owns_folder = False
        self._saved = time.monotonic()
        if resume and self.exists:
            self._read_before = self._read(NOW)
            with restoring(self._path(NOW)):
                _check_now(self._read_before)
            check_same(self.folder, self._read_before["identity"], self.identity)
            self._run, self._owns_folder = self._read_before["run"], True

    @property
    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self._path(NOW).exists()

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same, as texts."""
        if self._identity is None:
            told = {name: own() if callable(own) else own for name, own in self._given.items()}
            self._identity = {name: str(own) for name, own in told.items()}
        return self._identity

    def begin(self, name: str, state: Callable[[], Any] | None = None) -> StepState:
        """Begin the next step, whose state ``state`` tells while it is under way."""
        before, number = self._read_before, len(self._steps)
        names = before.get("steps", [])
        if number < len(names):
            self._check_name(number, names[number], name)
            step = f"{number:06d}"
            with restoring(self._path(step)):
                answer = self._read(step)["answer"]
            return StepState(answer, live=before["live"].get(str(number)))
        self._under_way = None if state is None else (name, state)
        self._read_before = {}
        if before.get("under_way") is None:
            return StepState()
        self._check_name(number, before["under_way"], name)
        return StepState(state=before["state"])

    def end(self, name: str, answer: Any, found: Any = None, *, written: bool = False) -> None:
        """End a step; ``found``, if later ones can start from it, has a ``state``.

        What is ``written`` was answered by the checkpoint itself.
        """
        self._under_way = None
        held = None if found is None else ref(found)
        self._steps.append(_Step(name, None if written else answer, held, written))
        self.maybe_save()

    def give_up(self) -> None:
        """End a step that was interrupted: it is resumed when training goes on."""
        self._under_way, self.interrupted = None, True

    def maybe_save(self) -> None:
        """Save what there is, if it is time to; after an interruption that is less than before."""
        if self.interrupted:
            return
        if not self._read_before and time.monotonic() >= self._saved + self.every:
            self.save()

    def save(self) -> None:
        """Write what there is; a warning says if that cannot be done."""
        try:
            self.folder.mkdir(exist_ok=True)
            if not self._owns_folder:
                self._clear()
                self._owns_folder = True
            for number, step in enumerate(self._steps):
                if not step.written:
                    self._write(f"{number:06d}", {"answer": step.answer})
                    step.answer, step.written = None, True
            self._write(NOW, self._now())
        except OSError as error:
            reason = error.strerror or str(error)
            warn(f"{self.folder}: no checkpoint was written: {reason}", CheckpointWarning)
        self._saved = time.monotonic()

    def remove(self) -> None:
        """Remove the folder, unless there is something else in it."""
        if self._owns_folder:
            with suppress(OSError):
                self._clear()
                self.folder.rmdir()

    def _clear(self) -> None:
        """Remove a checkpoint, beginning with what makes it one."""
        for path in [self._path(NOW), *self.folder.glob("[0-9]" * 6 + ".npz")]:
            path.unlink(missing_ok=True)

    def _now(self) -> dict[str, Any]:
        live = {}
        for number, step in enumerate(self._steps):
            found = None if step.found is None else step.found()
            if found is not None and found.state is not None:
                live[str(number)] = found.state.state()
        name, state = self._under_way or (None, None)
        return {
            "identity": self.identity,
            "steps": [step.name for step in self._steps],
            "live": live,
            "under_way": name,
            "state": None if state is None else state(),
        }

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def _write(self, name: str, state: dict[str, Any]) -> None:
        arrays: dict[str, NDArray[Any]] = {}
        record = json.dumps(_flat({**state, "run": self._run}, arrays))
        arrays[RECORD] = np.frombuffer(record.encode(), np.uint8)
        checksum = np.array(fingerprint(arrays))
        with replace_when_done(self._path(name), "wb") as file:
            np.savez(file, **{**arrays, CHECKSUM: checksum})  # type: ignore[arg-type]

    def _read(self, name: str) -> Any:
        path = self._path(name)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = dict(archive)
            if str(arrays.pop(CHECKSUM)) != fingerprint(arrays):
                raise ValueError("its checksum is another")
            state = _whole(json.loads(arrays[RECORD].tobytes()), arrays)
            run = state["run"]
        except Exception as error:  # damage makes zipfile, NumPy and JSON raise all kinds
            raise ModelFileError(f"{path}: damaged, or not a checkpoint ({error})") from None
        if name != NOW and run != self._run:
            raise ModelFileError(f"{path}: of another run than the rest of the checkpoint")
        return state

    def _check_name(self, number: int, before: str, now: str) -> None:
        check_same(self.folder, {f"step {number + 1}": before}, {f"step {number + 1}": now})


_CHECKPOINT: ContextVar[Checkpoint | None] = ContextVar("checkpoint", default=None)


def active() -> Checkpoint | None:
    """The checkpoint of this thread, if a step can begin now: a step has no steps of its own."""
    current = _CHECKPOINT.get()
    return None if current is None or current._under_way is not None else current


def maybe_save() -> None:
    """Save the checkpoint of this thread, if there is one and it is time to: between iterations."""
    current = _CHECKPOINT.get()
    if current is not None:
        current.maybe_save()


@contextmanager
def restoring(path: PathName | None = None) -> Iterator[None]:
    """Refuse what cannot be a state of what is trained in the block, naming the checkpoint."""
    try:
        yield
    except ModelFileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        current = _CHECKPOINT.get()
        place = path or (current.folder if current is not None else "the checkpoint")
        what = f"no {error}" if isinstance(error, KeyError) else error
        raise ModelFileError(f"{place}: damaged, or not of this training ({what})") from None


def remember(
    name: str, work: Callable[[], Any], check: Callable[[Any], object] | None = None
) -> Any:
    """What ``work`` returns, arrays and plain values, or what it did before its process died.

    The latter is refused if ``check`` raises an error, as `array_of` does.

    >>> remember("a sum", lambda: 1 + 1)
    2
    """
    current = active()
    if current is None:
        return work()
    step = current.begin(name)
    if step.answer is not None:
        if check is not None:
            with restoring():
                check(step.answer)
        current.end(name, None, written=True)
        return step.answer
    outside = _CHECKPOINT.set(None)
    try:
        answer = work()
    except KeyboardInterrupt:
        current.give_up()
        raise
    finally:
        _CHECKPOINT.reset(outside)
    current.end(name, answer)
    return answer


def resume(name: str, training: Stateful, work: Callable[[], bool]) -> bool:
    """Do ``work``, all of which shows in ``training``, from where its process died.

    It calls `maybe_save` now and then, and returns whether it was interrupted.
    """
    current = active()
    if current is None:
        return work()
    step = current.begin(name, training.state)
    if step.answer is not None:
        with restoring():
            training.restore(step.answer)
        current.end(name, None, written=True)
        return False
    if step.state is not None:
        with restoring():
            training.restore(step.state)
    if work():
        current.give_up()
        return True
    current.end(name, training.state())
    return False


@contextmanager
def checkpointing(current: Checkpoint) -> Iterator[Checkpoint]:
    """Whatever this thread trains in the block is saved, and goes on from what was saved.

    The checkpoint is removed at the end, unless that is an error or an interruption.
    """
    outside = _CHECKPOINT.set(current)
    try:
        yield current
    finally:
        _CHECKPOINT.reset(outside)
    if not current.interrupted:
        current.remove()


@contextmanager
def checkpoint(folder: PathName, *, every: float = EVERY, **data: Any) -> Iterator[Checkpoint]:
    """Save whatever is trained in the block, and go on from what was saved if its process died.

        with didyma.checkpoint("fit.checkpoint", X=X, y=y, qid=qid):
            ranker = SVMRanker(C=100).fit(X, y, qid=qid)

    Every so many seconds the state of training is written to the folder; if the same program runs
    again, it goes on from there. The keywords are what it depends on, under any names: a checkpoint
    of other data is refused, as is one of other steps. The folder is removed when the block ends
    well; Ctrl-C and errors keep it.

    >>> import tempfile
    >>> from didyma.ranking.svm import SVMRanker
    >>> X, y = np.array([[3.0], [1.0], [2.0]]), np.array([1.0, 0.0, 0.0])
    >>> with tempfile.TemporaryDirectory() as folder, checkpoint(f"{folder}/fit", X=X, y=y):
    ...     ranker = SVMRanker().fit(X, y)
    """

    def teller(value: Any) -> Callable[[], str]:
        return lambda: fingerprint(value)

    identity = {name: teller(value) for name, value in data.items()}
    with checkpointing(Checkpoint(folder, identity, every=every)) as current:
        yield current


def _check_now(state: Mapping[str, Any]) -> None:
    """Refuse a record of all steps that lacks something, or has something else in its place."""
    texts = [state["run"], *state["identity"], *state["identity"].values(), *state["steps"]]
    for text in (*texts, *state["live"], state["under_way"] or ""):
        if not isinstance(text, str):
            raise ValueError(f"expected a text, found {text!r:.40}")
    _ = state["state"]


def check_same(path: PathName, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of a run that differs from this one, naming what differs."""
    names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    if not names:
        return
    pairs = {name: (str(before.get(name)), str(now.get(name))) for name in names}
    told = [
        name if max(map(len, pair)) > LONGEST else f"{name} ({pair[0]}, now {pair[1]})"
        for name, pair in pairs.items()
    ]
    raise ModelFileError(
        f"{path}: a checkpoint of another run, which differs in {', '.join(told)}; give another "
        "place, or remove it to begin anew"
    )


def fingerprint(value: Any) -> str:
    """A text that differs for data that differ: lists, dataclasses, arrays and plain values.

    >>> fingerprint([1, 2]) == fingerprint((1, 2)) != fingerprint([[1], 2])
    True
    """
    digest = sha256()

    def add(part: Any) -> None:
        if isinstance(part, np.ndarray) and part.dtype != object:
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            if part.size and part.itemsize:
                digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        elif isinstance(part, (list, tuple, np.ndarray)):
            digest.update(f"[{len(part)}".encode())
            for item in part:
                add(item)
        elif isinstance(part, Mapping):
            add(list(part.items()))
        elif hasattr(part, "indptr"):
            add([part.shape, part.data, part.indices, part.indptr])
        elif is_dataclass(part):
            add([getattr(part, member.name) for member in fields(part)])
        else:
            digest.update(f"{part!r},".encode())

    add(value)
    return digest.hexdigest()


def _flat(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """JSON for a value, with its arrays elsewhere."""
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Mapping):
        return {"mapping": [[key, _flat(item, arrays)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_flat(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _whole(record: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The inverse of `_flat`."""
    if isinstance(record, list):
        return [_whole(item, arrays) for item in record]
    if not isinstance(record, dict):
        return record
    if "array" in record:
        return arrays[record["array"]]
    return {key: _whole(item, arrays) for key, item in record["mapping"]}
