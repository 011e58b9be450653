"""The file itself: safetensors, with texts in its header and a checksum over everything."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from os import PathLike
from typing import Any

from didyma import __version__
from didyma.errors import DataError, ModelFileError
from didyma.files import read_regular, replace_when_done
from didyma.model.serialisable import Tensors

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
