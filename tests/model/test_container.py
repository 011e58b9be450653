"""Damage to a model file is noticed, nothing in it is run, and equal content has an equal id."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import didyma
from didyma import model
from didyma.errors import DataError, ModelFileError
from didyma.model import Model, describe, version_of
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


def ranker(C: float = 1.0) -> didyma.SVMRanker:
    return didyma.SVMRanker(C=C).fit([[1.0], [0.0]], [1, 0])


def test_an_id_is_that_of_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, when in (("first", "0"), ("second", "86400")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", when)
        didyma.save(ranker(), tmp_path / name)
    first, second = (version_of(tmp_path / name) for name in ("first", "second"))
    assert first.id == second.id == version_of(ranker()).id
    assert (first.created, second.created) == (
        "1970-01-01T00:00:00+00:00",
        "1970-01-02T00:00:00+00:00",
    )
    assert version_of(ranker(2.0)).id != first.id
    assert didyma.load(tmp_path / "first").version_ == first
    assert describe(tmp_path / "first")["version"] == first.to_dict()


def test_a_parent_is_a_model_or_its_file(tmp_path: Path) -> None:
    didyma.save(ranker(), tmp_path / "old")
    for parent in (tmp_path / "old", didyma.load(tmp_path / "old"), ranker()):
        didyma.save(ranker(2.0), tmp_path / "new", parent=parent)
        assert version_of(tmp_path / "new").parent == version_of(tmp_path / "old").id


def test_a_file_without_a_version_has_an_id() -> None:
    old = version_of(Path(__file__).parents[1] / "model_files" / "SVMRanker.safetensors")
    assert len(old.id) == 12
    assert (old.created, old.data, old.parent) == (None, None, None)


def test_nonsense_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for origin in ({"created": 3}, {"id": "abc"}, [1]):
        model = Model.of(ranker())
        Model(model.record, model.tensors, {}, origin=origin).write(tmp_path / "m")
        with pytest.raises(ModelFileError, match="cannot be restored"):
            didyma.load(tmp_path / "m")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(DataError, match="expected a number of seconds"):
        didyma.save(ranker(), tmp_path / "m")
