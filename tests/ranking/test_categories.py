"""Columns of categories, numbers or texts: nominal in additive rankers, refused by linear ones."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma import AdditiveSVMRanker, ClassificationRanker, RidgeRanker, SVMRanker
from didyma.data.lists import Lists
from didyma.errors import DataError, ModelFileError
from didyma.exports.export import export
from didyma.model import Model, load
from didyma.ranking.explanation import explain_rows
from didyma.report.functions import draw_functions, terms

RNG = np.random.default_rng(0)
QID = np.repeat(np.arange(20), 6)
CODES = RNG.choice([10, 20, 30], 120)
X = np.column_stack([RNG.normal(size=120), CODES])
Y = ((CODES == 20) | (X[:, 0] > 1)).astype(float)

FRAMES = {
    "pandas": lambda codes: pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(codes)}),
    "ordered": lambda codes: pd.DataFrame(
        {"x": X[:, 0], "kind": pd.Categorical(codes, ordered=True)}
    ),
    "polars": lambda codes: pl.DataFrame(
        {"x": X[:, 0], "kind": pl.Series(codes.astype(str), dtype=pl.Categorical)}
    ),
    "enum": lambda codes: pl.DataFrame(
        {
            "x": X[:, 0],
            "kind": pl.Series(codes.astype(str), dtype=pl.Enum(["10", "20", "30", "40"])),
        }
    ),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_categories_are_nominal_by_themselves(make, tmp_path):
    frame = make(CODES)
    ranker = AdditiveSVMRanker(C=4.0, line="none").fit(frame, Y, qid=QID)
    named = AdditiveSVMRanker(C=4.0, line="none", categorical=[1]).fit(X, Y, qid=QID)
    assert ranker.nominal_.tolist() == [False, True]
    np.testing.assert_array_equal(ranker.coef_, named.coef_)
    ranker.save(tmp_path / "model.safetensors")
    unseen = make(np.full(120, 40))
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(frame), named.predict(X))
    steps = ranker.tables_[ranker.bins_.transform(X).bins[:, 0], 0]
    np.testing.assert_allclose(loaded.predict(unseen), steps)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("ranker", [SVMRanker(), RidgeRanker(), ClassificationRanker()])
def test_linear_rankers_refuse_them(ranker, make):
    with pytest.raises(DataError, match=r"column 'kind': .* use AdditiveSVMRanker, or encode"):
        ranker.fit(make(CODES), Y, qid=QID)
    ranker.fit(X, Y, qid=QID)
    with pytest.raises(DataError, match="column 'kind'"):
        ranker.predict(make(CODES))


def test_columns_that_were_numbers_are_refused():
    numbers = pd.DataFrame(X, columns=["x", "kind"])
    ranker = AdditiveSVMRanker(C=4.0).fit(numbers, Y, qid=QID)
    with pytest.raises(DataError, match="column 'kind': held numbers in training"):
        ranker.predict(FRAMES["pandas"](CODES))
    wide = FRAMES["pandas"](CODES).assign(other=pd.Categorical(CODES))
    nominal = AdditiveSVMRanker(C=4.0).fit(FRAMES["pandas"](CODES), Y, qid=QID)
    with pytest.raises(ValueError, match="feature names"):
        nominal.predict(wide)


NAMES = np.array(["acme", "mühle & co", "zeta"])
TEXTS = NAMES[CODES // 10 - 1]
TEXT_FRAMES = {
    "object": lambda texts: pd.DataFrame({"x": X[:, 0], "kind": np.array(texts, object)}),
    "string": lambda texts: pd.DataFrame({"x": X[:, 0], "kind": pd.array(texts, "string")}),
    "category": lambda texts: pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(texts)}),
    "reversed": lambda texts: pd.DataFrame(
        {"x": X[:, 0], "kind": pd.Categorical(texts, [*NAMES[::-1], "other", "unused"])}
    ),
    "polars": lambda texts: pl.DataFrame({"x": X[:, 0], "kind": list(texts)}),
    "polars category": lambda texts: pl.DataFrame(
        {"x": X[:, 0], "kind": pl.Series(list(texts), dtype=pl.Categorical)}
    ),
    "enum": lambda texts: pl.DataFrame(
        {"x": X[:, 0], "kind": pl.Series(list(texts), dtype=pl.Enum([*NAMES[::-1], "other"]))}
    ),
}


def additive(**parameters):
    return AdditiveSVMRanker(C=4.0, line="none", **parameters)


@pytest.fixture(scope="module")
def of_texts():
    return additive(categorical=["kind"]).fit(TEXT_FRAMES["object"](TEXTS), Y, qid=QID)


@pytest.mark.parametrize("make", TEXT_FRAMES.values(), ids=TEXT_FRAMES)
def test_texts_are_what_their_places_in_the_alphabet_are(make, of_texts, tmp_path):
    by_hand = additive(categorical=[1]).fit(X, Y, qid=QID)
    ranker = additive(categorical=["kind"]).fit(make(TEXTS), Y, qid=QID)
    assert ranker.categories_in_ == (None, tuple(NAMES))
    np.testing.assert_array_equal(ranker.coef_, by_hand.coef_)
    ranker.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    assert loaded.categories_in_ == ranker.categories_in_
    for other in TEXT_FRAMES.values():
        np.testing.assert_array_equal(loaded.predict(other(TEXTS)), by_hand.predict(X))
    unseen, missing = np.where(CODES == 10, 40, CODES), np.where(CODES == 10, np.nan, CODES)
    for texts, numbers in (("other", unseen), (None, missing)):
        changed = [text if text != "acme" else texts for text in TEXTS]
        rows = np.column_stack([X[:, 0], numbers])
        np.testing.assert_array_equal(ranker.predict(make(changed)), by_hand.predict(rows))


def test_missing_texts_are_learned_from_as_missing_numbers_are():
    numbers = np.where(CODES == 10, np.nan, CODES)
    rows = np.column_stack([X[:, 0], numbers])
    by_hand = additive(categorical=[1]).fit(rows, Y, qid=QID)
    texts = [None if text == "acme" else text for text in TEXTS]
    blank = pd.DataFrame({"x": X[:, 0], "kind": [text or " " for text in texts]})
    for make in TEXT_FRAMES.values():
        ranker = additive(categorical=[1]).fit(make(texts), Y, qid=QID)
        assert ranker.categories_in_ == (None, ("mühle & co", "zeta"))
        for frame in (make(texts), blank):
            np.testing.assert_array_equal(ranker.predict(frame), by_hand.predict(rows))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.text(min_size=1), min_size=3, max_size=3, unique=True), st.permutations(range(3))
)
def test_names_and_their_order_do_not_matter(names, order):
    """Names in the same order give the same bits, and the order of pandas' categories nothing."""
    names = sorted(f"a{name}" for name in names)  # none of which is a number, or blank
    texts = np.array(names, object)[CODES // 10 - 1]
    categories = pd.Categorical(texts, [names[place] for place in order])
    ranker = additive().fit(pd.DataFrame({"x": X[:, 0], "kind": categories}), Y, qid=QID)
    by_hand = additive(categorical=[1]).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(ranker.coef_, by_hand.coef_)


def test_evaluation_paths_and_several_columns(of_texts):
    frame = TEXT_FRAMES["category"](TEXTS).assign(size=pd.Categorical(np.where(Y > 0, "l", "s")))
    ranker = additive(interactions=1).fit(frame, Y, qid=QID, eval_set=(frame, Y), eval_qid=QID)
    assert ranker.categories_in_ == (None, tuple(NAMES), ("l", "s"))
    assert ranker.nominal_.tolist() == [False, True, True]
    rankers = additive().path(TEXT_FRAMES["category"](TEXTS), Y, [1.0, 4.0], qid=QID)
    assert [one.categories_in_ for one in rankers] == [of_texts.categories_in_] * 2
    expected = of_texts.predict(TEXT_FRAMES["object"](TEXTS))
    np.testing.assert_allclose(rankers[1].predict(TEXT_FRAMES["enum"](TEXTS)), expected, atol=0.05)
    again = additive(categorical=[1])
    again.fit(TEXT_FRAMES["object"](TEXTS), Y, qid=QID).fit(X, Y, qid=QID)
    assert again.categories_in_ is None
    again.predict(X)


def test_numbers_and_texts_are_told_apart(of_texts):
    numbers = pd.DataFrame({"x": X[:, 0], "kind": CODES})
    for rows in (X, numbers, pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(CODES)})):
        with pytest.raises(DataError, match="column 'kind': held texts in training, not numbers"):
            of_texts.predict(rows)
    trained = additive(categorical=["kind"]).fit(numbers, Y, qid=QID)
    for make in TEXT_FRAMES.values():
        with pytest.raises(DataError, match="column 'kind': held numbers in training, not texts"):
            trained.predict(make(TEXTS))
    mixed = pd.DataFrame({"x": X[:, 0], "kind": np.where(CODES > 10, TEXTS, CODES.astype(object))})
    with pytest.raises(DataError, match="column 'kind': expected either texts or numbers: found"):
        additive(categorical=["kind"]).fit(mixed, Y, qid=QID)
    for ranker in (additive(), SVMRanker(), RidgeRanker()):
        with pytest.raises(DataError, match=r"column 'kind': .*categorical=\['kind'\]"):
            ranker.fit(TEXT_FRAMES["object"](TEXTS), Y, qid=QID)


def test_lists_bring_their_texts(of_texts):
    """Codes are those of the lists, whatever their order, or the order of columns."""
    texts = ("zeta", "other", "acme")
    codes = np.where(CODES == 30, 0.0, np.where(CODES == 20, 1.0, 2.0))
    lists = Lists(
        np.column_stack([codes, X[:, 0]]),
        Y,
        QID,
        feature_names=("kind", "x"),
        categories=(texts, None),
    )
    changed = np.where(CODES == 20, "other", TEXTS)
    expected = of_texts.predict(TEXT_FRAMES["object"](changed))
    np.testing.assert_array_equal(of_texts.predict(lists), expected)
    np.testing.assert_array_equal(Model.of(of_texts).predict(lists), expected)
    with pytest.raises(DataError, match="column 'kind': SVMRanker takes no categories"):
        SVMRanker().fit(lists)
    without = Lists(lists.X, Y, QID, feature_names=("kind", "x"))
    with pytest.raises(DataError, match="column 'kind': held texts in training"):
        of_texts.predict(without)
    [one, two] = explain_rows(
        Model.of(of_texts), lists, [int(np.argmax(codes == c)) for c in (0, 1)]
    )
    assert {part.name: part.value for part in one.contributions}["kind"] == "zeta"
    assert "kind = zeta" in str(one)
    assert "kind = (unseen)" in str(two)
    assert "against" in str(one.above(two))


def test_pictures_have_texts_and_exports_refuse_them(of_texts, tmp_path):
    figure = draw_functions(terms(of_texts, ["x", "kind"]))
    labels = [tick.get_text() for axes in figure.axes for tick in axes.get_xticklabels()]
    assert {*NAMES} <= {*labels}
    for engine in ("json", "lightgbm", "solr"):
        with pytest.raises(
            DataError, match="column 'kind': a model with categories that are texts"
        ):
            export(of_texts, tmp_path / "model", engine)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    "categories", [[None], [None, ["a"]], [None, "acme"], [None, [1, 2, 3]], {"kind": ["a"]}]
)
def test_damaged_vocabularies_are_refused(of_texts, tmp_path, categories):
    model = Model.of(of_texts)
    model.record["categories"] = categories
    model.write(tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError, match=r"categories|texts"):
        load(tmp_path / "model.safetensors")


def test_too_many_categories_are_told_with_the_name_of_their_column():
    rows, queries = np.arange(300), np.repeat(np.arange(30), 10)
    frame = pd.DataFrame({"x": rows % 7, "kind": rows.astype(str)})
    problem = "300 categories, and there is room for 253"
    for kinds, place in ((frame, "column 'kind'"), (frame.astype(float).to_numpy(), "column 1")):
        ranker = AdditiveSVMRanker(categorical=[1] if place == "column 1" else ["kind"])
        with pytest.raises(DataError, match=f"{place}: {problem}"):
            ranker.fit(kinds, rows % 2, qid=queries)


OTHERS = {
    "dates": [datetime(2020, 1, 1), datetime(2021, 1, 1), None],
    "days": [date(2020, 1, 1), date(2021, 1, 1), None],
    "spans": [timedelta(1), timedelta(2), None],
    "lists": [[1.0], [2.0], [3.0]],
    "bytes": [b"a", b"b", b"c"],
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_what_is_neither_number_nor_text_is_refused_with_its_column(name, make):
    frame = make({"x": X[:, 0], "kind": OTHERS[name] * 40})
    for ranker in (SVMRanker(), additive(), additive(categorical=["kind"])):
        with pytest.raises(DataError, match=r"^column 'kind': expected .* found"):
            ranker.fit(frame, Y, qid=QID)


def test_categories_of_anything_else_are_refused():
    for kinds in (pd.Categorical(OTHERS["days"] * 40), pd.cut(X[:, 0], 3)):
        with pytest.raises(DataError, match=r"^column 'kind': expected categories that are texts"):
            additive().fit(pd.DataFrame({"x": X[:, 0], "kind": kinds}), Y, qid=QID)


def test_names_are_compared_before_what_columns_hold(of_texts):
    frame = TEXT_FRAMES["object"](TEXTS)
    twice = pd.concat([frame, frame[["kind"]]], axis=1)
    for ranker in (SVMRanker(), additive(categorical=[1])):
        with pytest.raises(DataError, match="column 'kind': expected columns with different names"):
            ranker.fit(twice, Y, qid=QID)
    mixed = pd.DataFrame({0: X[:, 0], "kind": TEXTS})
    with pytest.raises(DataError, match="Feature names are only supported"):
        additive(categorical=["kind"]).fit(mixed, Y, qid=QID)
    nominal = TEXT_FRAMES["category"](TEXTS)
    for rows in (frame[["kind", "x"]], nominal[["kind", "x"]], frame.assign(other=TEXTS)):
        with pytest.raises(DataError, match="feature names should match") as found:
            of_texts.predict(rows)
        assert "\n" not in str(found.value)
    for column in ("nope", -1, 2):
        with pytest.raises(DataError, match=rf"^categorical: expected names .*, found {column!r}$"):
            additive(categorical=[column]).fit(frame, Y, qid=QID)
    for parameter in ("increasing", "decreasing"):
        with pytest.raises(DataError, match=f"^{parameter}: expected columns that are not categ"):
            additive(**{parameter: ["kind"]}).fit(nominal, Y, qid=QID)


def test_columns_of_any_name_and_of_nothing():
    texts = pl.DataFrame({"x": X[:, 0], "self": list(TEXTS)})
    ranker = additive(categorical=["self"]).fit(texts, Y, qid=QID)
    assert ranker.categories_in_ == (None, tuple(NAMES))
    unnamed = pd.DataFrame({0: X[:, 0], 1: TEXTS})
    ranker = additive(categorical=[1]).fit(unnamed, Y, qid=QID)
    with pytest.raises(DataError, match="column '2': held texts in training"):
        ranker.predict(X)
    packed = pa.table({"x": X[:, 0], "kind": pa.array(list(TEXTS)).dictionary_encode()})
    ranker = additive().fit(packed.to_pandas(types_mapper=pd.ArrowDtype), Y, qid=QID)
    assert ranker.categories_in_ == (None, tuple(NAMES))
    nothing = [
        additive(categorical=["kind"]).fit(TEXT_FRAMES["object"]([value] * 120), Y, qid=QID).coef_
        for value in (None, "", " ", np.nan)
    ]
    for coef in nothing[1:]:
        np.testing.assert_array_equal(coef, nothing[0])


def test_texts_that_a_vocabulary_lacks_are_no_category(of_texts, tmp_path):
    """Rows of texts that are not known in training add nothing, there and later."""
    codes = np.where(CODES == 30, -1.0, CODES // 10 - 1)
    rows = np.column_stack([X[:, 0], codes])
    lists = Lists(rows, Y, QID, feature_names=("x", "kind"), categories=(None, tuple(NAMES[:2])))
    ranker = additive().fit(lists)
    ranker.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    steps = ranker.tables_[ranker.bins_.transform(rows).bins[:, 0], 0]
    np.testing.assert_array_equal(loaded.predict(lists), ranker.predict(lists))
    np.testing.assert_allclose(ranker.predict(lists)[codes < 0], steps[codes < 0])
    other = loaded.predict(TEXT_FRAMES["object"](np.where(codes < 0, "other", TEXTS)))
    np.testing.assert_array_equal(other, ranker.predict(lists))
