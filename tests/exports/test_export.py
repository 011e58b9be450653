"""What is written scores rows as the model does, and nothing else is ever written."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import didyma
from didyma.data.lists import Lists
from didyma.data.matrix import Columns
from didyma.errors import DataError
from didyma.exports.description import Description, describe_ranker
from didyma.exports.engine import Engine, spelled
from didyma.exports.export import ENGINES, engine_of, export
from didyma.exports.parity import probe_rows
from didyma.exports.plain import SCORER
from didyma.exports.solr import Solr
from didyma.model import Model
from didyma.text.features import SmallFeatures, TextFeatures
from tests.exports import models
from tests.exports.readers import READERS, javascript

SCALERS = (None, "MaxAbsScaler", "StandardScaler", "MinMaxScaler")
CLIPS = ("json", "onnx", "vespa")
TREES = tuple(ENGINES)
LINES = ("elasticsearch", "json", "onnx", "solr", "vespa")
KINDS = [
    *((format, "additive") for format in TREES),
    *((format, "linear") for format in LINES),
    *((format, "clipped") for format in CLIPS),
]
seeds = st.integers(0, 2**32 - 1)


def model_of(kind: str, seed: int) -> Model:
    random = np.random.default_rng(seed)
    if kind == "additive":
        return models.additive(random)
    if kind == "clipped":
        return models.linear(random, "MinMaxScaler", clip=True)
    return models.linear(random, SCALERS[seed % len(SCALERS)])


def scored(format: str, model: Model, path: Path) -> tuple[bytes, list[str], Lists, Any]:
    """A file that was written, and rows with the scores that it should give them."""
    export(model, path, format)
    engine, description = engine_of(format), describe_ranker(model)
    rows = probe_rows(description, engine, missing=model.allows_missing)
    rows = rows.select(np.arange(60))
    expected = model.predict(rows) - description.constant * (not engine.adds_constant)
    allowed = 50 * np.finfo(engine.precision).eps * description.magnitude(rows.X)
    return path.read_bytes(), engine.names(description.features), rows, (expected, allowed)


@pytest.mark.parametrize(("format", "kind"), KINDS)
@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_a_file_says_what_the_model_does(
    tmp_path_factory: pytest.TempPathFactory, format: str, kind: str, seed: int
) -> None:
    path = tmp_path_factory.mktemp("export") / "model.didyma"
    contents, names, rows, (expected, allowed) = scored(format, model_of(kind, seed), path)
    found = np.array(READERS[format](contents, names, rows.X))
    assert np.all(np.abs(found - expected) <= allowed)


@pytest.mark.parametrize("kind", ["additive", "linear", "clipped"])
def test_the_scorer_in_javascript(tmp_path: Path, kind: str) -> None:
    for seed, by_name in enumerate((True, False)):
        written = scored("json", model_of(kind, seed), tmp_path / "model.json")
        contents, names, rows, (expected, allowed) = written
        found = np.array(javascript(contents, names, rows.X, by_name=by_name))
        assert np.all(np.abs(found - expected) <= allowed)


def test_the_scorer_is_ready_for_npm(tmp_path: Path) -> None:
    """Everything that the package lists is there, and Node finds the scorer by its name."""
    package = json.loads((SCORER.parent / "package.json").read_text())
    assert all((SCORER.parent / name).exists() for name in package["files"])
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    shutil.copytree(SCORER.parent, tmp_path / "node_modules" / package["name"])
    script = f'import {{ score }} from "{package["name"]}"; console.log(typeof score)'
    done = subprocess.run(
        [node, "--input-type=module", "--eval", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "function", done.stderr


def faults(description: Description) -> Iterator[Description]:
    """The same with something wrong in it."""
    if description.lines:
        first, *rest = description.lines
        wrong = [
            replace(first, weight=first.weight + 1e-3),
            replace(first, centre=first.centre + 1e-3 * first.scale),
            replace(first, scale=first.scale * 1.001),
        ]
        if first.clipped:
            wrong.append(replace(first, low=first.low - first.scale))
            wrong.append(replace(first, high=math.inf))
        for line in wrong:
            yield replace(description, lines=(line, *rest))
    for number, table in enumerate(description.tables):
        other = table.values.copy()
        other[table.binnings[0].cells[-1]] += 0.01  # what is missing
        wrong_tables = [replace(table, values=other)]
        first, *others = table.binnings
        if first.edges and not others:
            above = [np.nextafter(np.float32(edge), np.float32(1e9)) for edge in first.edges]
            moved = replace(first, edges=tuple(map(float, above)))
            wrong_tables.append(replace(table, binnings=(moved,)))
        for wrong_table in wrong_tables:
            tables = list(description.tables)
            tables[number] = wrong_table
            yield replace(description, tables=tuple(tables))


@pytest.mark.parametrize(("format", "kind"), KINDS)
def test_a_file_that_says_anything_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, kind: str
) -> None:
    engine = engine_of(format)
    render = type(engine).render
    for seed in range(2):
        model = model_of(kind, seed)
        description = describe_ranker(model)
        if not any(line.weight for line in description.lines) and kind != "additive":
            continue
        for wrong in faults(description):

            def broken(
                self: Engine, _: Any, names: Any, name: str, wrong: Description = wrong
            ) -> bytes:
                return render(self, wrong, names, name)

            monkeypatch.setattr(type(engine), "render", broken)
            with pytest.raises(DataError, match="nothing was written"):
                export(model, tmp_path / "model", format)
        assert list(tmp_path.iterdir()) == []


def fitted() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    X = random.normal(size=(24, 3))
    return X, np.tile([1.0, 0.0, 0.0], 8), np.repeat(np.arange(4), 6)


def test_rows_of_ones_own_are_compared(tmp_path: Path) -> None:
    X, y, qid = fitted()
    ranker = didyma.SVMRanker(C=1).fit(X, y, qid=qid)
    found = didyma.export(ranker, tmp_path / "m.json", "json", Lists(X, y, qid))
    assert found.parity.rows == 24
    assert found.parity.swapped == 0
    assert found.parity.relative < 1e-14
    with pytest.raises(DataError, match="expected 3 features, found 2"):
        didyma.export(ranker, tmp_path / "n.json", "json", Lists(X[:, :2]))
    with pytest.raises(DataError, match="found none"):
        didyma.export(ranker, tmp_path / "n.json", "json", Lists(X[:0]))
    assert not (tmp_path / "n.json").exists()


def test_what_cannot_be_expressed_is_refused_with_the_reason(tmp_path: Path) -> None:
    X, y, qid = fitted()
    path = tmp_path / "model"
    in_query = make_pipeline(didyma.QueryMinMaxScaler(), didyma.SVMRanker(C=1)).fit(X, y)
    with pytest.raises(DataError, match=r"QueryMinMaxScaler .* scales columns within queries"):
        export(in_query, path, "onnx")
    with pytest.raises(DataError, match="PolynomialRanker cannot be exported"):
        export(didyma.PolynomialRanker().fit(X, y, qid=qid), path, "json")
    linear, additive = model_of("linear", 0), model_of("additive", 0)
    for format in ("elasticsearch-native", "lightgbm", "xgboost"):
        with pytest.raises(DataError, match="holds trees: a linear model cannot be one"):
            export(linear, path, format)
    for format in ("solr", "elasticsearch"):
        with pytest.raises(DataError, match="has no normaliser that clips"):
            export(model_of("clipped", 1), path, format)
    scaler = model_of("linear", 2).steps[0][0]
    assert scaler["class"] == "StandardScaler"
    state = {"with_mean": False, "with_std": True, "scale_": np.ones(additive.features.count)}
    behind = additive.behind(Model.scaling("StandardScaler", state, additive.features))
    with pytest.raises(DataError, match="bins need no scaling"):
        export(behind, path, "json")
    with pytest.raises(DataError, match="format: expected one of"):
        export(linear, path, "excel")
    assert list(tmp_path.iterdir()) == []


def test_columns_keep_their_names_or_one_is_told(tmp_path: Path) -> None:
    coef = np.array([1.0, 2.0, 3.0])
    names = ("title bm25", "title_bm25", "2nd")
    model = models.fitted(didyma.SVMRanker(), Columns(3, names), coef_=coef)
    path = tmp_path / "my ranker.txt"
    (note,) = export(model, path, "vespa").notes
    assert "'title bm25' is title_bm25_2, '2nd' is _2nd" in note
    text = path.read_text()
    assert "rank-profile my_ranker {" in text
    assert "attribute(title_bm25_2)" in text
    assert export(model, path, "elasticsearch").notes == ()
    assert '\\"title bm25\\": 1.0' in path.read_text()
    unnamed = models.fitted(didyma.SVMRanker(), Columns(3, zero_based=False), coef_=coef)
    (note,) = export(unnamed, path, "solr").notes
    assert note == "columns have no names, so they are called column_1 to column_3"
    assert export(unnamed, path, "onnx").notes == ()


@settings(deadline=None)
@given(st.floats(-(2.0**126), 2.0**126, width=32))
def test_thresholds_of_solr(number: float) -> None:
    """A category stays apart from all other numbers, and no edge moves by more than a number."""
    upper = Solr().place(number)
    lower = Solr().place(float(np.nextafter(number, -np.inf)))
    assert lower < number <= upper
    step = max(abs(np.spacing(np.float32(number))), np.spacing(np.float32(1e-6)))
    assert upper - number <= 2 * step >= number - lower


def test_thresholds_that_move_are_told(tmp_path: Path) -> None:
    model = model_of("additive", 0)  # with an edge at −1, which no threshold of Solr can be
    for format, n_told in (("solr", 1), ("xgboost", 0)):
        notes = export(model, tmp_path / "model", format).notes
        assert (
            sum("thresholds: they are moved to the next number" in note for note in notes) == n_told
        )


def test_columns_below_zero_are_told_where_they_are_refused(tmp_path: Path) -> None:
    X, y, qid = fitted()
    bins = didyma.AdditiveSVMRanker(C=1).fit(X, y, qid=qid)
    scaled = make_pipeline(StandardScaler(), didyma.SVMRanker(C=1)).fit(X - 9, y)
    for model, formats in ((bins, ENGINES), (scaled, LINES)):
        for format in formats:
            notes = " ".join(export(model, tmp_path / "model", format).notes)
            assert ("refuses features below 0" in notes) == format.startswith("elasticsearch")
    above = make_pipeline(StandardScaler(), didyma.SVMRanker(C=1)).fit(X + 9, y)
    assert "below 0" not in " ".join(export(above, tmp_path / "model", "elasticsearch").notes)


@settings(deadline=None)
@given(st.lists(st.text(alphabet="a_ .2", max_size=4), unique=True, max_size=8))
def test_no_two_columns_share_a_name(names: list[str]) -> None:
    found = spelled(names, "[^a-z0-9_]|^(?=[0-9])")
    assert len(set(found)) == len(names)
    for old, new in zip(names, found):
        assert new.isidentifier()
        assert new == old or not old.isidentifier()


def test_a_constant_is_left_out_where_there_is_no_place_for_it(tmp_path: Path) -> None:
    ranker = didyma.ClassificationRanker()
    model = models.fitted(ranker, Columns(1, ("a",)), coef_=np.array([1.0]), intercept_=-2.5)
    for format in LINES:
        said = " ".join(export(model, tmp_path / "model", format).notes)
        lacks = "scores lack the constant -2.5, which changes no order" in said
        assert lacks == (format in ("elasticsearch", "solr"))


def test_models_without_weights_are_models_too(tmp_path: Path) -> None:
    linear = models.fitted(didyma.SVMRanker(), Columns(2, ("a", "b")), coef_=np.zeros(2))
    flat = model_of("additive", 0)
    flat = replace(flat, tensors={**flat.tensors, "coef_": 0 * flat.tensors["coef_"]})
    for format in ENGINES:
        for model, known in ((linear, LINES), (flat, TREES)):
            if format in known:
                assert export(model, tmp_path / "model", format).parity.difference == 0


def test_the_ranker_of_a_reranker(tmp_path: Path) -> None:
    lists = Lists.of_texts(
        ["who wrote Emma?", "who wrote Faust?"],
        [["Austen wrote Emma.", "It is late."], ["It rains.", "Goethe wrote Faust."]],
        [[1, 0], [0, 1]],
    )
    featuriser = TextFeatures([SmallFeatures()], relative=["bm25"])
    reranker = didyma.Reranker(featuriser, didyma.SVMRanker(C=1)).fit(lists)
    rows = lists.with_items(featuriser.transform(lists), featuriser.names)
    found = export(reranker, tmp_path / "model.json", "json", rows)
    computed, within, raw, scorer = found.notes
    assert str(SCORER) in scorer
    assert computed.endswith(", ".join(featuriser.names))
    assert "compare a passage with the others of its query (1 of " in within
    assert "calibration is not in the file" in raw
    assert found.parity.rows == 4
    reranker.save(tmp_path / "reranker.safetensors")
    read = Model.read(tmp_path / "reranker.safetensors")
    assert export(read, tmp_path / "model.sd", "vespa").notes[:3] == found.notes[:3]
