"""FASTA files as they come: gzip, small letters, unknown bases, no final newline, and mistakes."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.applications.motif.fasta import decode, encode, read, stream
from didyma.errors import DataError

TEXT = ">a the first\nACGT\nacgtn\n\n; a comment\n>b\r\nRYKM\r\n>c\n  UU TT"


def write(folder: Path, text: str | bytes, name: str = "x.fa") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", ["", "\n", "\r\n\n"])
def test_records(tmp_path: Path, packed: bool, end: str) -> None:
    contents = (TEXT + end).encode()
    path = write(tmp_path, gzip.compress(contents) if packed else contents)
    found = [(r.name, r.description, r.sequence, r.line) for r in read(path)]
    assert found == [("a", "the first", "ACGTACGTN", 1), ("b", "", "RYKM", 6), ("c", "", "TTTT", 8)]
    assert len(read(path)[0]) == 9


def test_records_come_one_by_one(tmp_path: Path) -> None:
    records = stream(write(tmp_path, ">a\nAC\n>b\nA?\n"))
    assert next(records).name == "a"
    with pytest.raises(DataError, match=r"x\.fa, line 4: expected bases .* found '\?'"):
        next(records)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"x\.fa: expected FASTA records"),
        ("\n\n", r"x\.fa: expected FASTA records"),
        ("ACGT\n>a\nA\n", r"x\.fa, line 1: expected a header"),
        (">a\n>b\nA\n", r"x\.fa, line 1: expected bases after the header of 'a', found none"),
        (">a\nA\n>last", r"x\.fa, line 3: expected bases after the header of 'last'"),
        (">\nA\n", r"x\.fa, line 1: expected a name"),
        (">a\nAC-T\n", r"x\.fa, line 2: .* found '-'"),
        (b">a\nAC\xffT\n", r"x\.fa, line 2: .* found '\\\\xff'"),
        (b">\xff\nA\n", r"x\.fa, line 1, header: expected UTF-8"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, text))


def test_truncated_gzip(tmp_path: Path) -> None:
    contents = gzip.compress(b">a\n" + b"ACGT" * 1000)
    with pytest.raises(DataError, match="gzip"):
        read(write(tmp_path, contents[:-12]))


@given(st.text("ACGTN"))
def test_codes_and_back(text: str) -> None:
    codes = encode(text)
    assert codes.dtype == np.uint8
    assert decode(codes) == text
    np.testing.assert_array_equal(encode(text.lower()), codes)
    assert encode(codes) is codes


def test_only_codes_are_codes() -> None:
    with pytest.raises(DataError, match="codes from `encode`"):
        encode(np.zeros(3))  # type: ignore[arg-type]


def test_yeast(shared_data: Path) -> None:
    folder = shared_data / "oridb_yeast" / "Saccharomyces-Cerevisiae"
    origins = [r for path in folder.glob("*-confirmed.fsa") for r in read(path)]
    assert (len(origins), len({r.sequence for r in origins})) == (411, 410)
    (chromosome,) = read(folder / "chr01.fsa")
    assert len(chromosome) == 230218
    first = next(r for r in origins if r.name == "I-31")
    assert first.description.startswith("range=chr1:30946-31184")
    assert first.sequence in chromosome.sequence
