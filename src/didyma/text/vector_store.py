"""A folder of vectors by the contents of texts: what was encoded once is not encoded again."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError, check_choice
from didyma.files import PathName, locked
from didyma.text.encoders.encoder import Encoder, Fingerprint, Side
from didyma.text.encoders.resolution import EncoderLike, resolve
from didyma.text.vector_file import KEY_SIZE, ModelStore, VectorFile, VectorType
from didyma.values import is_whole

CHUNK = 1024  # texts that are looked up at once


class VectorStore(ModelStore):
    """Vectors of texts in a folder, by encoder, side (query or document) and content.

    It can be filled beforehand, in several goes and by several processes; a process that is killed
    loses the batch that it was at. Each encoder has a folder of its own, found by the encoder's
    fingerprint, so that vectors of two encoders are never mixed.

    >>> import tempfile
    >>> from didyma.text import VectorStore
    >>> asked = []
    >>> def encode(texts):
    ...     asked.extend(texts)
    ...     return [[text.count("a"), text.count("b"), 1.0] for text in texts]
    >>> store = VectorStore(tempfile.mkdtemp())
    >>> store.fill(encode, ["abba", "a"])
    2
    >>> asked.clear()
    >>> store.get(encode, ["abba", "b", "a"], budget=0).round(2)
    array([[0.67, 0.67, 0.33],
           [ nan,  nan,  nan],
           [0.71, 0.  , 0.71]], dtype=float32)

    Parameters
    ----------
    folder : path
        Where it is, or will be made when something is put into it.
    dtype : {"float16", "int8"}
        How numbers are kept for an encoder that is new to it. Of a vector of unit length with 384
        numbers float16 takes 768 bytes and keeps a cosine within .001, int8 takes 388 and keeps it
        within .01.
    """

    kind, description = "vectors of texts", "encoder.json"

    def __init__(self, folder: PathName, *, dtype: VectorType = "float16") -> None:
        check_choice(dtype, ("float16", "int8"), "dtype")
        super().__init__(folder)
        self.dtype = dtype
        self._files: list[tuple[Fingerprint, VectorFile]] = []
        self._seen: set[str] = set()

    @classmethod
    def at(cls, place: VectorStore | PathName) -> VectorStore:
        """The store in a folder, or a store as it is."""
        return place if isinstance(place, VectorStore) else cls(place)

    def get(
        self,
        encoder: EncoderLike,
        texts: Sequence[str],
        side: Side = "document",
        budget: int | None = None,
    ) -> NDArray[np.float32]:
        """Vectors of texts; those that it lacks are encoded, and kept.

        Parameters
        ----------
        encoder : Encoder, str, object or callable
            As `didyma.text.encoders.resolve` takes it.
        texts : sequence of str
            Any texts.
        side : {"query", "document"}
            What they are.
        budget : int, optional
            How many may be encoded, at most; the vectors of the others that it lacks are NaN.

        Returns
        -------
        array of shape (n_texts, dimension), float32
            The same numbers, whether a vector was there or was encoded now.
        """
        encoder = resolve(encoder)
        if budget is not None and (not is_whole(budget) or budget < 0):
            raise DataError(f"expected a number of texts, found {budget!r:.40}", field="budget")
        keys = _keys(texts, side)
        file = self._file(encoder)
        rows = _rows(file, keys)
        if (rows < 0).any() and budget != 0:
            lacking = dict.fromkeys(texts[n] for n in np.flatnonzero(rows < 0).tolist())
            self.fill(encoder, list(islice(lacking, budget)), side)
            file = self._file(encoder)
            rows = _rows(file, keys)
        vectors = np.full((len(texts), encoder.dimension), np.nan, np.float32)
        if file is not None:
            vectors[rows >= 0] = file.read(rows[rows >= 0])
        return vectors

    def fill(
        self,
        encoder: EncoderLike,
        texts: Iterable[str],
        side: Side = "document",
        callback: Callable[[int], object] | None = None,
    ) -> int:
        """Encode the texts that it lacks, in batches, and say how many these were.

        What was encoded is on the disk after each batch, so that a run which was interrupted goes
        on where it was. An encoder uses the cores by itself; texts of about the same length are
        in a batch. ``callback`` is told how many texts are done.
        """
        encoder = resolve(encoder)
        source, n_done, n_encoded = iter(texts), 0, 0
        while chunk := list(islice(source, CHUNK)):
            distinct = dict(zip(_keys(chunk, side), chunk))
            rows = _rows(self._file(encoder), list(distinct))
            lacking = [pair for pair, row in zip(distinct.items(), rows) if row < 0]
            lacking.sort(key=lambda pair: len(pair[1]))
            n_done += len(chunk) - len(lacking)
            for start in range(0, len(lacking), encoder.batch_size):
                batch = lacking[start : start + encoder.batch_size]
                vectors = encoder.encode([text for _, text in batch], side)
                self._file_or_new(encoder).append([key for key, _ in batch], vectors)
                n_encoded += len(batch)
                n_done += len(batch)
                if callback is not None:
                    callback(n_done)
            if callback is not None and not lacking:
                callback(n_done)
        return n_encoded

    def verify(self) -> None:
        """Read all vectors, and refuse damaged ones."""
        self._open_new()
        for _, file in self._files:
            file.verify()

    def __len__(self) -> int:
        """Number of vectors, of all encoders."""
        self._open_new()
        return sum(len(file) for _, file in self._files)

    def __reduce__(self) -> Any:
        """A copy is of the same folder."""
        return partial(VectorStore, dtype=self.dtype), (self.folder,)

    def _file(self, encoder: Encoder) -> VectorFile | None:
        """The vectors of an encoder, None if there are none yet."""
        fingerprint = encoder.fingerprint
        for _ in range(2):
            for other, file in self._files:
                if other.matches(fingerprint):
                    return file
            self._open_new()
        return None

    def _file_or_new(self, encoder: Encoder) -> VectorFile:
        """The same; they are made if there are none."""
        if (file := self._file(encoder)) is not None:
            return file
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / "lock"):
            if (file := self._file(encoder)) is None:  # which another process may have made
                folder = self._folder_of(encoder.name, secrets.token_hex(4))
                folder.mkdir()
                fingerprint = encoder.fingerprint.vectors.tolist()
                fields = {"encoder": encoder.name, "dtype": self.dtype, "fingerprint": fingerprint}
                self._describe(folder, **fields)
                file = self._file(encoder)
        assert file is not None
        return file

    def _open_new(self) -> None:
        """Open the folders of encoders that are new."""
        for path in sorted(self.folder.glob(f"*/{self.description}")):
            if path.parent.name in self._seen:
                continue
            with self._described(path) as fields:
                fingerprint = Fingerprint(np.array(fields["fingerprint"], np.float32))
                check_choice(fields["dtype"], ("float16", "int8"), "dtype")
                file = VectorFile(path.parent, fingerprint.vectors.shape[1], fields["dtype"])
            self._seen.add(path.parent.name)
            self._files.append((fingerprint, file))


def _rows(file: VectorFile | None, keys: Sequence[bytes]) -> NDArray[np.int64]:
    """Row of each key in a file; what others have appended is seen if one is missing."""
    if file is None:
        return np.full(len(keys), -1, np.int64)
    rows = file.rows_of(keys)
    if (rows < 0).any():
        file.refresh()
        rows = file.rows_of(keys)
    return rows


def _keys(texts: Sequence[str], side: Side) -> list[bytes]:
    """Hashes of texts; a query and a document of the same words differ."""
    check_choice(side, ("query", "document"), "side")
    person = side.encode()
    return [
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_SIZE, person=person).digest()
        for text in texts
    ]
