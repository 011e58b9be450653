"""Lists folders: what is written is read, whatever the order of rows; damage is named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from didyma.data import array_folder, formats, letor, lists_folder, lists_writer
from didyma.data.array_folder import replace_folder
from didyma.data.lists import Lists
from didyma.data.row_blocks import concatenate
from didyma.data.text_columns import TextBlock
from didyma.errors import DataError
from tests.data.same import assert_same

RNG = np.random.default_rng(0)


def make(n_rows: int = 60, *, sparse: bool = False, scattered: bool = False) -> Lists:
    X: Any = RNG.normal(size=(n_rows, 5)) * (RNG.random((n_rows, 5)) < 0.4)
    names = np.array([f"q{k}" for k in range(n_rows // 4)])
    qid = RNG.choice(names, n_rows)
    qid = qid if scattered else np.sort(qid)
    docid = np.array([f"d{k}" for k in range(n_rows)])
    items = sp.csr_array(X) if sparse else X
    return Lists(items, RNG.integers(0, 3, n_rows).astype(float), qid, docid, zero_based=False)


@pytest.fixture(params=["one block", "many blocks"])
def _sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test is of files that fit into memory, and of files that do not."""
    if request.param == "many blocks":
        for module in (lists_folder, array_folder):
            monkeypatch.setattr(module, "BLOCK", 200)


@pytest.mark.usefixtures("_sizes")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scattered", [False, True])
def test_what_is_written_is_read(tmp_path: Path, sparse: bool, scattered: bool) -> None:
    data, path = make(sparse=sparse, scattered=scattered), tmp_path / "a.lists"
    formats.write(data, path)
    found = formats.read(path)
    assert_same(found, data.gathered())
    np.testing.assert_array_equal(found.groups.starts, data.gathered().groups.starts)
    assert found.features == data.features
    assert sp.issparse(found.X) == sparse
    lists_folder.check(path)
    assert [*tmp_path.iterdir()] == [path]
    parts = [*formats.blocks(path)]
    assert_same(concatenate(parts), found)
    for before, after in pairwise(parts):
        assert before.qid[-1] != after.qid[0]  # lists are whole


def test_rows_are_mapped_and_cannot_be_changed(tmp_path: Path) -> None:
    formats.write(make(), tmp_path / "a.lists")
    found = formats.read(tmp_path / "a.lists")
    for array in (found.X, found.y, found.qid, found.docid):
        assert isinstance(array.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        found.X[0] = 0.0


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1), st.integers(1, 5))
def test_external_sort_sorts(tmp_path_factory: Any, records: Any, chunk: int) -> None:
    path = tmp_path_factory.mktemp("sort") / "records"
    np.array([(*record, k) for k, record in enumerate(records)], np.int64).tofile(path)
    lists_writer.sort_records(path, 3, chunk)
    found = np.fromfile(path, np.int64).reshape(-1, 3)
    assert found[:, :2].tolist() == sorted(map(list, records))
    assert sorted(found[:, 2].tolist()) == [*range(len(records))]


@pytest.mark.parametrize("sparse", [None, True, False])
@pytest.mark.parametrize("size", [40, 1000])
def test_blocks_of_letor_are_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: bool | None, size: int
) -> None:
    data, path = make(scattered=True), tmp_path / "a.letor"
    letor.write(data, path)
    monkeypatch.setattr(letor, "_sources", lambda path: lambda: TextBlock.blocks(path, size))
    parts = [*letor.blocks(path, sparse=sparse)]
    assert len(parts) > 1
    assert_same(concatenate(parts), data)
    assert_same(letor.read(path, sparse=sparse), data)


def test_an_error_in_a_later_block_names_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.letor"
    monkeypatch.setattr(letor, "_sources", lambda path: lambda: TextBlock.blocks(path, 16))
    for last, message in (
        ("1 qid:b 1:x", "line 4, feature 1: expected a finite number"),
        ("1 1:2", "line 4, qid: missing, but line 1 has one"),
    ):
        path.write_text(f"1 qid:a 1:1\n0 qid:a 1:2\n0 qid:b 1:3\n{last}\n")
        with pytest.raises(DataError, match=message):
            letor.read(path)
        with pytest.raises(DataError, match=message):
            lists_folder.write_blocks(letor.blocks(path), tmp_path / "a.lists")
        assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("change", ["longer", "shorter", "other rows", "other entries"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_text_that_changes_between_two_passes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, sparse: bool
) -> None:
    first = "1 qid:a 1:1 2:5\n0 qid:a 1:2 2:5\n"
    then = {
        "longer": first + "0 qid:a 1:1\n",
        "shorter": "1 qid:a 1:1 2:5\n",
        "other rows": "1 qid:a 1:1 2:5\n#              \n",
        "other entries": "1 qid:a\n0 qid:a 1:2 2:5 3:3 4:4\n",
    }[change]
    texts = iter([first, then])

    def sources(path: Path) -> Callable[[], Iterator[TextBlock]]:
        def opened() -> Iterator[TextBlock]:
            path.write_text(next(texts))
            return TextBlock.blocks(path, 1 << 20)

        return opened

    monkeypatch.setattr(letor, "_sources", sources)
    with pytest.raises(DataError, match=r"changed while|up to 2"):
        letor.read(tmp_path / "a.letor", sparse=sparse)


def test_a_damaged_folder_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.lists"
    data = make()
    formats.write(data, path)
    files = {file.name: file.read_bytes() for file in path.iterdir()}

    def broken(name: str, contents: bytes | None) -> str:
        for file, original in files.items():
            (path / file).write_bytes(original)
        if contents is None:
            (path / name).unlink()
        else:
            (path / name).write_bytes(contents)
        with pytest.raises((DataError, FileNotFoundError)) as error:
            formats.read(path)
        return str(error.value)

    for name, contents in files.items():
        assert name in broken(name, None)
        if name.endswith(".npy"):
            for changed in (contents[:-1], contents + b"x"):
                assert f"{name}: expected a file of {len(contents)} bytes" in broken(name, changed)
            assert f"{name}: is damaged: expected an array" in broken(name, b"x" + contents[1:])
    manifest = json.loads(files["manifest.json"])
    known = manifest["files"]
    for change, place in (
        ({"version": 2}, path),
        ({"version": 1e400}, "manifest.json"),
        ({"kind": None}, path),
        ({"rows": 61}, "qid.npy"),
        ({"rows": True}, "manifest.json"),
        ({"lists": 0}, "manifest.json"),
        ({"features": 4}, "X.npy"),
        ({"feature_names": ["a"]}, "manifest.json"),
        ({"zero_based": 7}, "manifest.json"),
        ({"missing_values": None}, "manifest.json"),
        ({"files": []}, "manifest.json"),
        ({"files": {**known, "X.npy": {}}}, "manifest.json"),
        ({"files": {**known, "../a.npy": known["X.npy"]}}, "manifest.json"),
        ({"files": {name: own for name, own in known.items() if name != "X.npy"}}, "X.npy"),
    ):
        text = json.dumps({**manifest, **change}).encode()
        assert str(place) in broken("manifest.json", text)
    for text in (b"", b"[]", b"\xff", b"{"):
        assert "manifest.json" in broken("manifest.json", text)
    starts = np.load(path / "starts.npy") if (path / "starts.npy").exists() else None
    assert starts is not None
    assert "starts.npy: expected rows that rise" in broken(
        "starts.npy", files["starts.npy"][:-8] + (5).to_bytes(8, "little")
    )


def forged(path: Path, name: str, array: NDArray[Any]) -> Path:
    """A folder with another array, and a manifest that says so."""
    with open(path / f"{name}.npy", "wb") as file:
        np.save(file, array)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][f"{name}.npy"] = {
        "bytes": (path / f"{name}.npy").stat().st_size,
        "sha256": sha256((path / f"{name}.npy").read_bytes()).hexdigest(),
    }
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


@pytest.mark.parametrize("read", [formats.read, lambda path: list(formats.blocks(path))])
@pytest.mark.parametrize(("place", "value"), [(0, 1), (-1, -1)])
def test_rows_that_leave_out_entries_are_refused(
    tmp_path: Path, read: Callable[[Path], Any], place: int, value: int
) -> None:
    """Neither those before the first row nor those behind the last one."""
    formats.write(make(sparse=True), tmp_path / "a.lists")
    indptr = np.load(tmp_path / "a.lists" / "indptr.npy")
    indptr[place] += value
    path = forged(tmp_path / "a.lists", "indptr", indptr)
    with pytest.raises(DataError, match=r"indptr\.npy: expected places that rise from 0"):
        read(path)


@pytest.mark.parametrize("read", [formats.read, lambda path: list(formats.blocks(path))])
@pytest.mark.parametrize("name", ["qid", "docid", "names"])
@pytest.mark.parametrize("code", [0xD800, 0xDFFF, 0x110000, 0x7FFFFFFF])
def test_ids_beyond_unicode_are_refused(
    tmp_path: Path, read: Callable[[Path], Any], name: str, code: int
) -> None:
    if name == "names" and read is not formats.read:
        return  # blocks name queries by their rows
    formats.write(make(), tmp_path / "a.lists")
    ids = np.load(tmp_path / "a.lists" / f"{name}.npy")
    ids.view(np.uint32)[-1] = code
    with pytest.raises(DataError, match=rf"{name}\.npy: expected text"):
        read(forged(tmp_path / "a.lists", name, ids))


def test_more_columns_than_32_bits_count(tmp_path: Path) -> None:
    places = np.arange(2), np.array([0, 2**33 - 1])
    X = sp.coo_array((np.ones(2), places), shape=(2, 2**33))
    formats.write(Lists(X, np.ones(2), np.zeros(2)), tmp_path / "a.lists")
    assert formats.read(tmp_path / "a.lists").X.indices.tolist() == [0, 2**33 - 1]


def test_check_finds_a_changed_bit(tmp_path: Path) -> None:
    path = tmp_path / "a.lists"
    formats.write(make(), path)
    for file in [*path.glob("*.npy")]:
        original = file.read_bytes()
        file.write_bytes(original[:-1] + bytes([original[-1] ^ 1]))
        with pytest.raises(DataError, match=f"{file.name}: is damaged: its checksum"):
            lists_folder.check(path)
        file.write_bytes(original)
    lists_folder.check(path)


def test_the_old_folder_is_kept_if_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.lists"
    data = make()
    formats.write(data, path)

    def parts() -> Iterator[Lists]:
        yield data
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: .*a\.lists'"):
        lists_folder.write_blocks(parts(), path)
    assert_same(formats.read(path), data.gathered())
    other = make(40)
    formats.write(other, path)
    assert_same(formats.read(path), other.gathered())
    assert [*tmp_path.iterdir()] == [path]
    (tmp_path / "b.lists").write_text("a file")
    with pytest.raises(DataError, match=r"b\.lists: expected a folder to write, found a file"):
        formats.write(data, tmp_path / "b.lists")


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".a.lists.0123.didyma-partial"
    left.mkdir()
    (left / "X.npy").write_bytes(b"x")
    formats.write(make(), tmp_path / "a.lists")
    assert os.listdir(tmp_path) == ["a.lists"]


def test_what_a_folder_cannot_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.lists"
    data = make(8)
    with pytest.raises(DataError, match="at most 256 characters, found 300"):
        formats.write(Lists(data.X, data.y, np.array(["x" * 300] * 8, object)), path)
    large = Lists(np.array([[1.0], [1e300]]), np.ones(2), np.zeros(2))
    with pytest.raises(DataError, match="a value in row 2 is too large for float32"):
        lists_folder.write_blocks([large], path, dtype=np.float32)
    with pytest.raises(DataError, match="expected at least one row"):
        lists_folder.write_blocks([], path)
    assert not any(tmp_path.iterdir())
    missing = Lists(np.array([[1.0], [np.nan]]), np.ones(2), np.zeros(2))
    formats.write(missing, path)
    with pytest.raises(DataError, match="missing values"):
        formats.read(path)
    assert np.isnan(lists_folder.read(path, missing=True).X[1, 0])


def test_an_index_of_passages_is_no_lists_folder(tmp_path: Path) -> None:
    """It has a manifest too, and must neither be read as lists nor replaced by them."""
    for name in ("index", "index.lists"):
        path = tmp_path / name
        with replace_folder(path, "an index of passages", 1) as writer:
            writer.array("lengths", np.arange(3))
        with pytest.raises(DataError, match="holds other files, not lists of rows"):
            lists_folder.write(make(), path)
        assert np.load(path / "lengths.npy").tolist() == [0, 1, 2]
    assert not lists_folder.is_lists_folder(tmp_path / "index")
    with pytest.raises(DataError, match="expected lists of rows, found 'an index of passages'"):
        formats.read(tmp_path / "index.lists")
