"""What a field of documents is, by its name and its values, and its values as a column.

Most columns are of one type, which is read at once; all others value by value, which tells what is
wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from math import isfinite, isnan
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from didyma.data.column_roles import assign, known_as
from didyma.data.passage import TEXT, Fail
from didyma.errors import DataError
from didyma.values import kind_of

FailInRow = Callable[[int, str], NoReturn]  # raises the error about a row and a problem

MAIN, TITLE, FIRST_STAGE = "main", "title", "first stage"  # kinds of texts and of signals

MOST_CATEGORIES = 50  # distinct values
LEAST_COUNT = 3  # of a category, in the mean
LONGEST_ID = 64
VECTOR_NAMES = ("vector", "vectors", "embedding", "embeddings", "densevector")
TRUTH = {"true": 1.0, "false": 0.0}
NUMBERS = {float, int, bool, type(None)}  # types of columns that are read at once
VECTORS = {list, tuple, np.ndarray}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_ID = re.compile(r"(?i:(?:^|[_\-\s.])(?:id|uid|uuid|guid|doi|isbn|pmid))$|[a-z](?:Id|ID)$")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*", re.DOTALL)


class FieldKind(NamedTuple):
    """The role of a field, why, and what else is known of it (see `didyma.data.schema`)."""

    role: str
    reason: str
    kind: str = ""
    dimension: int = 0


class Column(NamedTuple):
    """The values of a field, those that are there, and the document of each.

    ``fail(row, problem)`` raises the error that names document and field; ``n_texts`` is the number
    of different documents.
    """

    name: str
    rows: Sequence[int]
    values: Sequence[Any]
    n_documents: int
    n_texts: int
    fail: FailInRow


def is_missing(value: Any) -> bool:
    """Whether this stands for no value: None, NaN, an empty text or list.

    >>> [is_missing(value) for value in (None, float("nan"), " ", [], 0, False)]
    [True, True, True, True, False, False]
    """
    if type(value) is float:  # as most signals are
        return isnan(value)
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, (list, tuple, Mapping, np.ndarray)):
        return len(value) == 0
    return value is None or (isinstance(value, (float, np.floating)) and isnan(value))


def classify(column: Column) -> FieldKind:
    """The role of a field by its values."""
    kinds = [_kind(value) for value in column.values]
    if not kinds:
        return FieldKind("ignored", "always empty")
    if (other := next((n for n, kind in enumerate(kinds) if kind != kinds[0]), None)) is not None:
        value = column.values[other]
        column.fail(
            column.rows[other],
            f"expected a {kinds[0]}, as other documents have, found {kind_of(value)} {value!r:.40}",
        )
    classifiers = {"number": _numbers, "text": _texts, "date": _dates, "list": _lists}
    classifiers["list of numbers"] = _vectors
    if (classifier := classifiers.get(kinds[0])) is None:
        return FieldKind("ignored", f"a {kinds[0]}")
    return classifier(column)


def _kind(value: Any) -> str:
    if isinstance(value, (bool, np.bool_, Real, Decimal)):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, date):
        return "date"
    if isinstance(value, np.ndarray):
        return "list of numbers" if value.ndim == 1 and value.dtype.kind in "iuf" else "list"
    if isinstance(value, (list, tuple)):
        numbers = all(isinstance(one, Real) and not isinstance(one, bool) for one in value)
        return "list of numbers" if numbers else "list"
    return "nested object" if isinstance(value, Mapping) else f"value of type {kind_of(value)}"


def _numbers(column: Column) -> FieldKind:
    numbers = [number_in(value, column.fail, row) for row, value in zip(column.rows, column.values)]
    if _is_constant(column, numbers):
        return FieldKind("ignored", "the same in all documents")
    if _ID.search(column.name) and all(number == int(number) for number in numbers):
        return FieldKind("ignored", "an id, by its name")
    is_truth = all(isinstance(value, (bool, np.bool_)) for value in column.values)
    return FieldKind("signal", "true or false" if is_truth else "numbers")


def _texts(column: Column) -> FieldKind:
    values = [value.strip() for value in column.values]
    distinct = set(values)
    if _is_constant(column, values):
        return FieldKind("ignored", "the same in all documents")
    is_word = not any(any(sign in value for sign in " \t\n/") for value in distinct)
    if _ID.search(column.name) and is_word:
        return FieldKind("ignored", "an id, by its name")
    numeric = [_is_number(value) for value in values]
    if all(numeric):
        for row, value in zip(column.rows, values):
            number_in(value, column.fail, row)
        return FieldKind("signal", "numbers")
    if sum(numeric) > len(values) / 2:
        wrong = numeric.index(False)
        column.fail(
            column.rows[wrong],
            f"expected a number, as most documents have, found {values[wrong]!r:.40}",
        )
    if all(value.lower() in TRUTH for value in distinct):
        return FieldKind("signal", "true or false")
    if all(_DATE.fullmatch(value) for value in distinct):
        if all(days_since_1970(value) is not None for value in distinct):
            return FieldKind("signal", "dates, in days since 1970", "date")
        return FieldKind("ignored", "dates that are not written as 2024-12-31")
    if is_word and len(distinct) == column.n_texts > 1 and max(map(len, distinct)) <= LONGEST_ID:
        return FieldKind("ignored", "an id: one word, another one in each document")
    is_short = all(len(value.split()) <= 2 for value in distinct)
    if is_short and len(distinct) <= min(MOST_CATEGORIES, len(values) / LEAST_COUNT):
        return FieldKind("category", f"{len(distinct)} values that occur again and again")
    return FieldKind("text", "texts")


def _dates(column: Column) -> FieldKind:
    if _is_constant(column, column.values):
        return FieldKind("ignored", "the same in all documents")
    return FieldKind("signal", "dates, in days since 1970", "date")


def _lists(column: Column) -> FieldKind:
    if all(isinstance(one, str) for value in column.values for one in value):
        return FieldKind("text", "lists of texts")
    return FieldKind("ignored", "lists of neither texts nor numbers")


def _vectors(column: Column) -> FieldKind:
    sizes = [len(value) for value in column.values]
    is_named = column.name.lower().replace("_", "").replace("-", "") in VECTOR_NAMES
    if (other := next((n for n, size in enumerate(sizes) if size != sizes[0]), None)) is not None:
        if is_named:
            column.fail(
                column.rows[other],
                f"expected {sizes[0]} numbers, as other vectors have, found {sizes[other]}",
            )
        return FieldKind("ignored", "lists of numbers of different lengths")
    if sizes[0] == 1 and not is_named:
        return FieldKind("ignored", "lists of one number")
    for row, value in zip(column.rows, column.values):
        vector_in(value, column.fail, row, sizes[0])
    reason = "a vector, by its name" if is_named else "lists of numbers of one length"
    return FieldKind("vector", reason, "named" if is_named else "", sizes[0])


def _is_constant(column: Column, values: Sequence[Any]) -> bool:
    return len(values) == column.n_documents and all(value == values[0] for value in values)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def days_since_1970(value: Any) -> float | None:
    """Days since 1970 of a date as ISO 8601 writes it; a time without a zone is that of UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, date):
        return None
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - EPOCH).total_seconds() / 86400


def date_of(days: float) -> str:
    """The moment that is so many days after 1970 began, as ISO 8601 writes it.

    >>> date_of(days_since_1970("2024-12-31"))
    '2024-12-31T00:00:00+00:00'
    """
    return (EPOCH + timedelta(days=days)).isoformat()


def number_in(value: Any, fail: FailInRow, row: int, kind: str = "") -> float:
    """A signal of a document: a number, a truth, a date, or one of these as text."""
    if isinstance(value, date) or (kind == "date" and isinstance(value, str)):
        if (days := days_since_1970(value)) is None:
            fail(row, f"expected a date as 2024-12-31, found {value!r:.40}")
        return days
    number = None
    if isinstance(value, str):
        text = value.strip()
        number = float(text) if _is_number(text) else TRUTH.get(text.lower())
    elif isinstance(value, (bool, np.bool_, Real, Decimal)):
        try:
            number = float(value)
        except OverflowError:
            number = np.inf
    if number is None or not isfinite(number):
        fail(row, f"expected a finite number or none, found {value!r:.40}")
    return number


def vector_in(value: Any, fail: FailInRow, row: int, dimension: int) -> NDArray[np.float32]:
    """A vector of a document."""
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != dimension:
        size = len(value) if isinstance(value, (list, tuple, np.ndarray)) else f"{value!r:.40}"
        fail(row, f"expected a vector of {dimension} numbers, found {size}")
    try:
        with np.errstate(over="ignore"):  # what is too great is told below
            vector = np.asarray(value, np.float32)
    except (TypeError, ValueError, OverflowError):
        vector = np.empty(0, np.float32)
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        fail(row, f"expected a vector of finite numbers, found {value!r:.40}")
    return vector


def text_in(value: Any, fail: FailInRow, row: int) -> str:
    """The text of a field; several are joined by spaces."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    if not isinstance(value, (Real, Decimal, date)):
        fail(row, f"expected a text, found {kind_of(value)} {value!r:.40}")
    return str(value)


def text_column(values: Sequence[Any], name: str, fail: Fail) -> list[str]:
    """Texts, empty ones where there are none."""
    if set(map(type, values)) <= {str}:
        return list(values)
    failed = partial(fail, name)
    return [
        "" if value is None else text_in(value, failed, row) for row, value in enumerate(values)
    ]


def number_column(values: Sequence[Any], name: str, kind: str, fail: Fail) -> NDArray[np.float64]:
    """Numbers, NaN where there are none."""
    if set(map(type, values)) <= NUMBERS:
        try:
            numbers = np.array(values, np.float64)
        except OverflowError:
            numbers = np.array([np.inf])
        if not np.isinf(numbers).any():
            return numbers
    failed = partial(fail, name)
    numbers = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if not is_missing(value):
            numbers[row] = number_in(value, failed, row, kind)
    return numbers


def category_column(values: Sequence[Any], name: str, fail: Fail) -> NDArray[Any]:
    """Texts without spaces around them, None where there are none."""
    failed = partial(fail, name)
    column = np.empty(len(values), object)
    for row, value in enumerate(values):
        column[row] = None if is_missing(value) else text_in(value, failed, row).strip()
    return column


def vector_column(
    values: Sequence[Any], name: str, dimension: int, fail: Fail
) -> NDArray[np.float32]:
    """Vectors as rows, NaN where there are none."""
    if set(map(type, values)) <= VECTORS:
        try:
            with np.errstate(over="ignore"):  # what is too great is told below
                vectors = np.array(values, np.float32)
        except (TypeError, ValueError, OverflowError):
            vectors = np.empty(0, np.float32)
        if vectors.shape == (len(values), dimension) and np.isfinite(vectors).all():
            return vectors
    failed = partial(fail, name)
    vectors = np.full((len(values), dimension), np.nan, np.float32)
    for row, value in enumerate(values):
        if not is_missing(value):
            vectors[row] = vector_in(value, failed, row, dimension)
    return vectors


JUDGED = "judged"  # how a label came about: never to be learned from
BESIDE = "given beside the documents"
ROLES = {"passage": MAIN, "title": TITLE}
PARTS = tuple(ROLES)  # of the text
DOCUMENT_ROLES = (*PARTS, "docid", "label", "score")
ID_NAMES = {"docid": ("id", "_id")}
RETRIEVAL = re.compile(
    r"bm25|tf.?idf|splade|colbert|cosine|similarity|dense|semantic|lexical|retriev", re.IGNORECASE
)


def infer_kinds(
    documents: Sequence[Mapping[str, Any]],
    wanted: Mapping[str, Iterable[str] | None],
    names: Mapping[str, str],
    taken: Mapping[str, str] | None,
    fail: Fail,
) -> dict[str, FieldKind]:
    """What each field is; ``wanted`` are names by what the caller says that they are.

    All else is as in `didyma.data.Schema.infer`.
    """
    columns: dict[str, list[int]] = {}
    for row, document in enumerate(documents):
        for name in document:
            columns.setdefault(name, []).append(row)
    role_asked = _asked(wanted, [*columns, *(taken or {})])
    free = [name for name in columns if role_asked.get(name, "text") == "text"]
    named = {role: name for role, name in names.items() if name in columns}
    roles = assign(free, DOCUMENT_ROLES if taken is None else PARTS, named, ID_NAMES)
    role_of = {name: role for role, name in roles.items()}
    n_texts = len({str(document.get(roles.get("passage", TEXT))) for document in documents})
    kinds: dict[str, FieldKind] = {}
    for name, rows in columns.items():
        rows = [row for row in rows if not is_missing(documents[row][name])]
        values = [documents[row][name] for row in rows]
        column = Column(name, rows, values, len(documents), n_texts, partial(fail, name))
        kinds[name] = _kind_of(column, role_asked.get(name), role_of.get(name))
    for name, role in (taken or {}).items():
        reason = BESIDE if role == "ignored" else "by its name"
        kinds.setdefault(name, FieldKind(role, reason, "asked"))
    return _one_vector(kinds)


def _asked(wanted: Mapping[str, Iterable[str] | None], present: Sequence[str]) -> dict[str, str]:
    """The role that the caller gives to each field."""
    role_of: dict[str, str] = {}
    for role, names in wanted.items():
        for name in names or ():
            if name not in present:
                raise DataError(f"no such field among {', '.join(present) or 'texts'}", field=name)
            if role_of.setdefault(name, role) != role:
                raise DataError(f"expected one role, found {role_of[name]} and {role}", field=name)
    return role_of


def _kind_of(column: Column, asked: str | None, role: str | None) -> FieldKind:
    if asked == "ignored":
        return FieldKind("ignored", "as you say", "asked")
    if role in ROLES:
        for row, value in zip(column.rows, column.values):
            text_in(value, column.fail, row)
        return FieldKind("text", f"the {'text' if role == 'passage' else role}", ROLES[role])
    if asked == "text":
        for row, value in zip(column.rows, column.values):
            text_in(value, column.fail, row)
        return FieldKind("text", "as you say")
    if role is not None:
        return FieldKind("id" if role == "docid" else role, "by its name")
    if asked == "signal":
        return _signal_kind(column)
    if column.name == JUDGED:
        return FieldKind("ignored", "how the label came about", "asked")
    if known_as("label", [column.name]) is not None:
        return FieldKind("ignored", "a label, by its name")
    if known_as("docid", [column.name], ID_NAMES["docid"]) is not None:
        return FieldKind("ignored", "an id, by its name")
    return _first_stage(column.name, classify(column))


def _first_stage(name: str, kind: FieldKind) -> FieldKind:
    if kind.role == "signal" and kind.reason == "numbers" and RETRIEVAL.search(name):
        return kind._replace(reason="numbers, the score of a retrieval", kind=FIRST_STAGE)
    return kind


def _signal_kind(column: Column) -> FieldKind:
    """That of a field which the caller calls a signal, though it may be constant, or an id."""
    if column.values and all(isinstance(value, str) for value in column.values):
        by_value = classify(column._replace(name="", n_documents=-1, n_texts=-1))
        if by_value.role == "signal":
            return _first_stage(
                column.name, by_value._replace(reason=f"as you say: {by_value.reason}")
            )
        return FieldKind("category", "as you say")
    for row, value in zip(column.rows, column.values):
        number_in(value, column.fail, row)
    kind = FIRST_STAGE if RETRIEVAL.search(column.name) else ""
    return FieldKind("signal", "as you say", kind)


def _one_vector(kinds: dict[str, FieldKind]) -> dict[str, FieldKind]:
    """The same with one vector: the one that is called so, or the first."""
    vectors = [name for name, kind in kinds.items() if kind.role == "vector"]
    first, *others = sorted(vectors, key=lambda name: not kinds[name].kind) or [""]
    return kinds | {name: FieldKind("ignored", f"a vector beside {first}") for name in others}
