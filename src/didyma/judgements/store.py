"""A judgement, and a folder of them to which several processes may add at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Self

from didyma.data.json_lines import number_of, parse_json
from didyma.errors import DataError, placed
from didyma.files import PathName, locked, read_regular
from didyma.values import shown as quoted

FILE, LOCK = "judgements.jsonl", ".lock"
PIECE = 1 << 16  # bytes that are read at a time


@dataclass(frozen=True)
class Judgement:
    """What somebody thinks of a document for a query.

    Attributes
    ----------
    query : str
        Its text.
    document : str
        Its id, or its text if it has none.
    label : float or None
        A grade, or a teacher's score; None takes back what the same judge has said before.
    who, when, why : str
        The judge, the time in UTC as ISO 8601 has it, and a reason.
    shown : tuple of str
        Documents of the list that it was judged in, in their order.
    text : str or None
        That of the document, where ``document`` is an id.
    qid : str or None
        The id of the query.

    >>> Judgement("who rang?", "d7", 1, who="anna").record
    {'query': 'who rang?', 'document': 'd7', 'label': 1, 'who': 'anna'}
    """

    query: str
    document: str
    label: float | None
    who: str = ""
    when: str = ""
    why: str = ""
    shown: tuple[str, ...] = ()
    text: str | None = None
    qid: str | None = None

    def __post_init__(self) -> None:
        for name in ("query", "document"):
            _check_text(getattr(self, name), name, is_empty_allowed=False)
        if self.label is not None:
            number_of(self.label, "label")
        for name in ("who", "when", "why"):
            _check_text(getattr(self, name), name)
        for name in ("text", "qid"):
            if getattr(self, name) is not None:
                _check_text(getattr(self, name), name)
        if not all(isinstance(document, str) for document in self.shown):
            raise DataError("expected texts", field="shown")
        if self.when:
            _check_time(self.when)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """The judgement of an object, as JSON has it; unknown entries are refused."""
        values = dict(record)
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                raise DataError(f"expected one of {', '.join(names)}, found {name!r:.40}")
        for name in ("query", "document", "label"):
            if name not in values:
                raise DataError("expected it, found none", field=name)
        if not isinstance(values.setdefault("shown", ()), (list, tuple)):
            raise DataError("expected a list", field="shown")
        return cls(**{**values, "shown": tuple(values["shown"])})

    @property
    def record(self) -> dict[str, Any]:
        """The object, without what is not known."""
        return {
            name: list(value) if name == "shown" else value
            for name, value in asdict(self).items()
            if name == "label" or value not in ("", (), None)
        }

    @property
    def passage(self) -> str:
        """The text of the document, or its id where only that is known."""
        return self.document if self.text is None else self.text


class JudgementStore:
    """Judgements in a folder, which is made when the first are added.

    One writer at a time has the lock of the folder. A disk that is full takes nothing of what was
    to be added; a process that is killed leaves whole lines, as the next writer removes one that
    was only begun. Nothing is ever changed: who thinks otherwise adds another judgement, and
    `merge` says which counts.

    >>> import tempfile
    >>> store = JudgementStore(Path(tempfile.mkdtemp(), "judgements"))
    >>> store.add([Judgement("who rang?", "They rang.", 1, who="anna")])
    1
    >>> [(judgement.who, judgement.label) for judgement in store]
    [('anna', 1)]
    """

    def __init__(self, path: PathName) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise DataError("expected a folder of judgements, found a file", path=path)

    @classmethod
    def open(cls, path: PathName) -> JudgementStore:
        """The store in a folder, which must have one."""
        store = cls(path)
        if not store.exists:
            raise DataError(f"expected a folder with {FILE}, found none", path=path)
        return store

    @property
    def exists(self) -> bool:
        """Whether anything was added yet."""
        return (self.path / FILE).is_file()

    def add(self, judgements: Iterable[Judgement]) -> int:
        """Add judgements, of now if they do not say when; how many."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        dated = [one if one.when else replace(one, when=now) for one in judgements]
        lines = "".join(json.dumps(one.record, ensure_ascii=False) + "\n" for one in dated)
        if not dated:
            return 0
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path / LOCK), open(self.path / FILE, "a+b") as file:
            end = _whole_lines(file)
            try:
                file.truncate(end)
                file.write(lines.encode())
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)  # a full disk leaves nothing of them
                raise
        return len(dated)

    def __iter__(self) -> Iterator[Judgement]:
        """All of them, in the order in which they were added."""
        path = self.path / FILE
        if not self.exists:
            return
        *lines, _ = read_regular(path).split(b"\n")  # the last is empty, or only begun
        for number, line in enumerate(lines, 1):
            with placed(path, number):
                try:
                    record = parse_json(line.decode())
                except ValueError as error:
                    raise DataError(f"expected a JSON object ({error})") from None
                if not isinstance(record, dict):
                    raise DataError("expected a JSON object")
                judgement = Judgement.of(record)
            yield judgement

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _whole_lines(file: IO[bytes]) -> int:
    """The length of a file without a line at its end that is not whole."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        begin = max(0, end - PIECE)
        file.seek(begin)
        newline = file.read(end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


def _check_text(value: object, field: str, *, is_empty_allowed: bool = True) -> None:
    if not isinstance(value, str) or not (value.strip() or is_empty_allowed):
        raise DataError(f"expected a text, found {quoted(value)}", field=field)


def _check_time(when: str) -> None:
    try:
        has_zone = datetime.fromisoformat(when).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        problem = f"expected a time such as 2026-01-31T12:00:00+00:00, found {when!r:.40}"
        raise DataError(problem, field="when")
