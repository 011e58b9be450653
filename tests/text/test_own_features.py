"""Rerankers with featurisers and rankers of a user's own: saved, loaded with consent, refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import didyma
from didyma import Reranker, SVMRanker
from didyma.errors import DataError, ModelFileError
from didyma.model import Model
from didyma.ranking.featuriser import Joined
from tests.text import own_features
from tests.text.own_features import Shared
from tests.text.texts import made

PATH = "tests.text.own_features:Shared"
DOCUMENTS = ["It is late.", "The ship of the storm sails."]


@pytest.fixture(scope="module")
def reranker():
    return Reranker(Shared(), SVMRanker(C=1.0)).fit(made(20))


@pytest.mark.parametrize("wrap", [lambda own: own, lambda own: Joined([own])])
def test_a_featuriser_of_ones_own_is_loaded_with_consent(wrap, tmp_path):
    lists = made(20)
    Reranker(wrap(Shared()), SVMRanker(C=1.0)).fit(lists).save(path := tmp_path / "m")
    expected = Reranker(wrap(Shared()), SVMRanker(C=1.0)).fit(lists).predict(lists)
    for load in (didyma.load, Reranker.load):
        loaded = load(path, trust=[PATH])
        assert np.array_equal(loaded.predict(lists), expected)
    assert didyma.model.describe(path)["class"] == "Reranker"
    with pytest.raises(ModelFileError, match=rf"needs the class {PATH}, .* trust=\['{PATH}'\], or"):
        didyma.load(path)
    with pytest.raises(ModelFileError, match=rf"--trust {PATH}"):
        didyma.load(path, trust=["tests.text.own_features:Other"])
    with pytest.raises(DataError, match=r"trust: expected paths such as my.module:Name"):
        didyma.load(path, trust=["Shared"])


@pytest.mark.parametrize("named", ["os:system", "this_is_imported:Never", "antigravity:x", "os"])
def test_nothing_is_imported_without_consent(reranker, named, tmp_path):
    model = Model.of(reranker)
    model.record["state"]["featuriser"]["class"] = named
    model.write(path := tmp_path / "m")
    code = (
        "import builtins, importlib, sys\n"
        "import didyma, didyma.text.reranker, didyma.ranking.svm, safetensors.numpy\n"
        "before = set(sys.modules)\n"
        "try:\n"
        f"    didyma.load({str(path)!r}, trust=['some.module:Other'])\n"
        "except didyma.errors.ModelFileError as error:\n"
        "    print(error)\n"
        "print(*sorted(name for name in set(sys.modules) - before if 'didyma' not in name))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    error, imported = done.stdout.splitlines()
    assert named in error
    assert not {"antigravity", "this_is_imported", "some"} & set(imported.split())


def test_what_is_trusted_must_be_a_featuriser(reranker, tmp_path):
    for named, message in (
        ("os:system", "os:system is no Featuriser"),
        ("collections:OrderedDict", "collections:OrderedDict is no Featuriser"),
        ("no.such.module:Length", "no.such.module:Length cannot be imported"),
        ("tests.text.own_features:None_", "tests.text.own_features:None_ cannot be imported"),
    ):
        model = Model.of(reranker)
        model.record["state"]["featuriser"]["class"] = named
        model.write(path := tmp_path / "m")
        with pytest.raises(ModelFileError, match=message):
            didyma.load(path, trust=[named])


def test_a_class_that_cannot_be_imported_is_refused_when_saving(tmp_path):
    class Local(Shared):
        pass

    for cls in (Local, own_features.Other):
        fitted = Reranker(cls(), SVMRanker(C=1.0)).fit(made(20))
        assert len(fitted.rank("which ship sails?", DOCUMENTS)) == 2
        with pytest.raises(DataError, match=rf"a {cls.__name__} cannot be saved .* cannot be impo"):
            fitted.save(tmp_path / "m")
        assert not (tmp_path / "m").exists()


def test_a_class_of_a_script_is_refused_when_saving(tmp_path):
    code = (
        "import didyma\n"
        "from tests.text.own_features import Shared\n"
        "from tests.text.texts import made\n"
        "class Script(Shared): pass\n"
        "fitted = didyma.Reranker(Script(), didyma.SVMRanker()).fit(made(20))\n"
        "try:\n"
        f"    fitted.save({str(tmp_path / 'm')!r})\n"
        "except didyma.DataError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "__main__:Script cannot be imported" in done.stdout
