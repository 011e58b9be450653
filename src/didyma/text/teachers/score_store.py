"""A folder of a teacher's scores by content: what was scored once is not asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.files import PathName, locked
from didyma.text.teachers.teacher import Teacher
from didyma.text.vector_file import KEY_SIZE, ModelStore, VectorFile

CLOSE = 0.01  # to which scores of the same pairs agree, relative to the greatest


class ScoreStore(ModelStore):
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

    kind, description = "scores of a teacher", "teacher.json"

    def __init__(self, folder: PathName) -> None:
        super().__init__(folder)
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

    def __reduce__(self) -> Any:
        """A copy is of the same folder."""
        return ScoreStore, (self.folder,)

    def _file(self, teacher: Teacher) -> VectorFile:
        """The scores of a teacher."""
        if teacher.name in self._files:
            return self._files[teacher.name]
        digest = blake2b(teacher.name.encode("utf-8", "replace"), digest_size=4).hexdigest()
        folder, probes = self._folder_of(teacher.name, digest), teacher.fingerprint
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock"):
            if not (folder / self.description).exists():
                self._describe(folder, teacher=teacher.name, fingerprint=probes.tolist())
        with self._described(folder / self.description) as fields:
            before = np.array(fields["fingerprint"], np.float64)
            if before.shape != probes.shape or not np.isfinite(before).all():
                raise ValueError("its fingerprint")
        if np.abs(before - probes).max() > CLOSE * np.abs(before).max():
            raise DataError(
                f"has scores of another teacher, though it is called {teacher.name:.80} as well: "
                f"it gave {before[0]:.4g}, where this one gives {probes[0]:.4g}; use another "
                "folder",
                path=folder,
            )
        self._files[teacher.name] = VectorFile(folder, 1, "float64")
        return self._files[teacher.name]


def _key(query: str, document: str) -> bytes:
    """A hash of both; where one ends and the other begins counts."""
    texts = [text.encode("utf-8", "surrogatepass") for text in (query, document)]
    return blake2b(b"%d:" % len(texts[0]) + b"".join(texts), digest_size=KEY_SIZE).digest()
