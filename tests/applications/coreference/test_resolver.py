"""Documents to clusters: files, features and parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from didyma.applications.coreference import reader as coreference
from didyma.applications.coreference.measures import evaluate
from didyma.applications.coreference.mentions import FEATURES
from didyma.applications.coreference.resolver import CoreferenceResolver
from didyma.errors import DataError, ModelFileError


def test_a_resolver_is_saved_and_loaded(tales: Path, tmp_path: Path) -> None:
    documents = coreference.read(tales / "test" / "tale8.conll")
    resolver = CoreferenceResolver(C=0.5, r=0.2).fit(documents)
    assert np.all(np.diff(resolver.objective_trace_) <= 1e-9)
    resolver.save(tmp_path / "m.safetensors")
    again = CoreferenceResolver.load(tmp_path / "m.safetensors")
    assert again.get_params() == resolver.get_params()
    np.testing.assert_array_equal(again.predict(documents), resolver.predict(documents))
    golds = [document.labels for document in documents]
    assert evaluate(golds, again.predict(documents))["conll"] == again.score(documents)


def test_a_model_of_other_features_is_refused(tales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("didyma.applications.coreference.resolver.FEATURES", (*FEATURES, "another"))
    with pytest.raises(ModelFileError, match="trained with other features of mentions"):
        CoreferenceResolver.load(tales / "m.safetensors")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"C": -1.0}, "C: expected a positive number"), ({"model": "tree"}, "model: expected")],
)
def test_wrong_parameters_are_refused(tales: Path, parameters: dict, message: str) -> None:
    documents = coreference.read(tales / "test" / "tale8.conll")
    with pytest.raises(DataError, match=message):
        CoreferenceResolver(**parameters).fit(documents)
