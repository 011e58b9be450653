"""Logs of searches: which document stood where for which query, and whether it was clicked.

A line, an object in JSON lines or a row of a table (``.csv``, else with tabs), is one document that
one user was shown:

    {"query": "who wrote Emma?", "document": "Jane Austen.", "position": 1, "clicked": true}

A query has a text (``query``), an id (``qid``) or both, a document a text (``document``,
``passage``), an id (``docid``) or both; other names are in `didyma.data.column_roles`. Positions
are whole numbers, from 0 or from 1 on. Where there is an ``impression``, the id of one page of
results, its lines stand together, and a document that is logged again there was shown once, and
clicked if any of its lines says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.data import id_of
from didyma.data.column_roles import assign, check_distinct
from didyma.data.delimited import DelimitedFile
from didyma.data.json_lines import objects
from didyma.data.texts import by_id
from didyma.errors import LeftOutWarning, placed, warn
from didyma.files import PathName, format_suffix

__all__ = ["ROLES", "ClickLog", "read"]

ROLES = ("query", "qid", "passage", "docid", "position", "clicked", "impression")
TRUTH = {True: True, False: False, "true": True, "false": False, "1": True, "0": False}
LAST = 2**31  # no page is so long
REMEMBERED = 10_000  # impressions back, among which one that goes on after others is noticed


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Counts of impressions and clicks, for each document of a query at each of its positions.

    A *pair* is a document of a query, a *cell* a pair at one position.

    Attributes
    ----------
    queries : list of str
        Ids, or texts where there are no ids.
    query : array of shape (n_pairs,)
        The query of each pair, by its number.
    documents : list of str, of length n_pairs
        Ids, or texts where there are no ids.
    pair, position, impressions, clicks : arrays of shape (n_cells,)
        The cells, by pair.
    query_texts, passages : dict, optional
        The text of each query and document that is known, where the log has texts.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "log.csv")
    >>> lines = ["query,docid,position,clicked", "who?,a,1,0", "who?,b,2,1", "who?,b,1,1"]
    >>> _ = path.write_text("\\n".join(lines))
    >>> log = read(path)
    >>> log.documents, log.position.tolist(), log.clicks.tolist()
    (['a', 'b'], [1, 1, 2], [0, 1, 1])
    """

    queries: list[str]
    query: NDArray[np.int64]
    documents: list[str]
    pair: NDArray[np.int64]
    position: NDArray[np.int64]
    impressions: NDArray[np.int64]
    clicks: NDArray[np.int64]
    query_texts: dict[str, str] | None = None
    passages: dict[str, str] | None = None

    def with_texts(
        self, *, queries: PathName | None = None, passages: PathName | None = None
    ) -> ClickLog:
        """The same with texts by id from other files, as `didyma.data.texts.by_id` reads them."""
        log = self
        if queries is not None:
            log = replace(log, query_texts=by_id.read(queries, set(self.queries)))
        if passages is not None:
            log = replace(log, passages=by_id.read(passages, set(self.documents)))
        return log

    def __repr__(self) -> str:
        shown, clicked = int(self.impressions.sum()), int(self.clicks.sum())
        return f"ClickLog({len(self.queries)} queries, {shown} impressions, {clicked} clicks)"


def read(path: PathName, **names: str | None) -> ClickLog:
    """Read a log in one pass, plain or gzip; memory goes by the number of distinct cells.

    ``names`` are what columns or fields are called, by `ROLES`.
    """
    columns = {role: name for role, name in names.items() if name is not None}
    if unknown := columns.keys() - set(ROLES):
        raise DataError(f"expected roles among {', '.join(ROLES)}, found {', '.join(unknown)}")
    check_distinct(columns)
    is_json = format_suffix(path) in (".jsonl", ".json", ".ndjson")
    counts = _Counts(path)
    for line, record in _json_records(path, columns) if is_json else _rows(path, columns):
        counts.add(line, record)
    return counts.log()


def _rows(path: PathName, columns: Mapping[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
    tabs = format_suffix(path) != ".csv"
    file = DelimitedFile(path, "\t" if tabs else ",", quoted=not tabs)
    with placed(path, 1):
        names = _columns_of_roles(file.header, columns)
    places = {role: file.header.index(name) for role, name in names.items()}
    for line, row in file.rows():
        yield line, {role: row[place] for role, place in places.items()}


def _json_records(
    path: PathName, columns: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    roles_of: dict[tuple[str, ...], dict[str, str]] = {}  # objects have few different sets of keys
    for line, record in objects(path):
        keys = tuple(record)
        if keys not in roles_of:
            with placed(path, line):
                roles_of[keys] = _columns_of_roles(keys, columns)
        yield line, {role: record[name] for role, name in roles_of[keys].items()}


def _columns_of_roles(
    names: list[str] | tuple[str, ...], columns: Mapping[str, str]
) -> dict[str, str]:
    """What each role is called among the names that are there."""
    for name in columns.values():
        if name not in names:
            raise DataError(f"no such name among {', '.join(names)}", field=name)
    roles = assign(names, ROLES, columns)
    for wanted in (("query", "qid"), ("passage", "docid"), ("position",), ("clicked",)):
        if not roles.keys() & set(wanted):
            what = "document" if "docid" in wanted else wanted[0]
            raise DataError(f"expected a {what} among {', '.join(map(repr, names)) or 'no names'}")
    return roles


class _Counts:
    """What has been read of a log."""

    def __init__(self, path: PathName) -> None:
        self.path = path
        self.queries: dict[str, int] = {}
        self.pairs: dict[tuple[int, str], int] = {}
        self.cells: dict[tuple[int, int], int] = {}
        self.impressions: list[int] = []
        self.clicks: list[int] = []
        self.texts: dict[str, dict[str, str]] = {"query": {}, "passage": {}}
        self.n_empty = 0
        self.n_changed = 0  # lines with another text than the first of that id
        self.page: str | None = None  # the impression that the last line was of
        self.shown: dict[int, bool] = {}  # its cells, and whether they were clicked
        self.before: dict[str, None] = {}

    def add(self, line: int, record: dict[str, Any]) -> None:
        """Count a line."""
        try:
            position = _position(record["position"])
            clicked = _clicked(record["clicked"])
            query = self._name(record, "query", "qid")
            document = self._name(record, "passage", "docid")
            if record.get("impression") is not None:
                self._begin_impression(id_of(record["impression"], "impression"))
            else:
                self.page = None
        except DataError as error:
            raise DataError(error.problem, path=self.path, line=line, field=error.field) from None
        if not query.strip() or not document.strip():
            self.n_empty += 1
            return
        number = self.queries.setdefault(query, len(self.queries))
        pair = self.pairs.setdefault((number, document), len(self.pairs))
        cell = self.cells.setdefault((pair, position), len(self.impressions))
        if cell == len(self.impressions):
            self.impressions.append(0)
            self.clicks.append(0)
        if self.page is None:
            self.impressions[cell] += 1
            self.clicks[cell] += clicked
            return
        self.impressions[cell] += cell not in self.shown
        self.clicks[cell] += clicked and not self.shown.get(cell, False)
        self.shown[cell] = clicked or self.shown.get(cell, False)

    def _name(self, record: dict[str, Any], text: str, name: str) -> str:
        """The id of a query or document, or its text; if there are both, the text is kept."""
        content = record.get(text)
        if content is not None and not isinstance(content, str):
            raise DataError(f"expected a text, found {content!r:.40}", field=text)
        identifier = record.get(name)
        key = content if identifier is None else id_of(identifier, name)
        if key is None:
            raise DataError("expected a text or an id, found none", field=text)
        if content is not None and key.strip():
            first = self.texts[text].setdefault(key, content)
            self.n_changed += first != content
        return key

    def _begin_impression(self, page: str) -> None:
        """Begin an impression, unless it has begun."""
        if page == self.page:
            return
        if page in self.before:
            raise DataError(
                f"expected its lines together, found {page!r:.40} after others: sort the log by it",
                field="impression",
            )
        if self.page is not None:
            self.before[self.page] = None
            if len(self.before) > REMEMBERED:
                del self.before[next(iter(self.before))]
        self.page, self.shown = page, {}

    def log(self) -> ClickLog:
        """The counts as arrays."""
        if not self.impressions:
            raise DataError("expected lines of a log, found none", path=self.path)
        if self.n_empty:
            what = "lines with an empty query or document"
            warn(f"{self.path}: left out {self.n_empty} {what}", LeftOutWarning)
        if self.n_changed:
            what = "lines with another text than the first of the same id"
            warn(f"{self.path}: left out the texts of {self.n_changed} {what}", LeftOutWarning)
        pair, position = np.array(list(self.cells), np.int64).T
        order = np.lexsort((position, pair))
        return ClickLog(
            list(self.queries),
            np.array([query for query, _ in self.pairs], np.int64),
            [document for _, document in self.pairs],
            pair[order],
            position[order],
            np.array(self.impressions, np.int64)[order],
            np.array(self.clicks, np.int64)[order],
            self.texts["query"] or None,
            self.texts["passage"] or None,
        )


def _position(value: Any) -> int:
    try:
        if isinstance(value, str):
            number = float(value) if value.isascii() and "_" not in value else -1
        else:
            number = -1 if isinstance(value, bool) else value
        if number == int(number) and 0 <= number < LAST:
            return int(number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(f"expected a whole number from 0 on, found {value!r:.40}", field="position")


def _clicked(value: Any) -> bool:
    try:
        return TRUTH[value.strip().lower() if isinstance(value, str) else value]
    except (KeyError, TypeError):
        problem = f"expected true or false, 1 or 0, found {value!r:.40}"
        raise DataError(problem, field="clicked") from None
