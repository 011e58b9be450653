"""Lists of candidates: the container that every reader, featuriser, ranker and measure shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import chain
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.attributes import Attributes
from didyma.data.categories import Vocabularies
from didyma.data.groups import Groups, group_rows, query_ids
from didyma.data.matrix import Columns, Matrix, as_csr, is_sparse, plain, refuse_masked
from didyma.data.schema import read_documents, read_queries
from didyma.errors import DataError
from didyma.lazy import cached_property
from didyma.values import shown

Rows: TypeAlias = "Sequence[int] | NDArray[Any]"
ROW_COLUMNS = ("labels", "qid", "docid", "scores", "losses")  # arrays with an entry for each row


@dataclass(frozen=True, eq=False)
class Lists:
    """For each query its candidates, and what is known about them: one row for each candidate.

    ``items`` are the candidates: a matrix of features (a dense or a SciPy CSR array), or a sequence
    of texts or other outputs, which a featuriser turns into one. ``qid`` says which list a row
    belongs to; without it all rows are one list, and with ``grouping`` in its place lists may be
    empty. Rows keep the order of their source.

    Of each row may be known ``labels`` (grades, or the values that a teacher gives; higher is
    better), ``losses`` (what choosing it costs), ``scores`` of the stage before, ``docid``, and
    ``attributes`` (text fields, signals, vectors); of each list, in the order of `groups`,
    ``queries`` (texts, or whatever the items are outputs of), ``query_vectors`` and ``weights``.
    ``feature_names``, ``zero_based`` and ``categories`` are as in `Columns`.

    >>> lists = Lists(np.eye(3), np.array([1.0, 0, 1]), np.array(["a", "b", "a"]))
    >>> lists
    Lists(3 rows, 3 features, 2 queries)
    >>> Lists.of_texts(["who wrote Emma?"], [["Jane Austen wrote it.", "A clock has hands."]])
    Lists(2 rows of str, 1 queries)
    """

    items: Matrix | Sequence[Any]
    labels: NDArray[np.float64] | None = None
    qid: NDArray[Any] = None  # type: ignore[assignment]  # set below
    docid: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    zero_based: bool | None = None
    _: KW_ONLY
    queries: Sequence[Any] | None = None
    scores: NDArray[np.float64] | None = None
    losses: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    grouping: Groups | None = None
    attributes: Attributes | None = None
    query_vectors: NDArray[np.float32] | None = None
    categories: Vocabularies | None = None

    @classmethod
    def of_texts(
        cls,
        queries: Sequence[Any],
        passages: Sequence[Sequence[Any]],
        labels: Sequence[ArrayLike] | None = None,
        scores: Sequence[ArrayLike] | None = None,
        docid: Sequence[Sequence[str]] | None = None,
        query_vectors: ArrayLike | None = None,
    ) -> Lists:
        """Lists with ``passages[q]`` as the candidates of ``queries[q]``, and so all others.

        Passages are texts, or mappings with a text and other fields (`didyma.data.Schema`), which
        may be labels, scores and ids as well. Queries are texts, or mappings with a text and a
        vector.
        """
        sizes = [len(candidates) for candidates in passages]
        if len(sizes) != len(queries):
            raise DataError(
                f"{len(sizes)} lists for {len(queries)} queries: expected one for each",
                field="passages",
            )
        groups = Groups.from_lists(sizes)
        beside = {
            "label": joined(labels, sizes, "labels"),
            "score": joined(scores, sizes, "scores"),
            "id": None if docid is None else np.array(list(chain.from_iterable(docid))),
        }
        documents = read_documents(list(chain.from_iterable(passages)), beside)
        texts, vectors = read_queries(queries, query_vectors)
        return cls(
            documents.texts,
            documents.labels if labels is None else beside["label"],
            docid=documents.docid if docid is None else beside["id"],
            queries=texts,
            scores=documents.scores if scores is None else beside["score"],
            grouping=groups,
            attributes=documents.attributes,
            query_vectors=vectors,
        )

    def __post_init__(self) -> None:
        if is_sparse(self.items):
            object.__setattr__(self, "items", as_csr(self.items))
        for name in ("labels", "qid", "docid", "scores", "losses", "weights"):
            if isinstance(getattr(self, name), (list, tuple)):
                object.__setattr__(self, name, np.array(getattr(self, name)))
        if self._is_matrix:
            object.__setattr__(self, "items", plain(self.items))
            self._check_matrix()
        elif self.feature_names is not None:
            raise DataError("only the columns of a matrix have names", field="feature_names")
        n_rows = len(self)
        if self.grouping is not None and len(self.grouping.rows) != n_rows:
            n_grouped = len(self.grouping.rows)
            raise DataError(f"expected {n_rows} rows, found {n_grouped}", field="grouping")
        if self.qid is None:
            groups = self.grouping or group_rows(n_rows)
            object.__setattr__(self, "qid", groups.names[groups.codes])
        labels = "y" if self._is_matrix else "labels"  # what files and scikit-learn call them
        numbers = {labels: self.labels, "scores": self.scores, "losses": self.losses}
        for name, column in {**numbers, "qid": self.qid, "docid": self.docid}.items():
            refuse_masked(column, name)
            if column is not None and column.shape != (n_rows,):
                raise DataError(f"expected {n_rows} values, found shape {column.shape}", field=name)
        if self.grouping is None:
            query_ids(self.qid)  # a row of no query would be written as one
        for name, column in {**numbers, "weights": self.weights}.items():
            if column is not None and not _are_finite(column):
                raise DataError("expected finite numbers", field=name)
        if self.losses is not None and np.any(self.losses < 0):
            raise DataError("expected losses of 0 or more", field="losses")
        if self.attributes and len(self.attributes) != n_rows:
            raise DataError(
                f"expected {n_rows} rows, found {len(self.attributes)}", field="attributes"
            )
        of_lists = {"queries": self.queries, "weights": self.weights}
        for name, values in {**of_lists, "query_vectors": self.query_vectors}.items():
            refuse_masked(values, name)
            if values is not None and len(values) != len(self.groups):
                raise DataError(
                    f"{len(values)} for {len(self.groups)} lists: expected one for each", field=name
                )

    def _check_matrix(self) -> None:
        X = self.X
        refuse_masked(X, "X")
        if not (X.ndim == 2 and X.dtype.kind in "biuf"):
            raise DataError(
                f"expected a matrix of numbers, found {X.dtype} of shape {X.shape}", field="X"
            )
        if self.feature_names is not None and len(self.feature_names) != X.shape[1]:
            raise DataError(
                f"{len(self.feature_names)} names for {X.shape[1]} features", field="feature_names"
            )
        if self.categories is not None and len(self.categories) != X.shape[1]:
            raise DataError(
                f"{len(self.categories)} entries for {X.shape[1]} features", field="categories"
            )

    def __len__(self) -> int:
        return int(self.X.shape[0]) if self._is_matrix else len(self.items)

    def __repr__(self) -> str:
        if self._is_matrix:
            rows, features = self.X.shape
            what = f"{rows} rows, {features} features"
        else:
            kinds = sorted({type(item).__name__ for item in self.items})
            what = (
                " or ".join([f"{len(self)} rows of {kinds[0]}", *kinds[1:]]) if kinds else "empty"
            )
        return f"Lists({what}, {len(self.groups)} queries)"

    @property
    def _is_matrix(self) -> bool:
        items: Any = self.items
        return isinstance(items, np.ndarray) or (hasattr(items, "dtype") and items.ndim == 2)

    @property
    def X(self) -> Matrix:
        """The matrix of features."""
        if not self._is_matrix:
            raise DataError("expected a matrix: a featuriser makes one of these", field="items")
        return cast("Matrix", self.items)

    @property
    def y(self) -> NDArray[np.float64]:
        """The labels, which must be known."""
        if self.labels is None:
            raise DataError("expected judged lists, found no labels", field="labels")
        return self.labels

    @property
    def texts(self) -> list[str]:
        """The items, which must be texts."""
        if self._is_matrix:
            raise DataError("expected texts, found a matrix", field="items")
        for row, text in enumerate(self.items):
            if not isinstance(text, str):
                number = self.groups.codes[row]
                place = int((self.groups.codes[:row] == number).sum())
                raise DataError(_expected_text(text), field=f"query {number}, passage {place}")
        return list(self.items)

    def document(self, row: int) -> dict[str, Any]:
        """The text of a row with its fields, signals and vector, as `of_texts` reads it."""
        rest = {} if self.attributes is None else self.attributes.document(row)
        if self.attributes is not None and self.attributes.fields:
            return rest
        return {"text": self.items[row], **rest}

    @property
    def query_texts(self) -> list[str]:
        """The queries, which must be known, and texts."""
        if self.queries is None:
            raise DataError("expected the text of each query, found none", field="queries")
        for number, query in enumerate(self.queries):
            if not isinstance(query, str):
                raise DataError(_expected_text(query), field=f"query {number}")
        return list(self.queries)

    @property
    def features(self) -> Columns:
        """What the columns are, which other data and models can be compared with."""
        return Columns(self.X.shape[1], self.feature_names, self.zero_based, self.categories)

    @cached_property
    def groups(self) -> Groups:
        """Which rows belong to which list."""
        return Groups.from_qid(self.qid) if self.grouping is None else self.grouping

    @property
    def mixed(self) -> NDArray[np.bool_]:
        """Whether each list has rows of label 1 or more and others, so that their order matters."""
        return self.groups.mixed(self.y >= 1)

    def gathered(self) -> Lists:
        """The same with the rows of each list together, list after list."""
        if np.array_equal(self.groups.rows, np.arange(len(self))):
            return self
        return self.select_lists(np.arange(len(self.groups)))

    def loss_of(self, choice: NDArray[np.int64]) -> NDArray[np.float64]:
        """The loss of the row of each list that stands at this place; 0 for none (−1).

        >>> lists = Lists(np.eye(3), losses=np.array([2.0, 0, 1]))
        >>> lists.loss_of(lists.groups.choose([0.1, 0.2, 0.3])).tolist()
        [1.0]
        """
        if self.losses is None:
            raise DataError("expected a loss for each candidate, found none", field="losses")
        if not len(self):
            return np.zeros(choice.shape)
        axes = (slice(None),) + (None,) * (choice.ndim - 1)
        places = self.groups.starts[:-1][axes] + choice
        return np.where(choice >= 0, self.losses[self.groups.rows[np.maximum(places, 0)]], 0.0)

    def with_items(self, items: Any, feature_names: Sequence[str] | None = None) -> Lists:
        """The same lists of other items, such as their features."""
        names = None if feature_names is None else tuple(feature_names)
        return replace(self, items=items, feature_names=names, zero_based=None, categories=None)

    def select(self, rows: Rows) -> Lists:
        """The same lists restricted to some rows (indices or a mask); empty ones disappear."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        groups = Groups.from_qid(self.groups.codes[rows])
        return self._part(rows, groups.names, groups)

    def select_lists(self, numbers: Rows) -> Lists:
        """Some of the lists, by their numbers, in this order."""
        groups = self.groups
        numbers = np.asarray(numbers, dtype=np.int64)
        parts = [groups.rows_of(n) for n in numbers.tolist()]
        rows = np.concatenate([np.empty(0, np.int64), *parts])
        return self._part(rows, numbers, Groups.from_lists(groups.sizes[numbers]))

    def of_rows(self, rows: slice | NDArray[Any]) -> dict[str, Any]:
        """What is known of some rows besides their items, by the names of the fields."""
        columns = {name: getattr(self, name) for name in (*ROW_COLUMNS, "attributes")}
        return {name: None if values is None else values[rows] for name, values in columns.items()}

    def _part(self, rows: NDArray[Any], numbers: NDArray[Any], groups: Groups) -> Lists:
        """Those rows, which form these lists; ``numbers`` are those that the lists have here."""
        named = replace(groups, names=self.groups.names[numbers])
        return replace(
            self,
            items=self.X[rows] if self._is_matrix else [self.items[row] for row in rows.tolist()],
            **self.of_rows(rows),
            queries=None if self.queries is None else [self.queries[n] for n in numbers.tolist()],
            weights=None if self.weights is None else self.weights[numbers],
            query_vectors=None if self.query_vectors is None else self.query_vectors[numbers],
            grouping=None if self.grouping is None else named,
        )


def _expected_text(value: object) -> str:
    return f"expected a text, found {shown(value)}"


def _are_finite(column: NDArray[Any]) -> bool:
    return column.dtype.kind in "biuf" and bool(np.isfinite(column).all())


def joined(
    values: Sequence[ArrayLike] | None, sizes: Iterable[int], field: str
) -> NDArray[np.float64] | None:
    """Numbers of all lists in one array, which must have the sizes of the lists."""
    if values is None:
        return None
    sizes = list(sizes)
    if len(values) != len(sizes):
        raise DataError(f"{len(values)} lists for {len(sizes)} queries", field=field)
    parts = [np.empty(0)]
    for number, (numbers, size) in enumerate(zip(values, sizes)):
        refuse_masked(numbers, field)
        try:
            part = np.asarray(numbers, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError(f"expected numbers in list {number}", field=field) from None
        if part.shape != (size,):
            size_found = part.shape[0] if part.ndim == 1 else f"shape {part.shape}"
            raise DataError(
                f"expected {size} values in list {number}, found {size_found}", field=field
            )
        if not _are_finite(part):
            raise DataError(f"expected finite numbers in list {number}", field=field)
        parts.append(part)
    return np.concatenate(parts)


def judgements(
    X: Any, y: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None
) -> tuple[Any, Any]:
    """``y`` and ``qid``, which `Lists` in place of ``X`` bring along."""
    if not isinstance(X, Lists):
        return y, qid
    if not (y is None and qid is None and group is None):
        raise DataError("lists have a y and a qid already: give no others")
    return X.labels, X.qid


def high_level(grades: NDArray[np.float64]) -> float:
    """The grade from which rows may count as relevant: the last but one, of two the higher.

    >>> high_level(np.array([1.0, 5.0, 3.0, 2.0, 4.0])), high_level(np.array([2.0, 3.0]))
    (4.0, 3.0)
    """
    levels = np.unique(grades)
    return float(levels[-2] if len(levels) > 2 else levels[-1])
