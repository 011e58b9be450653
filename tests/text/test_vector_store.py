"""What is put into a store of vectors is got from it, also after crashes and by others."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.text import VectorStore, vector_file
from didyma.text.encoders import resolve
from didyma.text.vector_file import ENTRY, KEY_SIZE, VectorFile
from tests.text.encoders.models import SentenceTransformer5, vectors_of

TEXTS = st.lists(st.text(max_size=12), max_size=8)
MANY = [f"text {n} of {n * n}" for n in range(40)]


def bound(vectors: np.ndarray, dtype: str) -> np.ndarray:
    """What the type of numbers may add to each of a vector, or take away."""
    if dtype == "float16":
        return 2.0**-11 * np.abs(vectors) + 2.0**-25
    return np.abs(vectors).max(axis=1, keepdims=True) / 254 * (1 + 1e-5)


@settings(max_examples=40)
@given(st.lists(TEXTS, max_size=4), TEXTS, st.sampled_from(["float16", "int8"]), st.booleans())
def test_what_is_put_is_got(goes, asked, dtype, reopen):
    with tempfile.TemporaryDirectory() as folder:
        encoder, store = resolve(SentenceTransformer5()), VectorStore(folder, dtype=dtype)
        for texts in goes:
            before = len(store)
            assert store.fill(encoder, texts) == len(store) - before
            store = VectorStore(folder) if reopen else store
        there = {text for texts in goes for text in texts}
        vectors, exact = store.get(encoder, asked, budget=0), encoder.encode_documents(asked)
        for text, vector, expected in zip(asked, vectors, exact):
            if text in there:
                assert (np.abs(vector - expected) <= bound(expected[None], dtype)[0]).all()
            else:
                assert np.isnan(vector).all()
        got = store.get(encoder, asked)  # encoded now or before: the same bits
        assert got.tobytes() == store.get(encoder, asked).tobytes()
        is_there = [text in there for text in asked]
        assert got[is_there].tobytes() == vectors[is_there].tobytes()
        assert len(store) == len(there | set(asked))
        store.verify()


@given(st.integers(0, 5), TEXTS)
def test_a_budget_is_kept(budget, texts):
    with tempfile.TemporaryDirectory() as folder:
        asked = []

        def encode(batch):
            asked.extend(batch)
            return vectors_of(batch)

        encoder = resolve(encode)
        store, _ = VectorStore(folder), encoder.fingerprint
        asked.clear()
        vectors = store.get(encoder, texts, budget=budget)
        assert len(asked) == min(budget, len(set(texts)))
        assert [bool(np.isnan(v).all()) for v in vectors] == [t not in asked for t in texts]


def test_sides_and_encoders_are_kept_apart(tmp_path):
    store = VectorStore(tmp_path)
    one, other = SentenceTransformer5({"query": "ask: "}), SentenceTransformer5({"query": "a: "})
    for model in (one, other, one):
        for side in ("query", "document"):
            expected = resolve(model).encode(MANY, side)
            np.testing.assert_allclose(store.get(model, MANY, side), expected, atol=1e-3)
    assert len(store) == 4 * len(MANY)
    copy = pickle.loads(pickle.dumps(store))
    assert not np.isnan(copy.get(one, MANY, "query", 0)).any()


def filled(folder: Path) -> tuple[Path, np.ndarray]:
    """The folder of a store's only encoder, and the vectors that were got from it."""
    vectors = VectorStore(folder).get(SentenceTransformer5(), MANY)
    return next(folder.glob("*/")), vectors


@settings(max_examples=40)
@given(st.data())
def test_a_tail_that_was_cut_off_is_healed(data):
    with tempfile.TemporaryDirectory() as name:
        folder, expected = filled(Path(name))
        for file in ("keys.bin", "vectors.bin"):
            size = (folder / file).stat().st_size
            with open(folder / file, "r+b") as out:
                out.truncate(data.draw(st.integers(0, size), file))
                out.seek(0, os.SEEK_END)
                out.write(bytes(data.draw(st.integers(0, 50), f"zeros after {file}")))
        store = VectorStore(name)
        there = ~np.isnan(store.get(SentenceTransformer5(), MANY, budget=0)).any(axis=1)
        assert store.get(SentenceTransformer5(), MANY).tobytes() == expected.tobytes()
        assert there.sum() <= len(MANY) == len(store)
        store.verify()
        assert len(VectorStore(name)) == len(MANY)


def test_damage_in_the_middle_is_refused_with_its_place(tmp_path):
    folder, _ = filled(tmp_path)
    data = bytearray((folder / "vectors.bin").read_bytes())
    data[3 * len(data) // len(MANY)] ^= 1
    (folder / "vectors.bin").write_bytes(data)
    store = VectorStore(tmp_path)
    for use in (store.verify, lambda: store.get(SentenceTransformer5(), MANY)):
        with pytest.raises(DataError, match=r"vectors\.bin: is damaged: .* vector 4 differs"):
            use()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "cookies"}, "expected vectors of texts"),
        ({"version": 9}, "of version 1 or before"),
        ({"dtype": "float99"}, "expected 'float16' or 'int8'"),
        ({"fingerprint": [[1.0], "x"]}, "is damaged"),
        (None, "is damaged"),
    ],
)
def test_a_damaged_description_is_refused(tmp_path, change, message):
    folder, _ = filled(tmp_path)
    path = folder / "encoder.json"
    text = path.read_text()
    path.write_text(text[:50] if change is None else json.dumps(json.loads(text) | change))
    with pytest.raises(DataError, match=message):
        VectorStore(tmp_path).get(SentenceTransformer5(), MANY)


def test_what_is_no_store(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="expected a folder of vectors, found a file"):
        VectorStore(tmp_path / "file")
    with pytest.raises(DataError, match="dtype: expected 'float16' or 'int8'"):
        VectorStore(tmp_path, dtype="float64")
    with pytest.raises(DataError, match="side: expected 'query' or 'document'"):
        VectorStore(tmp_path).get(vectors_of, ["a"], "passage")
    with pytest.raises(DataError, match="budget: expected a number of texts"):
        VectorStore(tmp_path).get(vectors_of, ["a"], budget=-1)


def _fill(folder: str, texts: list[str]) -> None:
    VectorStore(folder).fill(SentenceTransformer5(), texts)


def test_several_processes_append(tmp_path):
    """Also to a store that nobody has made yet, some of them the same texts."""
    spawn = multiprocessing.get_context("spawn")
    parts = [MANY[start : start + 20] for start in (0, 10, 20)]
    processes = [spawn.Process(target=_fill, args=(str(tmp_path), part)) for part in parts]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    assert len(list(tmp_path.glob("*/encoder.json"))) == 1
    store = VectorStore(tmp_path)
    store.verify()
    expected = resolve(SentenceTransformer5()).encode_documents(MANY)
    np.testing.assert_allclose(
        store.get(SentenceTransformer5(), MANY, budget=0), expected, atol=1e-3
    )


def test_threads_may_share_a_folder_of_vectors(tmp_path):
    store = VectorStore(tmp_path)
    texts = [f"text {n}" for n in range(300)]
    encoder = resolve(vectors_of)
    wrong: list[str] = []

    def look(first: int) -> None:
        for n in range(first, len(texts), 3):
            batch = texts[max(0, n - 5) : n + 1]
            found = store.get(encoder, batch)
            if not np.allclose(found, encoder.encode_documents(batch), atol=1e-3):
                wrong.append(texts[n])

    threads = [Thread(target=look, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


SLOW = """
import sys, time
from didyma.text import VectorStore
from didyma.text.encoders import resolve
from tests.text.encoders.models import SentenceTransformer5

model = SentenceTransformer5()
encoder = resolve(model)
encoder.batch_size = 2
store = VectorStore(sys.argv[1])

def report(n):
    print(n, flush=True)
    time.sleep(.05)

store.fill(encoder, [f"text {n} of {n * n}" for n in range(40)], callback=report)
"""


@pytest.mark.parametrize("sign", ["SIGKILL", "SIGINT"])
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path, sign):
    command = [sys.executable, "-c", SLOW, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        for _ in range(3):
            process.stdout.readline()
        process.send_signal(getattr(signal, sign))
        process.wait(60)
    store = VectorStore(tmp_path)
    n = len(store)
    assert 6 <= n < len(MANY)
    assert store.fill(SentenceTransformer5(), MANY) == len(MANY) - n
    assert len(store) == len(MANY)
    store.verify()


@given(
    st.lists(st.lists(st.integers(0, 60), max_size=20), max_size=12),
    st.lists(st.integers(0, 80), max_size=10),
)
def test_keys_are_found_by_their_first_row(batches, asked):
    """Against a dictionary, with arrays that are sorted often."""

    def key(n: int) -> bytes:  # also such as end in zeros
        return bytes([n % 4]) * (n % 3) + n.to_bytes(2, "big") + bytes(KEY_SIZE - 2 - n % 3)

    places, expected, row = vector_file._Places(), {}, 0
    before, vector_file.RECENT = vector_file.RECENT, 7
    try:
        for batch in batches:
            keys = [key(n) for n in batch]
            places.add(np.frombuffer(b"".join(keys), f"S{KEY_SIZE}"), row)
            for own in keys:
                expected.setdefault(own, row)
                row += 1
    finally:
        vector_file.RECENT = before
    found = places.rows_of([key(n) for n in asked])
    assert found.tolist() == [expected.get(key(n), -1) for n in asked]


def test_an_int8_cosine_is_near(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(50, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for dtype, width, error in (("float16", 768, 1e-3), ("int8", 388, 1e-2)):
        (tmp_path / dtype).mkdir()
        file = VectorFile(tmp_path / dtype, 384, dtype)
        assert file.dtype.itemsize == width
        assert ENTRY.itemsize == KEY_SIZE + 4
        decoded = file.decoded(file.encoded(vectors))
        assert np.abs(decoded @ vectors.T - vectors @ vectors.T).max() < error
