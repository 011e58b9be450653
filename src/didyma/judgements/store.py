"""A folder of judgements: JSON lines that are only ever added to, by several processes at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from didyma.data.json_lines import parse_json
from didyma.errors import DataError, placed
from didyma.files import PathName, locked, read_regular
from didyma.judgements.judgement import Judgement, now

FILE, LOCK = "judgements.jsonl", ".lock"
PIECE = 1 << 16  # bytes that are read at a time


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
    >>> [(own.who, own.label) for own in store]
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
        time = now()
        dated = [own if own.when else replace(own, when=time) for own in judgements]
        lines = "".join(json.dumps(own.record, ensure_ascii=False) + "\n" for own in dated)
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
