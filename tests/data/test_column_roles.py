"""A field is read for one purpose: over all readers of texts and all names that can be given."""

from __future__ import annotations

import csv
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.applications.clicks import log as click_log
from didyma.data import table
from didyma.data.column_roles import NAMES, Roles
from didyma.data.lists import Lists
from didyma.data.schema import Schema
from didyma.data.texts import reader as texts
from didyma.errors import DataError, LeftOutWarning
from tests.data.texts.test_json_lines import contents, read

FIELDS = ["query", "passage", "label", "score", "qid", "docid", "title", "text", "extra", "labels"]
ROLES = ["query", "passage", "label", "score", "qid", "docid"]
names_given = st.dictionaries(st.sampled_from(ROLES), st.sampled_from([*FIELDS, "scores"]))
present = st.sets(st.sampled_from(FIELDS), min_size=2)


def unlike(fields: list[str], *, numeric: bool = False) -> dict[str, Any]:
    """A different value for each field, as a number or as text."""
    values = {name: 100 + n for n, name in enumerate(fields)}
    is_number = {"label", "score", "extra"}
    return {
        name: value if numeric and name in is_number else str(value)
        for name, value in values.items()
    }


def whole(record: dict[str, Any]) -> dict[str, Any]:
    return record


def listed(record: dict[str, Any]) -> dict[str, Any]:
    """The same as an object for each query, with a passage in a list."""
    own = {name: record[name] for name in ("query", "qid") if name in record}
    return {**own, "passages": [{n: v for n, v in record.items() if n not in own}]}


def beside(record: dict[str, Any]) -> dict[str, Any]:
    """The same with labels and scores in lists beside the passages."""
    numbers = {f"{n}s": [record[n]] for n in ("label", "score", "extra") if n in record}
    rest = {n: v for n, v in record.items() if n not in ("label", "score", "extra", "labels")}
    return {**listed(rest), **numbers}


def write_json(path: Path, shape: Callable[[dict[str, Any]], Any], fields: list[str]) -> Path:
    path = path / "data.jsonl"
    path.write_text(json.dumps(shape(unlike(fields, numeric=True))) + "\n")
    return path


def write_table(path: Path, name: str, fields: list[str]) -> Path:
    with open(path / name, "w", newline="") as file:
        rows = [fields, list(unlike(fields).values())]
        csv.writer(file, delimiter="\t" if name.endswith("tsv") else ",").writerows(rows)
    return path / name


def write_parquet(path: Path, fields: list[str]) -> Path:
    polars = pytest.importorskip("polars")
    columns = {name: [value] for name, value in unlike(fields, numeric=True).items()}
    polars.DataFrame(columns).write_parquet(path / "data.parquet")
    return path / "data.parquet"


LAYOUTS: dict[str, Callable[[Path, list[str]], Path]] = {
    "pairs": lambda path, fields: write_json(path, whole, fields),
    "lists": lambda path, fields: write_json(path, listed, fields),
    "lists beside": lambda path, fields: write_json(path, beside, fields),
    "csv": lambda path, fields: write_table(path, "data.csv", fields),
    "tsv": lambda path, fields: write_table(path, "data.tsv", fields),
    "parquet": write_parquet,
}


def read_values(lists: Lists) -> dict[str, list[str]]:
    """What was read for each role: the numbers of `unlike` that are in it."""
    assert lists.queries is not None
    columns: dict[str, Any] = {
        "query": lists.queries[0],
        "passage": lists.items[0],
        "qid": lists.qid[0],
        "label": None if lists.labels is None else lists.labels[0],
        "score": None if lists.scores is None else lists.scores[0],
        "docid": None if lists.docid is None else lists.docid[0],
    }
    words = {
        role: [word.removesuffix(".0") for word in str(value).split()]
        for role, value in columns.items()
        if value is not None
    }
    return {role: word for role, word in words.items() if word != ["1"]}  # a query without an id


def left_out(caught: list[warnings.WarningMessage]) -> set[str]:
    """The fields that warnings tell of."""
    assert all(warning.category is LeftOutWarning for warning in caught)
    told = [str(warning.message).rpartition("left out: ")[2] for warning in caught]
    return {field for own in told for field in re.sub(r" \([^)]*\)", "", own).split(", ")}


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=150, deadline=None)
@given(fields=present, names=names_given)
def test_no_field_is_read_twice(
    layout: str, fields: set[str], names: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if layout == "lists beside":  # where "labels" is the list of what "label" is elsewhere
        fields -= {"labels"}
    order = sorted(fields)
    path = LAYOUTS[layout](tmp_path_factory.mktemp("roles"), order)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            lists = texts.read(path, **names)
        except DataError:
            return
    values = read_values(lists)
    words = [word for own in values.values() for word in own]
    assert len(words) == len(set(words)), (values, names)
    number = unlike(order)
    singular = {"scores": "score", "labels": "label"} if layout == "lists beside" else {}
    for role, name in names.items():
        field = name if name in number else singular.get(name, name)
        assert number[field] in values[role]
    told = left_out(caught)
    several = {f"{name}s": name for name in order} if layout == "lists beside" else {}
    assert not told & set(names.values())
    assert not {number[several.get(name, name)] for name in told} & set(words)
    silent = {name for name in order if number[name] not in words} - {
        several.get(n, n) for n in told
    }
    assert not silent - {name for name, *_ in Schema.of(lists.attributes).fields}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("role", ["label", "score"])
def test_a_teachers_score_is_no_first_stage(layout: str, role: str, tmp_path: Path) -> None:
    path = LAYOUTS[layout](tmp_path, ["query", "text", "score"])
    values = read_values(texts.read(path, **{role: "score"}))
    assert values == {"query": ["100"], "passage": ["101"], role: ["102"]}


@pytest.mark.parametrize(
    ("record", "label", "wanted", "left"),
    [
        ({"passages": ["a"], "scores": [7]}, "score", (7.0, None), set()),
        ({"passages": ["a"], "scores": [7]}, "scores", (7.0, None), set()),
        ({"passages": ["a"], "scores": [7], "labels": [1]}, "score", (7.0, None), {"labels"}),
        ({"passages": ["a"], "ratings": [7], "scores": [1]}, "rating", (7.0, 1.0), set()),
        (
            {"passages": [{"text": "a", "score": 7}], "labels": [1]},
            "score",
            (7.0, None),
            {"labels"},
        ),
        ({"passages": [{"text": "a", "ce": 7, "score": 3}]}, "ce", (7.0, 3.0), set()),
    ],
)
def test_labels_in_passages_or_beside_them(
    record: dict[str, Any],
    label: str,
    wanted: tuple[float, float | None],
    left: set[str],
    tmp_path: Path,
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lists = read(tmp_path, {"query": "who?", **record}, label=label)
    assert contents(lists) == {"who?": [("a", *wanted, None)]}
    assert left_out(caught) == left


def test_names_of_fields_in_passages(tmp_path: Path) -> None:
    record = {"frage": "wer?", "saetze": [{"satz": "a", "nr": 7, "text": "b"}]}
    both = {**record, "passages": record["saetze"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lists = read(tmp_path, both, query="frage", passage="satz")
    assert left_out(caught) == {"saetze", "nr", "text"}
    assert contents(lists) == {"wer?": [("a", None, None, None)]}
    with pytest.warns(LeftOutWarning, match=r"left out: satz \(the same in all documents\)$"):
        lists = read(tmp_path, record, query="frage", passage="saetze", docid="nr")
    assert contents(lists) == {"wer?": [("b", None, None, "7")]}


@pytest.mark.parametrize(
    ("record", "names", "problem"),
    [
        ({"passages": ["a"]}, {"label": "rating"}, "line 1, rating: no such name among texts"),
        ({"passages": [{"text": "a"}]}, {"score": "bm25"}, "bm25: no such name among"),
        ({"pos": ["a"]}, {"label": "score"}, "score: expected no label: positives have 1"),
    ],
)
def test_names_that_are_not_there(
    record: dict[str, Any], names: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=problem):
        read(tmp_path, {"query": "who?", **record}, **names)


def test_names_for_what_has_none(tmp_path: Path) -> None:
    triples = tmp_path / "triples.tsv"
    triples.write_text("who?\ta\tb\n")
    for path in (triples, tmp_path):
        with pytest.raises(DataError, match="its fields have no names that could be given"):
            texts.read(path, label="score")


def test_one_name_for_two_roles(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="score: expected one role, found label and score"):
        Roles(label="score", score="score")
    with pytest.raises(DataError, match="rank: expected one role, found position and clicked"):
        click_log.read(tmp_path / "log.csv", position="rank", clicked="rank")


def test_no_name_means_two_roles() -> None:
    plain = [{name.replace("_", "") for name in names} for names in NAMES.values()]
    assert sum(map(len, plain)) == len(set().union(*plain))


COLUMNS = ["label", "qid", "docid", "bm25"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@settings(max_examples=60, deadline=None)
@given(
    names=st.fixed_dictionaries(
        {},
        optional={role: st.sampled_from(COLUMNS) for role in ("label", "qid", "docid")}
        | {
            "features": st.lists(st.sampled_from(COLUMNS), max_size=3),
            "judged": st.booleans(),
        },
    )
)
def test_no_column_is_both_known_and_a_feature(
    suffix: str, names: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("table") / f"data.{suffix}"
    values = {name: 10 + n for n, name in enumerate(COLUMNS)}
    if suffix == "jsonl":
        path.write_text(json.dumps(values) + "\n")
    elif suffix == "csv":
        path.write_text(f"{','.join(values)}\n{','.join(map(str, values.values()))}\n")
    else:
        columns = {name: [value] for name, value in values.items()}
        pytest.importorskip("polars").DataFrame(columns).write_parquet(path)
    try:
        lists = table.read(path, **names)
    except DataError:
        return
    docid = [] if lists.docid is None else lists.docid.tolist()
    label = [value for value in lists.y.tolist() if value]
    numbers = [*map(float, [*lists.qid.tolist(), *docid]), *label, *np.ravel(lists.X).tolist()]
    assert len(numbers) == len(set(numbers)), (names, numbers)
