"""Versions of models: equal for equal content, with date and parent."""

from __future__ import annotations

from pathlib import Path

import pytest

import didyma
from didyma.errors import DataError, ModelFileError
from didyma.model import Model, describe, version_of


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
    old = version_of(Path(__file__).parent / "model_files" / "SVMRanker.safetensors")
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
