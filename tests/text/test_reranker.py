"""Rerankers with featurisers and rankers of a user's own: saved, loaded with consent, refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import didyma
from didyma import Reranker, SVMRanker
from didyma.errors import DataError, ModelFileError
from didyma.model import Model
from didyma.ranking.featuriser import Joined
from didyma.ranking.scaling import QueryStandardScaler
from didyma.text.cluster import fit_on_cluster
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


RANKERS = {
    "ours": lambda: SVMRanker(C=1.0),
    "scaled": lambda: make_pipeline(StandardScaler(), SVMRanker(C=1.0)),
    "scaled in queries": lambda: make_pipeline(QueryStandardScaler(), SVMRanker(C=1.0)),
    "not ours": lambda: make_pipeline(PCA(2), LogisticRegression()),
    "regression": lambda: make_pipeline(StandardScaler(), Ridge()),
}
UNSAVED = ("not ours", "regression")


@pytest.mark.parametrize("gate", [None, "length"])
@pytest.mark.parametrize("kind", RANKERS)
def test_any_ranker_ranks_evaluates_and_is_saved_or_refused(kind, gate, tmp_path):
    lists = made(20)
    fitted = Reranker(Shared(), RANKERS[kind](), gate=gate).fit(lists)
    rows = lists.with_items(fitted.featuriser.transform(lists), Shared.names)
    ranker = RANKERS[kind]()
    if kind == "ours":
        expected = ranker.fit(rows).predict(rows)
    else:
        with config_context(enable_metadata_routing=True):
            qid = {} if kind in UNSAVED else {"qid": lists.qid}
            ranker.fit(rows.X, lists.y, **qid)
            in_query = {"qid": lists.qid} if kind == "scaled in queries" else {}
            expected = ranker.predict(rows.X, **in_query)
        if kind == "not ours":
            expected = ranker.predict_proba(rows.X)[:, 1]
    np.testing.assert_allclose(fitted.predict(lists), expected, rtol=1e-9, atol=1e-9)
    assert fitted.evaluate(lists, "AP").mean("AP") > 0.6
    best, other = fitted.rank("which ship sails?", DOCUMENTS)
    assert best.score > other.score
    if gate is not None:
        assert 0 < other.score < best.score < 1
    if kind in UNSAVED:
        with pytest.raises(DataError, match=r"ranker: a (PCA|Ridge) cannot be saved in a model fi"):
            fitted.save(tmp_path / "m")
        with pytest.raises(DataError, match="expected a linear or additive ranker behind scalers"):
            fitted.explain("which ship sails?", DOCUMENTS)
        return
    fitted.save(tmp_path / "m")
    loaded = Reranker.load(tmp_path / "m", trust=[PATH])
    assert loaded.rank("which ship sails?", DOCUMENTS) == [best, other]
    assert {part.name for part in loaded.explain("ship?", DOCUMENTS)[0].contributions} == {
        *Shared.names
    }
    if gate is not None:
        assert str(loaded.gate_) == str(fitted.gate_)
        assert loaded.calibration_.to_dict() == fitted.calibration_.to_dict()
        assert loaded.baseline(lists)[0] == "length"
        assert np.array_equal(loaded.baseline(lists)[1], rows.X[:, 1])


def test_held_out_scores_are_those_of_models_that_have_not_seen_the_query():
    lists = made(23)
    fitted = Reranker(Shared(), SVMRanker(C=1.0), gate="length").fit(lists)
    assert fitted.gate_.passed
    rows = lists.with_items(fitted.featuriser.transform(lists), Shared.names)
    fold = np.random.default_rng(0).permutation(23) % 5
    expected = np.zeros(len(lists))
    for n in range(5):
        test = fold[lists.groups.codes] == n
        expected[test] = SVMRanker(C=1.0).fit(rows.select(~test)).predict(rows.select(test))
    np.testing.assert_allclose(fitted.out_of_fold_, expected, rtol=1e-12)
    held_out = didyma.evaluate(expected, lists.y, lists.groups, "AP", docid=lists.docid)
    assert fitted.gate_.value == pytest.approx(held_out.mean("AP"), abs=1e-12)
    assert fitted.gate_.baseline_value == pytest.approx(
        didyma.evaluate(rows.X[:, 1], lists.y, lists.groups, "AP").mean("AP"), abs=1e-12
    )


def test_what_does_not_help_is_not_kept():
    """Nothing is better than an order that has what is relevant first."""
    lists = made(30)
    shared = Shared().fit(lists).transform(lists)[:, 0]
    greatest = np.maximum.reduceat(shared[lists.groups.rows], lists.groups.starts[:-1])
    lists = replace(lists, labels=(shared == greatest[lists.groups.codes]).astype(float))
    fitted = Reranker(Shared(), SVMRanker(C=1.0), gate="shared").fit(lists)
    assert not fitted.gate_.passed
    assert fitted.model_.weights == {"shared": 1.0}
    assert np.array_equal(fitted.predict(lists), shared)


def test_gates_that_cannot_be():
    lists = made(20)
    with pytest.raises(DataError, match=r"gate: expected a column .*\(shared, length\), found 'x'"):
        Reranker(Shared(), SVMRanker(), gate="x").fit(lists)
    with pytest.raises(DataError, match="eval_set: is for a ranker without a gate"):
        Reranker(Shared(), SVMRanker(), gate="shared").fit(lists, lists)
    with pytest.raises(DataError, match="eval_set: only a ranker of this library"):
        Reranker(Shared(), Ridge()).fit(lists, lists)
    with pytest.raises(DataError, match="gate: is for lists on one machine"):
        fit_on_cluster(Reranker(Shared(), SVMRanker(), gate="shared"), lists)
    with pytest.raises(DataError, match="fitted without a gate"):
        Reranker(Shared(), SVMRanker()).fit(lists).baseline(lists)
