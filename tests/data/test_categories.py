"""Categories that are texts: numberings, vocabularies of columns, and tables that hold them."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.data import blocks, delimited, read, table, write
from didyma.data.categories import Numbering, number_frame, settled, text_of
from didyma.data.lists import Lists
from didyma.data.matrix import Columns
from didyma.errors import DataError

BRANDS = ["zoo", "acme", "", "zoo", "beta, inc"]
ROWS = {
    "label": [1, 0, 0, 1, 0],
    "qid": ["a", "a", "a", "b", "b"],
    "x": [0.5, 1.0, 2.0, 3.0, 4.0],
    "brand": BRANDS,
    "size": [3, 2, 2, 3, 1],
}
CODES = [2.0, 0.0, np.nan, 2.0, 1.0]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


def written(folder: Path, suffix: str, rows: dict[str, Any] = ROWS) -> Path:
    path = folder / f"rows{suffix}"
    nulled = {name: [value if value != "" else None for value in rows[name]] for name in rows}
    if suffix == ".parquet":
        pl.DataFrame(nulled).write_parquet(path, row_group_size=2)
    elif suffix == ".jsonl":
        lines = (dict(zip(rows, row)) for row in zip(*nulled.values()))
        path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",")
            writer.writerows([list(rows), *zip(*rows.values())])
    return path


SUFFIXES = [".csv", ".tsv", ".jsonl", ".parquet"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_tables(suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path, suffix)
    with pytest.raises(DataError, match="categorical: there is no feature 'other'"):
        read(path, categorical=["brand", "other"])
    data = read(path, categorical=["brand", "size"])
    assert data.feature_names == ("x", "brand", "size")
    assert data.categories == (None, ("acme", "beta, inc", "zoo"), None)
    np.testing.assert_array_equal(data.X, np.column_stack([ROWS["x"], CODES, ROWS["size"]]))
    np.testing.assert_array_equal(read(path, like=data).X, data.X)

    like = Columns(2, ("brand", "x"), None, (("new", "zoo"), None))
    expected = np.column_stack([[1.0, -1.0, np.nan, 1.0, -1.0], ROWS["x"]])
    np.testing.assert_array_equal(read(path, like=like).X, expected)
    parts = [part.X for part in blocks(path, like=like)]
    np.testing.assert_array_equal(np.concatenate(parts), expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_numbers_stay_numbers_and_texts_texts(suffix: str, tmp_path: Path) -> None:
    """What a column holds is told by training: a later file may hold only texts that are digits."""
    numbers = written(tmp_path, suffix, {**ROWS, "brand": [7, 8, 8, 7, 9]})
    data = read(numbers, categorical=["brand"])
    assert data.categories is None
    np.testing.assert_array_equal(data.X, read(numbers).X)
    with pytest.raises(DataError, match=r"rows\..*, brand: held texts in training, not numbers"):
        read(numbers, like=Columns(1, ("brand",), None, (("acme",),)))
    digits = Columns(1, ("brand",), None, (("7", "acme"),))
    assert read(numbers, like=digits).X.ravel().tolist() == [0.0, -1.0, -1.0, 0.0, -1.0]


COLUMNS = {
    "texts": BRANDS,
    "numbers": [7, 8, 8, 7, 9],
    "digits": ["7", "8", "8", "7", "9"],
    "digits, some missing": ["7", "", "8", "7", "9"],
    "numbers, some missing": [7, "", 8, 7, 9],
    "nothing": [""] * 5,
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_read_can_be_read_like_itself(name: str, suffix: str, tmp_path: Path) -> None:
    """So a model can be evaluated on the file that it was trained on, whatever that holds."""
    path = written(tmp_path, suffix, {**ROWS, "brand": COLUMNS[name]})
    data = read(path, categorical=["brand"])
    again = read(path, like=data)
    assert again.categories == data.categories
    np.testing.assert_array_equal(again.X, data.X)
    parts = np.concatenate([part.X for part in blocks(path, like=data)])
    np.testing.assert_array_equal(parts, data.X)
    if data.categories is None:
        expected = [float(value) if value != "" else np.nan for value in COLUMNS[name]]
        np.testing.assert_array_equal(data.X[:, 1], expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_text_that_is_not_announced(suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path, suffix, {**ROWS, "brand": ["zoo"] * 5})
    with pytest.raises(DataError, match=r"brand: [^;]* number, found 'zoo'[^;]*$"):
        read(path, like=Columns(1, ("brand",)))
    with pytest.raises(DataError, match=r"brand: .*'zoo'.*; texts can be .* --categorical brand\)"):
        read(path)
    if suffix != ".parquet":
        line = 1 if suffix == ".jsonl" else 2
        with pytest.raises(DataError, match=rf"rows\{suffix}, line {line}, label: [^;]*'bad'$"):
            read(written(tmp_path, suffix, {**ROWS, "label": ["bad"] * 5}))


def test_a_number_is_one_category_however_it_is_written(tmp_path: Path) -> None:
    path = written(tmp_path, ".jsonl", {**ROWS, "brand": [3, 3.0, "acme", "3", 2.5]})
    data = read(path, categorical=["brand"])
    assert data.categories == (None, ("2.5", "3", "acme"), None)


MIXED = ["acme", "3", None, 3, "beta"]


def test_a_column_of_a_frame_has_either_texts_or_numbers() -> None:
    """For tables and rankers alike: 3 among texts might be "3" or "3.0"."""
    place = r"brand'?: expected either texts or numbers: found int 3$"
    frame = pd.DataFrame({**ROWS, "brand": MIXED})
    for vocabulary in (["brand"], {"brand": ["3", "acme"]}):
        with pytest.raises(DataError, match=place):
            table.from_frame(frame, categorical=vocabulary)
    for known in (None, {"brand": ("3", "acme")}, {}):
        with pytest.raises(DataError, match=place):
            number_frame(frame, ["brand"], known)
    for other in (b"a", date(2020, 1, 1), ["a"]):
        frame = pd.DataFrame({**ROWS, "brand": [other, *MIXED[1:]]})
        with pytest.raises(DataError, match=r"brand'?: expected categories that are texts or num"):
            table.from_frame(frame, categorical=["brand"])
    numbers = pd.DataFrame({**ROWS, "brand": ["7", 3, None, 2.5, "8"]})
    expected = [7.0, 3.0, np.nan, 2.5, 8.0]
    data = table.from_frame(numbers, categorical=["brand"])
    np.testing.assert_array_equal(data.X[:, 1], expected)
    np.testing.assert_array_equal(number_frame(numbers, ["brand"])[0]["brand"], expected)


def test_texts_that_are_digits_are_no_categories_of_letters() -> None:
    """As in files: they are more likely the numbers of another column."""
    frame = pd.DataFrame({**ROWS, "brand": ["7", "8", "", "7", "9"]})
    with pytest.raises(DataError, match="column 'brand': held texts in training, not numbers"):
        number_frame(frame, ["brand"], {"brand": ("acme", "zoo")})
    coded = number_frame(frame, ["brand"], {"brand": ("7", "zoo")})[0]["brand"]
    np.testing.assert_array_equal(coded, [0.0, -1.0, np.nan, 0.0, -1.0])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames(make: Any) -> None:
    brands = [brand or None for brand in BRANDS]
    data = table.from_frame(make({**ROWS, "brand": brands}), categorical=["brand"])
    assert data.categories == (None, ("acme", "beta, inc", "zoo"), None)
    np.testing.assert_array_equal(data.X[:, 1], CODES)


def test_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code and `csv` number alike, and blocks as they come."""
    rows = {
        name: [value for value in ROWS[name] * 40 if value != "beta, inc"] for name in ["brand"]
    }
    n = len(rows["brand"])
    rows = {"label": [0, 1] * (n // 2), "qid": [*map(str, range(n))], "x": [*range(n)], **rows}
    path = written(tmp_path, ".csv", rows)
    plain = read(path, categorical=["brand"])
    monkeypatch.setattr(delimited, "LARGE", 0)
    monkeypatch.setattr(delimited, "PIECE", 64)
    assert len(list(blocks(path, categorical=["brand"]))) > 3
    fast = read(path, categorical=["brand"])
    np.testing.assert_array_equal(fast.X, plain.X)
    assert fast.categories == plain.categories == (None, ("acme", "zoo"))


@given(st.lists(TEXTS, min_size=1), st.lists(TEXTS))
def test_codes_say_their_texts(first: list[str], second: list[str]) -> None:
    """Through learning, sorting and another vocabulary; a text that this lacks is unseen."""
    numbering = Numbering("brand")
    parts = [numbering.codes(first), numbering.codes(second)]
    lists = Lists(np.concatenate(parts)[:, None], categories=(numbering.vocabulary,))
    texts = [text if text.strip() else None for text in (*first, *second)]
    other = Columns(1, None, None, (tuple(text for text in {*first} if text.strip()),))
    for data in (settled(lists), lists):
        if not (numbering.vocabulary and data.categories):
            continue
        said = [text_of(code, data.categories[0]) for code in data.X.ravel()]
        assert [text if isinstance(text, str) else None for text in said] == texts
        again = other.arrange(data)
        expected = [text if text is None or text in first else "(unseen)" for text in texts]
        said = [text_of(code, other.categories[0]) for code in again.X.ravel()]  # type: ignore[index]
        assert [text if isinstance(text, str) else None for text in said] == expected


def test_no_file_has_codes_of_texts(tmp_path: Path) -> None:
    data = read(written(tmp_path, ".csv"), categorical=["brand"])
    with pytest.raises(DataError, match=r"b\.csv: expected numbers, found categories"):
        write(data, tmp_path / "b.csv")
    with pytest.raises(DataError, match="categories: 1 entries for 2 features"):
        Lists(np.eye(2), categories=(None,))
    assert data.with_items(np.ones((5, 1))).categories is None
