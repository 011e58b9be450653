"""Signals and text fields as columns, against their definitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from didyma.data.attributes import Attributes
from didyma.data.lists import Lists
from didyma.text import ExtendedFeatures, FieldOverlaps, Signals, SmallFeatures, TextFeatures
from didyma.text.features.part import places, reciprocal_ranks
from didyma.text.features.small import OVERLAPS

SIZES = [4, 1, 6, 3]


def lists_with(attributes: Attributes, texts: list[str] | None = None) -> Lists:
    n = len(attributes)
    texts = [f"word{row} here" for row in range(n)] if texts is None else texts
    qid = np.repeat(np.arange(len(SIZES)), SIZES)
    return Lists(texts, None, qid, queries=["a word"] * len(SIZES), attributes=attributes)


def signals_of(seed: int = 0) -> Attributes:
    rng = np.random.default_rng(seed)
    n = sum(SIZES)
    clicks = rng.lognormal(3, 2, n).round()
    clicks[[2, 7]] = np.nan
    dense = rng.normal(size=n)
    dense[[0, 3, 4, 9]] = np.nan
    kind = np.array(["blog", "news", None, "blog", "wiki"] * n, object)[:n]
    return Attributes(
        signals={"clicks": clicks, "dense": dense, "kind": kind}, first_stages=("dense",)
    )


def columns_of(lists: Lists) -> dict[str, np.ndarray]:
    features = TextFeatures([Signals()]).fit(lists)
    return dict(zip(features.names, features.transform(lists).T))


def test_numbers_are_standardised_by_median_and_quartiles() -> None:
    lists = lists_with(attributes := signals_of())
    columns, clicks = columns_of(lists), attributes.signals["clicks"]
    low, median, high = np.nanquantile(clicks, [0.25, 0.5, 0.75])
    z = (np.where(np.isnan(clicks), median, clicks) - median) / ((high - low) / 1.3489795)
    near = np.abs(z) <= 3
    assert columns["signal.clicks"][near] == pytest.approx(z[near])
    assert (~near).any()
    assert np.abs(columns["signal.clicks"]).max() < np.abs(z).max()
    assert (np.argsort(columns["signal.clicks"]) == np.argsort(z)).all()  # no order is lost
    assert columns["signal.clicks missing"].tolist() == np.isnan(clicks).tolist()


def test_what_a_first_stage_did_not_find_is_below_all_it_found() -> None:
    lists = lists_with(attributes := signals_of())
    columns, dense = columns_of(lists), attributes.signals["dense"]
    for rows in map(lists.groups.rows_of, range(len(SIZES))):
        own = dense[rows]
        greater = np.array(
            [np.sum(np.nan_to_num(own, nan=-np.inf) > v) for v in np.nan_to_num(own, nan=-np.inf)]
        )
        assert columns["signal.dense rank"][rows] == pytest.approx(1 / (1 + greater))
        expected = np.where(np.isnan(own), 0.0, 1 / (61 + greater))
        assert columns["signal.dense rrf"][rows] == pytest.approx(expected)
        least = np.nanmin(own) if not np.isnan(own).all() else 0.0
        filled = np.where(np.isnan(own), least, own)
        z = (filled - filled.mean()) / (filled.std() or 1.0)
        assert columns["signal.dense in list"][rows] == pytest.approx(z, abs=1e-12)
    missing = np.isnan(dense)
    assert (columns["signal.dense"][missing] <= columns["signal.dense"].min()).all()


def test_frequent_categories_have_columns() -> None:
    columns = columns_of(lists_with(signals_of()))
    assert [name for name in columns if "=" in name] == ["signal.kind=blog"]  # others are rare
    assert columns["signal.kind=blog"].sum() == 6


def test_signals_that_are_not_given_are_imputed() -> None:
    lists = lists_with(signals_of())
    features = TextFeatures([Signals()]).fit(lists)
    without = Lists(lists.items, None, lists.qid, queries=lists.queries)
    X = dict(zip(features.names, features.transform(without).T))
    assert not X["signal.clicks"].any()
    assert X["signal.clicks missing"].all()
    assert not X["signal.kind=blog"].any()
    assert np.isfinite(np.stack(list(X.values()))).all()


def test_windows_have_the_signals_of_their_document() -> None:
    attributes = signals_of()
    texts = ["one two three four five six seven"] * len(attributes)
    lists = lists_with(attributes, texts)
    features = TextFeatures([Signals(), SmallFeatures()], window=3).fit(lists)
    windowed = features.windowed(lists)
    assert len(windowed.item) > len(lists)
    whole = TextFeatures([Signals()]).fit(lists).transform(lists)
    assert windowed.X[:, : whole.shape[1]].tolist() == whole[windowed.item].tolist()


def test_ranks_are_counts_of_greater_values() -> None:
    rng = np.random.default_rng(1)
    lists = lists_with(signals_of())
    values = rng.integers(0, 3, len(lists)).astype(float)
    expected = [
        int(np.sum(values[lists.groups.codes == code] > value))
        for value, code in zip(values, lists.groups.codes)
    ]
    assert places(values, lists.groups).tolist() == expected
    rows = np.arange(len(lists))
    whole = reciprocal_ranks(values, rows, lists.groups)
    assert whole == pytest.approx(1 / (61 + np.array(expected)))
    doubled = np.repeat(rows, 2)  # a second, worse window of each changes nothing
    windows = np.stack([values, values - 5], axis=1).ravel()
    assert reciprocal_ranks(windows, doubled, lists.groups)[::2] == pytest.approx(whole)


def test_a_field_is_read_as_if_it_were_the_text() -> None:
    titles = [f"title {'of ships' * (row % 3)} {row}" for row in range(sum(SIZES))]
    lists = lists_with(Attributes({"title": titles}))
    own = TextFeatures([FieldOverlaps("title")], language=None).fit(lists)
    alone = TextFeatures([SmallFeatures()], language=None).fit(lists.with_items(titles))
    X = dict(zip(alone.names, alone.transform(lists.with_items(titles)).T))
    assert own.transform(lists).tolist() == np.stack([X[name] for name in OVERLAPS]).T.tolist()


def test_features_of_a_file_are_the_same(tmp_path: Path) -> None:
    attributes = signals_of()
    titles = [f"title {row % 3}" for row in range(len(attributes))]
    lists = lists_with(Attributes({"title": titles}, attributes.signals, attributes.first_stages))
    parts = [Signals(), FieldOverlaps("title"), SmallFeatures()]
    features = TextFeatures(parts, reciprocal=["stem_bm25"]).fit(lists)
    again = TextFeatures.from_state(*features.state())
    assert again.names == features.names
    assert again.transform(lists).tobytes() == features.transform(lists).tobytes()
    chosen = features.with_columns(["signal.dense rrf", "signal.dense in list", "stem_bm25 rrf"])
    assert {type(part) for part in chosen.parts} == {Signals, SmallFeatures}
    assert chosen.names[-1] == "stem_bm25 rrf"


def test_a_part_is_no_larger_than_what_is_asked_for() -> None:
    lists = lists_with(signals_of())
    features = TextFeatures([ExtendedFeatures(), Signals()]).fit(lists)
    few = features.with_columns(["stem_bm25", "signal.dense"])
    assert [type(part) for part in few.parts] == [SmallFeatures, Signals]
    more = features.with_columns(["stem_bm25", "concepts", "signal.dense"])
    assert [type(part) for part in more.parts] == [ExtendedFeatures, Signals]
