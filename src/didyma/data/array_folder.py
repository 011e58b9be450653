"""A folder of plain arrays beside a manifest: complete or not there, and mapped when opened.

    manifest.json    what the folder is, and size and SHA-256 of each of its files
    NAME.npy         an array
    other files      such as texts

Any program can read these; nothing in them can run code.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from didyma import __version__
from didyma.errors import DataError
from didyma.files import PathName, read_regular, replace_folder_when_done, restore_folder

MANIFEST = "manifest.json"


@dataclass(frozen=True, eq=False)
class ArrayFolder:
    """What a folder holds: ``arrays`` mapped into memory, and the ``record`` of its manifest."""

    path: Path
    arrays: dict[str, NDArray[Any]]
    record: dict[str, Any]
    files: dict[str, dict[str, Any]]

    def verify(self) -> None:
        """Read every file, and refuse one that is not what was written."""
        for name, record in self.files.items():
            if _record_of(self.path / name) != record:
                raise DataError("is damaged: its checksum differs", path=self.path / name)


class FolderWriter:
    """Files of a folder that is being made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, dict[str, Any]] = {}
        self.record: dict[str, Any] = {}

    def array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array."""
        with self.file(f"{name}.npy") as file:
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)

    @contextmanager
    def file(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write bytes into."""
        with open(self.folder / name, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        self.adopt(name)

    def adopt(self, name: str) -> None:
        """Take in a file that was written into the folder by other means."""
        self.files[name] = _record_of(self.folder / name)


def _record_of(path: Path) -> dict[str, Any]:
    """What the manifest says of a file."""
    with open(path, "rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def is_folder(path: PathName, kind: str) -> bool:
    """Whether there is a folder of that kind."""
    if not os.path.exists(path):
        restore_folder(path)
    try:
        manifest = json.loads(read_regular(Path(path, MANIFEST)))
    except (OSError, ValueError, RecursionError, DataError):
        return False
    return isinstance(manifest, dict) and manifest.get("kind") == kind


@contextmanager
def replace_folder(path: PathName, kind: str, version: int) -> Iterator[FolderWriter]:
    """Make a folder, which takes its name when the block ends well; otherwise nothing changes.

    A folder of the same kind is replaced, an empty one too, and no other. Whoever has the old one
    open keeps it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "numbers")
    >>> with replace_folder(path, "numbers", 1) as writer:
    ...     writer.array("first", np.arange(3))
    ...     writer.record["made"] = "by hand"
    >>> folder = open_folder(path, "numbers", 1)
    >>> folder.arrays["first"].tolist(), folder.record
    ([0, 1, 2], {'made': 'by hand'})
    """
    check_replaceable(path, kind)
    with replace_folder_when_done(path, lambda place: is_folder(place, kind)) as folder:
        writer = FolderWriter(folder)
        yield writer
        manifest = {
            "kind": kind,
            "version": version,
            "didyma": __version__,
            "files": dict(writer.files),
            **writer.record,
        }
        with writer.file(MANIFEST) as file:
            file.write(json.dumps(manifest, indent=2, ensure_ascii=False).encode())


def check_replaceable(path: PathName, kind: str) -> None:
    """Refuse, before any work is done, a folder that holds something else, or none to write in."""
    target = Path(path).resolve()
    if target.exists() and not is_folder(target, kind):
        if not target.is_dir():
            raise DataError("expected a folder to write, found a file", path=path)
        if any(target.iterdir()):
            raise DataError(f"holds other files, not {kind} that could be replaced", path=path)
    if not target.parent.is_dir():
        raise DataError(f"cannot be written, as there is no folder {target.parent}", path=path)
    if not os.access(target.parent, os.W_OK):
        raise DataError("no permission to write", path=path)


def open_folder(path: PathName, kind: str, version: int) -> ArrayFolder:
    """The folder of a kind, its arrays mapped; files that are cut off or missing are refused."""
    place, manifest = Path(path), Path(path, MANIFEST)
    if not place.exists():
        restore_folder(path)
    if not manifest.is_file():
        raise DataError(f"expected a folder with {kind} and a {MANIFEST}", path=path)
    try:
        described = json.loads(read_regular(manifest))
        kind_here, files = described["kind"], described["files"]
        sizes = {str(name): int(entry["bytes"]) for name, entry in files.items()}
        _ = [entry["sha256"] for entry in files.values()]
        written = int(described["version"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise DataError("is damaged", path=manifest) from None
    if kind_here != kind:
        raise DataError(f"expected {kind}, found {kind_here!r:.40}", path=path)
    if written > version:
        raise DataError("was written by a newer version of didyma", path=path)
    arrays = {}
    for name, size in sizes.items():
        if Path(name).name != name:
            raise DataError("is damaged", path=manifest)
        if not (place / name).is_file() or (place / name).stat().st_size != size:
            raise DataError(f"expected a file of {size} bytes", path=place / name)
        if name.endswith(".npy"):
            arrays[name.removesuffix(".npy")] = mapped(place / name)
    record = {
        name: value
        for name, value in described.items()
        if name not in ("kind", "version", "didyma", "files")
    }
    return ArrayFolder(place, arrays, record, files)


def mapped(path: Path) -> NDArray[Any]:
    """The array in a file, in memory only where it is looked at; it cannot be written."""
    with suppress(Exception):  # what NumPy raises at damage has no common base
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(array, np.ndarray):
            return array
    raise DataError("is damaged: expected an array", path=path)


BLOCK = 1 << 22  # bytes of features that are in memory at a time
HEADER = 128  # bytes; fixed, as the number of rows is known in the end only
_MAGIC = b"\x93NUMPY\x01\x00"


class NpyWriter:
    """An array that is added to, in C order.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "X.npy")
    >>> with NpyWriter(path, np.float32, 2) as file:
    ...     file.add(np.eye(2))
    ...     file.add(np.ones((1, 2)))
    >>> np.load(path).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, path: Path, dtype: DTypeLike, width: int | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self._width, self.n_rows = width, 0
        self._file = open(path, "xb")  # noqa: SIM115 - closed below
        self._file.write(b" " * HEADER)

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows, or numbers if the array has one axis."""
        if rows.size:  # what is empty has no bytes to be seen as
            self._file.write(np.ascontiguousarray(rows, self.dtype).data.cast("B"))
        self.n_rows += len(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                shape = (self.n_rows,) if self._width is None else (self.n_rows, self._width)
                self._file.seek(0)
                self._file.write(_header(self.dtype, shape))
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    text = repr(described).encode().ljust(HEADER - len(_MAGIC) - 3) + b"\n"
    return _MAGIC + (len(text)).to_bytes(2, "little") + text


def read_rows(array: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
    """Some rows of an array that is mapped from a file, read into memory without the map.

    A file that is cut short while it is mapped ends the process; one that is read does not.
    """
    assert isinstance(array, np.memmap)
    width = math.prod(array.shape[1:])
    count, offset = (stop - start) * width, start * width * array.itemsize
    path = Path(str(array.filename))
    values = np.fromfile(path, array.dtype, count, offset=array.offset + offset)
    if len(values) != count:
        raise DataError("cut short while it was being read", path=path)
    return values.reshape(stop - start, *array.shape[1:])
