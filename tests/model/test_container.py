"""Damage to a model file never goes unnoticed, and nothing in it is run."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from didyma import model
from didyma.errors import ModelFileError
from didyma.model.container import checksum
from didyma.ranking.classification import ClassificationRanker
from tests.model.rankers import RNG, X, header, rewrite

# What is learned from a few random rows does not matter here, only that it is kept.
pytestmark = pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")


def test_nothing_is_pickled(saved: bytes) -> None:
    assert int.from_bytes(saved[:8], "little") < len(saved)
    assert set(header(saved)) == {"__metadata__", "coef_"}
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(saved)


def refuses(path: Path, message: str) -> None:
    for read in (model.load, model.describe, ClassificationRanker.load):
        with pytest.raises(ModelFileError, match=message) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}: ")


def test_truncated_files(path: Path, saved: bytes) -> None:
    for length in [*range(0, len(saved), 50), len(saved) - 1]:
        path.write_bytes(saved[:length])
        refuses(path, "damaged, or not a model file")
    path.write_bytes(saved + b"\0")
    refuses(path, "damaged, or not a model file")


def test_every_flipped_byte_is_noticed_or_harmless(path: Path, saved: bytes) -> None:
    expected = model.load(path)
    noticed = 0
    for place in range(len(saved)):
        damaged = bytearray(saved)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        try:
            loaded = model.load(path)
        except ModelFileError:
            noticed += 1
        else:
            assert loaded.get_params() == expected.get_params()
            assert loaded.predict(X).tobytes() == expected.predict(X).tobytes()
    assert noticed > 0.95 * len(saved)


def test_random_bytes(path: Path) -> None:
    for size in (1, 8, 9, 100, 5000):
        path.write_bytes(RNG.bytes(size))
        refuses(path, "damaged, or not a model file")
    path.write_text("1 qid:1 1:0.5 2:0.1 # a LETOR file\n" * 100)
    refuses(path, "damaged, or not a model file")
    path.write_bytes(pickle.dumps({"coef_": [1.0]}))
    refuses(path, "damaged, or not a model file")


def test_missing_file_and_folder(path: Path) -> None:
    refuses(path, "no such file")
    path.mkdir()
    refuses(path, "found a folder")


def test_foreign_safetensors(path: Path) -> None:
    save_file({"coef_": np.ones(3)}, path)
    refuses(path, "not a model of this library")
    save_file({"coef_": np.ones(3)}, path, {"format": "pt"})
    refuses(path, "not a model of this library")
    save_file({"coef_": np.ones(3)}, path, {"format": "didyma", "format_version": "1"})
    refuses(path, "checksum")


def test_a_file_of_the_first_format_is_read(path: Path, saved: bytes) -> None:
    before = model.load(path).predict(X)
    rewrite(path, format_version="1", library_version="0.2.0")
    assert model.describe(path)["format_version"] == 1
    np.testing.assert_array_equal(model.load(path).predict(X), before)


def test_what_reads_only_the_first_format_asks_for_an_upgrade(
    path: Path, saved: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("didyma.model.container.FORMAT_VERSION", 1)
    refuses(path, "in format 2, but this is didyma .*, which reads format 1: upgrade to load it")


def test_newer_format(path: Path, saved: bytes) -> None:
    rewrite(path, format_version="3", library_version="9.0", model="{}")
    refuses(path, "written by didyma 9.0 in format 3.*upgrade")
    rewrite(path, format_version="one")
    refuses(path, "format version is 'one'")
    for hostile in ("9" * 10_000, "٢", "1" + 19 * "0"):
        rewrite(path, format_version=hostile)
        refuses(path, "format version is '.{1,20}'$")


def test_hostile_records(path: Path, saved: bytes) -> None:
    record = json.loads(header(saved)["__metadata__"]["model"])
    for change, message in (
        ({"class": "Popen"}, "Popen"),
        ({"class": "os.system"}, "os.system"),
        ({"class": ["SVMRanker"]}, "cannot be restored"),
        ({"parameters": {"shell": True}}, "shell"),
        ({"attributes": {"n_queries_": 1}}, "intercept_"),
        (
            {"attributes": {**record["attributes"], "loss_": 1}},
            r"ClassificationRanker has no loss_",
        ),
        ({"attributes": {**record["attributes"], "intercept_": "0"}}, "intercept_ should be a num"),
        ({"attributes": {**record["attributes"], "intercept_": np.inf}}, "a finite number"),
        (
            {"attributes": {**record["attributes"], "n_queries_": -1}},
            "n_queries_ should be a count",
        ),
        (
            {"parameters": {"C": "much"}},
            r"ClassificationRanker\.C should be a number, but is 'much'",
        ),
        ({"parameters": {"max_iter": 1.5}}, "max_iter should be a whole number"),
        ({"hooks": {}}, "has no hooks"),
        ({"arrays": {"coef_": []}, "parts": {"coef_": record}}, "cannot be restored"),
        ({"n_features": 4}, r"coef_ should be 4, but is 3"),
        ({"n_features": True}, "expected a number of features"),
        ({"feature_names": ["a", "b"]}, "expected names of 3 features"),
        ({"class": "Pipeline"}, "steps"),
        ({"class": "Pipeline", "steps": [["only"]]}, "cannot be restored"),
    ):
        rewrite(path, model=json.dumps({**record, **change}))
        with pytest.raises(ModelFileError, match=message):
            model.load(path)
    arrays = {**load_file(path), "bias": np.ones(1)}
    texts = header(saved)["__metadata__"]
    del texts["checksum"]
    save_file(arrays, path, {**texts, "checksum": checksum(texts, arrays)})
    refuses(path, r"ClassificationRanker has no bias")
    for text in ("", "[]", "null", "{", '"model"'):
        rewrite(path, model=text)
        refuses(path, "cannot be restored")
