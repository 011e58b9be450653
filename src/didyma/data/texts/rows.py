"""Rows of texts, gathered one by one as a file has them, and the lists that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from didyma.data.attributes import Attributes
from didyma.data.lists import Lists
from didyma.data.schema import FieldChoice, stacked
from didyma.data.text_columns import text_array
from didyma.errors import DataError, warn_left_out
from didyma.files import PathName


class TextRows:
    """Queries and passages of a file, or of a data frame where there is no path.

    Rows of a query need not stand together. A query is known by its id or, in files without ids,
    by its text. Labels, scores and ids are known of all rows or of none. Rows of a table stand on
    the lines that ``line_of`` tells, if they stand on lines.

    >>> rows = TextRows("pairs.tsv")
    >>> rows.add(1, "who wrote Emma?", "Jane Austen.", label=1.0)
    >>> rows.add(2, "who wrote Emma?", "It is late.", label=0.0)
    >>> lists = rows.lists()
    >>> lists.queries, lists.labels.tolist(), lists.qid.tolist()
    (['who wrote Emma?'], [1.0, 0.0], ['1', '1'])
    """

    def __init__(
        self,
        path: PathName | None,
        unit: str = "line",
        choice: FieldChoice | None = None,
        names: Mapping[str, str] | None = None,
        line_of: Callable[[int], int] | None = None,
    ) -> None:
        self.path, self._unit, self._line_of = path, unit, line_of
        self._choice, self._names = choice or FieldChoice(), names
        self.unread: dict[str, None] = {}  # fields of queries, which nobody asks for
        self._documents: dict[int, Mapping[str, Any]] = {}  # rows that are more than a text
        self._places: dict[int, tuple[int, str]] = {}  # of these: line, and what stands before
        self._taken: dict[str, str] = {}  # fields that were read, by their roles
        self._vectors: dict[int, Any] = {}  # of queries
        self._n_differing = 0  # passages that came again with other fields
        self.n_empty = 0  # queries without passages, which make no list
        self._number: dict[str, int] = {}  # of a query, by its id or text
        self._queries: list[str] = []
        self._first: dict[str, Any] = {}  # what the first row knows
        self._first_line = 0
        self._place: dict[tuple[str, str], int] = {}  # of rows that are added once
        self._query_of_row: list[int] = []
        self._texts: list[str] = []
        self._columns: dict[str, list[Any]] = {"label": [], "score": [], "docid": []}

    def __len__(self) -> int:
        return len(self._texts)

    def add(
        self,
        line: int,
        query: str,
        passage: str,
        *,
        qid: str | None = None,
        label: float | None = None,
        score: float | None = None,
        docid: str | None = None,
        document: Mapping[str, Any] | None = None,
        taken: Mapping[str, str] | None = None,
        place: str = "",
        query_vector: Any = None,
    ) -> None:
        """Add a row, which stands on a line of the file (or is a row of a table).

        A passage that is more than a text is a ``document``, without the fields that were
        ``taken`` as ids, labels and scores; ``place`` is where it stands in the line.
        """
        if not query.strip():
            self._fail(line, "query", "expected a text, found an empty one")
        qid, docid = qid or None, docid or None  # an empty field of a table
        values = {"qid": qid, "label": label, "score": score, "docid": docid}
        if not self._texts:
            self._first, self._first_line = values, line
        for name, value in values.items():
            if (value is None) != (self._first[name] is None):
                has = "none" if value is not None else "one"
                first = f"{self._unit} {self._first_line}"
                self._fail(line, name, f"expected {has}, as {first} has {has}")
        number = self._number.setdefault(qid or query, len(self._queries))
        if number == len(self._queries):
            self._queries.append(query)
        elif self._queries[number] != query:
            self._fail(line, "query", f"expected the text that query {qid} had before")
        if query_vector is not None:
            self._add_vector(line, number, query_vector)
        if document is not None:
            self._documents[len(self._texts)] = document
            self._places[len(self._texts)] = line, place
            self._taken |= taken or {}
        self._query_of_row.append(number)
        self._texts.append(passage)
        for name, column in self._columns.items():
            column.append(values[name])

    def add_once(
        self,
        line: int,
        query: str,
        passage: str,
        *,
        label: float,
        qid: str | None = None,
        docid: str | None = None,
        **others: Any,
    ) -> None:
        """The same, unless the query has the passage already: then it gets the higher label."""
        key = qid or query, docid or passage
        place = self._place.setdefault(key, len(self))
        if place < len(self):
            document = others.get("document")
            self._n_differing += document != self._documents.get(place)
            self._columns["label"][place] = max(label, self._columns["label"][place])
        else:
            self.add(line, query, passage, label=label, qid=qid, docid=docid, **others)

    def lists(self) -> Lists:
        """The list of each query."""
        if not self._texts:
            raise DataError("expected queries and passages, found none", path=self.path)
        if self.n_empty:
            warn_left_out(f"{self.n_empty} queries without passages are left out", self.path)
        if self._n_differing:
            problem = f"{self._n_differing} passages come again with other fields: the first count"
            warn_left_out(problem, self.path)
        if self.unread:
            fields = ", ".join(self.unread)
            warn_left_out(f"fields of queries that are left out: {fields}", self.path)
        texts, attributes = self._read_documents()
        has_ids = self._first["qid"] is not None
        names = list(self._number) if has_ids else [str(n + 1) for n in range(len(self._queries))]
        label, score, docid = (
            None if self._first[name] is None else column for name, column in self._columns.items()
        )
        vectors = [self._vectors.get(n) for n in range(len(self._queries))]
        return Lists(
            texts,
            None if label is None else np.array(label, np.float64),
            text_array(names)[self._query_of_row],
            None if docid is None else text_array(docid),
            queries=self._queries,
            scores=None if score is None else np.array(score, np.float64),
            attributes=attributes,
            query_vectors=stacked(vectors, lambda n: f"vector of query {names[n]}"),
        )

    def _add_vector(self, line: int, number: int, vector: Any) -> None:
        if not np.array_equal(self._vectors.setdefault(number, vector), vector):
            self._fail(line, "query_vector", "expected the vector that the query had before")

    def _read_documents(self) -> tuple[list[str], Attributes | None]:
        """Whole texts of the rows, and what else is known of them."""
        schema = self._choice.schema
        choice = any(self._choice[:3])
        if not (self._documents or choice or (schema is not None and schema.has_attributes)):
            return self._texts, None
        documents = [self._documents.get(row, text) for row, text in enumerate(self._texts)]
        try:
            return self._choice.read(
                documents,
                names=self._names,
                taken=self._taken,
                path=self.path,
                fail=self._fail_in_document,
            )
        except DataError as error:
            if error.path is not None or self.path is None:
                raise
            raise DataError(error.problem, path=self.path, field=error.field) from None

    def _fail_in_document(self, field: str, row: int, problem: str) -> NoReturn:
        line, place = self._places[row]
        self._fail(line, f"{place}, {field}" if place else field, problem)

    def _fail(self, line: int, field: str, problem: str) -> NoReturn:
        if self._line_of is not None:
            line = self._line_of(line)
        elif self._unit == "row":
            raise DataError(f"{problem}, in row {line}", path=self.path, field=field)
        raise DataError(problem, path=self.path, line=line, field=field)
