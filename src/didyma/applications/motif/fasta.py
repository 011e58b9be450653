"""FASTA: named DNA sequences, a header line ``>name description`` and lines of bases each.

Small letters (soft-masked repeats) count as capitals, and U as T. The other letters of the IUPAC
code (N, R, Y, …) are kept, and stand for a base that is unknown: no motif covers it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.files import PathName, stream_lines

__all__ = ["BASES", "UNKNOWN", "FastaRecord", "decode", "encode", "read", "stream"]

BASES = "ACGT"
UNKNOWN = 4

_LETTERS = b"ACGTURYSWKMBDHVN"
_WHITE = b" \t\r\n"
_CODES = np.full(256, UNKNOWN, np.uint8)
for _code, _letters in enumerate((b"Aa", b"Cc", b"Gg", b"TtUu")):
    _CODES[list(_letters)] = _code
_CODES.setflags(write=False)


@dataclass(frozen=True)
class FastaRecord:
    """One sequence, in capitals, with what its header says and the line of the header."""

    name: str
    description: str
    sequence: str
    line: int

    def __len__(self) -> int:
        return len(self.sequence)


def read(path: PathName) -> list[FastaRecord]:
    """All records of a file, plain or gzip.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.fa")
    >>> _ = path.write_text(">a first one\\nACGT\\nacgt\\n>b\\nNNTT")
    >>> [(record.name, record.description, record.sequence) for record in read(path)]
    [('a', 'first one', 'ACGTACGT'), ('b', '', 'NNTT')]
    """
    return list(stream(path))


def stream(path: PathName) -> Iterator[FastaRecord]:
    """The records of a file, plain or gzip, one after the other; only one is held in memory.

    Blank lines and lines that begin with ``;`` are skipped. A record without a name or without
    bases, text before the first header, and characters that are no letter of the IUPAC code are
    errors.
    """
    header, begun, parts = "", 0, list[bytes]()
    for number, line in enumerate(stream_lines(path), 1):
        if line.startswith(b">"):
            if begun:
                yield _record(path, header, begun, parts)
            header, begun, parts = _text(path, line[1:], number), number, []
        elif not line.startswith(b";"):
            bases = line.translate(None, _WHITE).upper()
            if bases and not begun:
                raise DataError(
                    "expected a header, a line that begins with '>', before any bases",
                    path=path,
                    line=number,
                )
            if wrong := bases.translate(None, _LETTERS):
                letter = chr(wrong[0]) if wrong[0] < 128 else f"\\x{wrong[0]:02x}"
                raise DataError(
                    f"expected bases (A, C, G, T, or N and other IUPAC letters), found {letter!r}",
                    path=path,
                    line=number,
                )
            parts.append(bases)
    if not begun:
        raise DataError("expected FASTA records, which begin with '>', found none", path=path)
    yield _record(path, header, begun, parts)


def encode(sequence: str | NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bases as numbers: A 0, C 1, G 2, T 3, anything else 4; such arrays are left as they are.

    >>> encode("ACgtN").tolist()
    [0, 1, 2, 3, 4]
    """
    if isinstance(sequence, str):
        return _CODES[np.frombuffer(sequence.encode("ascii", "replace"), np.uint8)]
    codes = np.asarray(sequence)
    if codes.dtype != np.uint8 or codes.ndim != 1:
        raise DataError(
            "expected a sequence as text or as codes from `encode`, found "
            f"{type(sequence).__name__} of {codes.dtype}"
        )
    return codes


def decode(codes: NDArray[np.uint8]) -> str:
    """Numbers as bases, the inverse of `encode`.

    >>> decode(np.array([0, 1, 2, 3, 4], dtype=np.uint8))
    'ACGTN'
    """
    letters = np.frombuffer(f"{BASES}N".encode(), np.uint8)
    return letters[np.minimum(codes, UNKNOWN)].tobytes().decode("ascii")


def _record(path: PathName, header: str, line: int, parts: list[bytes]) -> FastaRecord:
    name, *rest = header.split(maxsplit=1)
    sequence = b"".join(parts).replace(b"U", b"T").decode("ascii")
    if not sequence:
        raise DataError(
            f"expected bases after the header of {name!r}, found none", path=path, line=line
        )
    return FastaRecord(name, rest[0].rstrip() if rest else "", sequence, line)


def _text(path: PathName, header: bytes, line: int) -> str:
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("expected UTF-8 text", path=path, line=line, field="header") from None
    if not text.strip():
        raise DataError("expected a name after '>', found none", path=path, line=line)
    return text.strip()
