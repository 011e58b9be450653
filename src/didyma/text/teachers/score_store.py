"""A folder of a teacher's scores by content: what was scored once is not asked for again."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.files import PathName, locked, replace_when_done
from didyma.text.teachers.teacher import Teacher
from didyma.text.vector_file import KEY_SIZE, VectorFile

KIND, VERSION = "scores of a teacher", 1
DESCRIPTION = "teacher.json"
CLOSE = 0.01  # to which scores of the same pairs agree, relative to the greatest


class ScoreStore:
    """Scores of pairs of a query and a document, by teacher and content.

    Scores are on the disk after each query, so that a run which was killed goes on where it was;
    several processes may write. Each teacher has a folder of its own, found by its name. A teacher
    of the same name that gives other scores to a few fixed texts is refused.

    >>> import tempfile
    >>> from didyma.text.teachers import ScoreStore, resolve
    >>> asked = []
    >>> def longest(query, documents):
    ...     asked.extend(documents)
    ...     return [len(document) for document in documents]
    >>> store, teacher = ScoreStore(tempfile.mkdtemp()), resolve(longest)
    >>> store.score(teacher, "which?", ["this", "that one"])
    array([4., 8.])
    >>> asked.clear()
    >>> store.score(teacher, "which?", ["that one", "other"]), asked
    (array([8., 5.]), ['other'])

    Parameters
    ----------
    folder : path
        Where it is, or will be made when something is put into it.
    """

    def __init__(self, folder: PathName) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError("expected a folder of scores, found a file", path=folder)
        self._files: dict[str, VectorFile] = {}

    def score(self, teacher: Teacher, query: str, documents: Sequence[str]) -> NDArray[np.float64]:
        """The score of each document; those that it lacks are asked for, and kept."""
        if not len(documents):
            return np.zeros(0)
        file, keys = self._file(teacher), [_key(query, document) for document in documents]
        lacking = {
            key: text for key, text, row in zip(keys, documents, file.rows_of(keys)) if row < 0
        }
        if lacking:
            scores = teacher.score(query, list(lacking.values()))
            file.append(list(lacking), scores[:, None])
        return file.read(file.rows_of(keys))[:, 0].astype(np.float64, copy=False)

    def __len__(self) -> int:
        """Number of scores, of all teachers that were asked since it was opened."""
        return sum(map(len, self._files.values()))

    def __repr__(self) -> str:
        return f"ScoreStore({str(self.folder)!r})"

    def __reduce__(self) -> Any:
        """A copy is of the same folder."""
        return ScoreStore, (self.folder,)

    def _file(self, teacher: Teacher) -> VectorFile:
        """The scores of a teacher."""
        if teacher.name in self._files:
            return self._files[teacher.name]
        short = re.sub(r"[^a-z0-9]+", "-", teacher.name.lower()).strip("-")[-40:]
        digest = blake2b(teacher.name.encode("utf-8", "replace"), digest_size=4).hexdigest()
        folder = self.folder / f"{short or 'teacher'}-{digest}"
        folder.mkdir(parents=True, exist_ok=True)
        path, probes = folder / DESCRIPTION, teacher.fingerprint
        with locked(folder / "lock"):
            if not path.exists():
                described = {"kind": KIND, "version": VERSION, "teacher": teacher.name}
                with replace_when_done(path) as out:
                    out.write(json.dumps({**described, "fingerprint": probes.tolist()}))
        _check(path, teacher.name, probes)
        self._files[teacher.name] = VectorFile(folder, 1, "float64")
        return self._files[teacher.name]


def _check(path: Path, name: str, probes: NDArray[np.float64]) -> None:
    """Refuse the folder of another teacher."""
    try:
        description = json.loads(path.read_bytes())
        if description["kind"] != KIND or description["version"] > VERSION:
            raise DataError(f"expected {KIND} of version {VERSION} or before", path=path)
        before = np.array(description["fingerprint"], np.float64)
        if before.shape != probes.shape or not np.isfinite(before).all():
            raise ValueError("its fingerprint")
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is damaged ({error})", path=path) from None
    if np.abs(before - probes).max() > CLOSE * np.abs(before).max():
        raise DataError(
            f"has scores of another teacher, though it is called {name:.80} as well: it gave "
            f"{before[0]:.4g}, where this one gives {probes[0]:.4g}; use another folder",
            path=path.parent,
        )


def _key(query: str, document: str) -> bytes:
    """A hash of both; where one ends and the other begins counts."""
    texts = [text.encode("utf-8", "surrogatepass") for text in (query, document)]
    return blake2b(b"%d:" % len(texts[0]) + b"".join(texts), digest_size=KEY_SIZE).digest()
