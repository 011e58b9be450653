"""The file itself: safetensors, with texts in its header, a checksum and the model's version."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import PathLike
from typing import Any, Self

from didyma import __version__
from didyma.errors import DataError, ModelFileError
from didyma.files import read_regular, replace_when_done
from didyma.model.codec import Tensors
from didyma.model.fields import convert

FORMAT = "didyma"
FORMAT_VERSION = 2  # 1: didyma 0.2.0, whose rerankers of texts have hashes instead of words


def write_container(tensors: Tensors, path: str | PathLike[str], **described: Any) -> None:
    """Write arrays and what describes them, each as JSON; the file is whole or not there."""
    from safetensors.numpy import save as serialise

    texts = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": __version__,
        **{name: json.dumps(value) for name, value in described.items()},
    }
    contents = serialise(tensors, {**texts, "checksum": checksum(texts, tensors)})
    with replace_when_done(path, "wb") as file:
        file.write(_in_order(contents))


def read_container(path: str | PathLike[str]) -> tuple[dict[str, str], Tensors]:
    """The metadata and arrays of a file that is whole, ours, and of a version that we know."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        contents = read_regular(path)
        tensors = load(contents)  # which checks the header
        texts = _header(contents).get("__metadata__") or {}
        _check_format(path, texts)
    except DataError as error:
        raise ModelFileError(str(error)) from None
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file") from None
    except (OSError, SafetensorError, AttributeError, TypeError, KeyError) as error:
        raise ModelFileError(f"{path}: damaged, or not a model file ({error})") from None
    expected = texts.pop("checksum", None)
    if expected != checksum(texts, tensors):
        raise ModelFileError(f"{path}: damaged, its contents do not match their checksum")
    return texts, tensors


def _check_format(path: str | PathLike[str], texts: Mapping[str, str]) -> None:
    if texts.get("format") != FORMAT:
        raise ModelFileError(f"{path}: a safetensors file, but not a model of this library")
    version = texts.get("format_version", "")
    if not re.fullmatch("[0-9]{1,9}", version):
        raise ModelFileError(f"{path}: damaged, its format version is {version[:20]!r}")
    if int(version) > FORMAT_VERSION:
        writer = texts.get("library_version", "of a later version")
        raise ModelFileError(
            f"{path}: written by didyma {writer} in format {version}, but this is didyma "
            f"{__version__}, which reads format {FORMAT_VERSION}: upgrade to load it"
        )


def _in_order(contents: bytes) -> bytes:
    """The same file with its texts sorted: as safetensors writes them, their order is random."""
    header = _header(contents)
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    end = 8 + int.from_bytes(contents[:8], "little")
    return len(text).to_bytes(8, "little") + text + contents[end:]


def _header(contents: bytes) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
    return header


def checksum(texts: Mapping[str, str], tensors: Tensors) -> str:
    """SHA-256 over the texts and the names, types, shapes and contents of the arrays."""
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


DIGITS = 12  # of the hash
EPOCH = "SOURCE_DATE_EPOCH"  # by which builds are reproducible


@dataclass(frozen=True)
class ModelVersion:
    """The version of a model.

    Attributes
    ----------
    id : str
        The first twelve digits of the SHA-256 of record and arrays: equal training gives equal ids,
        whenever it was done.
    created : str or None
        When the file was written, in UTC; the time of ``SOURCE_DATE_EPOCH`` if the environment has
        it, so that files can be equal to the byte. None in files of before 0.3.
    data : str or None
        Fingerprint of the training data, of models that know it (`TrainingData`).
    parent : str or None
        The id of the model that this one was to replace.

    >>> print(ModelVersion("0123456789ab", "2026-01-02T03:04:05+00:00", parent="ba9876543210"))
    0123456789ab of 2026-01-02, after ba9876543210
    """

    id: str
    created: str | None = None
    data: str | None = None
    parent: str | None = None

    def __str__(self) -> str:
        created = "" if self.created is None else f" of {self.created[:10]}"
        return f"{self.id}{created}" + ("" if self.parent is None else f", after {self.parent}")

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)

    @classmethod
    def restored(cls, checksum: str, values: Any) -> Self:
        """The version that a file tells, with the id that its content has."""
        told = {} if values is None else convert("version", values, dict[str, str | None])
        return cls(checksum[:DIGITS], **told)


def now() -> str:
    """The time of writing."""
    text = os.environ.get(EPOCH, "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise DataError(f"expected a number of seconds, found {text!r:.40}", field=EPOCH)
    when = datetime.fromtimestamp(int(text), UTC) if text else datetime.now(UTC)
    return when.isoformat(timespec="seconds")
