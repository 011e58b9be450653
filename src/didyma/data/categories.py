"""Categories that are texts: a matrix has the place of each in the vocabulary of its column."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.text_columns import check_distinct
from didyma.errors import DataError
from didyma.values import shown

if TYPE_CHECKING:
    from didyma.data.lists import Lists

Vocabulary: TypeAlias = "tuple[str, ...]"
Vocabularies: TypeAlias = "tuple[Vocabulary | None, ...]"  # of columns; None of one of numbers

# Types of the columns of data frames, in the words of pandas, of PyArrow within it, and of Polars.
CATEGORIES = re.compile(r"category|Categorical|Enum|dictionary<")
TIMES = re.compile(r"date|time|duration|period", re.IGNORECASE)

UNSEEN = -1.0  # in the place of a text that the vocabulary lacks
TRUTH = {"true": 1.0, "false": 0.0}
NUMBERS_FOUND = "held texts in training, not numbers"
TEXTS_FOUND = "held numbers in training, not texts"


class TextFoundError(DataError):
    """A text where a number is expected."""


def number_in(text: str) -> float:
    """The finite number that a text says, 1 for true and 0 for false; NaN if it is none of these.

    >>> number_in("2.5"), number_in("True"), number_in("acme")
    (2.5, 1.0, nan)
    """
    if (truth := TRUTH.get(text.strip().lower())) is not None:
        return truth
    try:  # float() also takes 1_000, and digits of other scripts
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def are_numbers(texts: Iterable[str]) -> bool:
    """Whether each text says a number."""
    return not any(math.isnan(number_in(text)) for text in texts)


def codes_of(texts: Iterable[str | None], vocabulary: Sequence[str]) -> NDArray[np.float64]:
    """The place of each text in the vocabulary; `UNSEEN` if it is not there, NaN for none.

    >>> codes_of(["b", "c", None], ("a", "b")).tolist()
    [1.0, -1.0, nan]
    """
    return _look_up_texts(texts, {text: k for k, text in enumerate(vocabulary)})


def _look_up_texts(texts: Iterable[str | None], place_of: Mapping[str, int]) -> NDArray[np.float64]:
    places = (math.nan if text is None else place_of.get(text, UNSEEN) for text in texts)
    return np.fromiter(places, np.float64)


def _look_up(codes: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of each code, where unseen and missing ones stay what they are."""
    looked_up, seen = codes.astype(np.float64), codes >= 0
    looked_up[seen] = values[codes[seen].astype(np.int64)]
    return looked_up


def text_of(code: float, vocabulary: Sequence[str] | None) -> str | float:
    """What to call a value: the text of a category, any other number itself."""
    if vocabulary is None or math.isnan(code):
        return code
    return "(unseen)" if code == UNSEEN else vocabulary[int(code)]


def as_text(value: Any) -> str:
    """A text, or what says a number: the same for 3 and 3.0."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def texts_among(values: Sequence[Any], field: str) -> set[str]:
    """The texts of a column, which has either texts or numbers, be they written as texts.

    The number 3 among other texts could be "3", "3.0" or "03".
    """
    texts = {value for value in values if isinstance(value, str)}
    others = [value for value in values if not (value is None or isinstance(value, str))]
    for value in others:
        if not isinstance(value, Number):
            problem = f"expected categories that are texts or numbers: found {shown(value)}"
            raise DataError(problem, field=field)
    if others and not are_numbers(texts):
        raise DataError(f"expected either texts or numbers: found {shown(others[0])}", field=field)
    return texts


class Numbering:
    """Texts of a column, numbered as they come or by a vocabulary; a blank one is missing.

    >>> numbering = Numbering("brand")
    >>> numbering.codes(["b", "a", "", "b"]).tolist(), numbering.vocabulary
    ([0.0, 1.0, nan, 0.0], ('b', 'a'))
    """

    def __init__(self, name: str, vocabulary: Sequence[str] | None = None) -> None:
        self.name, self.learns = name, vocabulary is None
        self._place_of = {text: k for k, text in enumerate(dict.fromkeys(vocabulary or ()))}
        self._expects_letters = not any(are_numbers([text]) for text in self._place_of)

    @property
    def vocabulary(self) -> Vocabulary:
        """The texts, each at the place that is its number."""
        return tuple(self._place_of)

    def codes(self, values: Iterable[Any]) -> NDArray[np.float64]:
        """The number of each value as text; they are either texts or numbers."""
        present = _present(values)
        texts_among(present, self.name)
        column = [None if value is None else as_text(value) for value in present]
        distinct = [text for text in dict.fromkeys(column) if text is not None]
        if self.learns:
            for text in distinct:
                self._place_of.setdefault(text, len(self._place_of))
        elif distinct and self._expects_letters and are_numbers(distinct):
            raise DataError(NUMBERS_FOUND, field=self.name)
        return _look_up_texts(column, self._place_of)


def settled(lists: Lists) -> Lists:
    """The same with each vocabulary in the order of the alphabet.

    A column whose texts are all numbers has these numbers instead.
    """
    if lists.categories is None:
        return lists
    X, vocabularies = np.array(lists.X), list(lists.categories)
    for j, vocabulary in enumerate(lists.categories):
        if vocabulary is None:
            continue
        if are_numbers(vocabulary):
            vocabularies[j], values = None, np.array([*map(number_in, vocabulary)])
        else:
            vocabularies[j] = ordered = tuple(sorted(vocabulary))
            values = codes_of(vocabulary, ordered)
        X[:, j] = _look_up(X[:, j], values)
    return replace(lists, items=X, categories=or_none(vocabularies))


def renumbered(lists: Lists, wanted: Vocabularies | None, names: Sequence[str]) -> Lists:
    """The same with codes by these vocabularies; ``names`` of columns are what errors name."""
    from didyma.data.matrix import dense  # which imports this module

    if lists.categories == wanted:
        return lists
    X = np.array(dense(lists.X))
    present = lists.categories or (None,) * len(names)
    for j, (vocabulary, other) in enumerate(zip(wanted or (None,) * len(names), present)):
        if vocabulary is not None and other is not None:
            X[:, j] = _look_up(X[:, j], codes_of(other, vocabulary))
        elif vocabulary is not other and not np.isnan(X[:, j]).all():
            problem = TEXTS_FOUND if vocabulary is None else NUMBERS_FOUND
            raise DataError(problem, field=f"column {names[j]!r}")
    return replace(lists, items=X, categories=wanted)


def or_none(vocabularies: Iterable[Vocabulary | None]) -> Vocabularies | None:
    """Vocabularies of columns, None if all hold numbers."""
    each = tuple(vocabularies)
    return each if any(vocabulary is not None for vocabulary in each) else None


def is_frame(X: Any) -> bool:
    """Whether this is a data frame (pandas, Polars)."""
    return all(hasattr(X, name) for name in ("shape", "columns", "dtypes"))


def check_frame(frame: Any) -> None:
    """Refuse columns of one name, and dates and times, whose numbers would be those of a clock."""
    check_distinct(list(frame.columns))
    for name, dtype in zip(frame.columns, frame.dtypes):
        if TIMES.match(str(dtype)):
            raise DataError(f"expected numbers, found {dtype}", field=f"column {name!r}")


def category_columns(X: Any) -> dict[int, Any]:
    """Names of a data frame's columns of categories, by their places."""
    if not is_frame(X):
        return {}
    return {
        place: name
        for place, (name, dtype) in enumerate(zip(X.columns, X.dtypes))
        if CATEGORIES.match(str(dtype))
    }


def refuse_texts(frame: Any) -> None:
    """Say which column of a data frame holds no numbers, and what could be done about texts."""
    for name in frame.columns:
        for value in _present(np.asarray(frame[name]).tolist()):
            if (problem := _problem(value, None)) is not None:
                advice = f": texts can be categories, AdditiveSVMRanker(categorical=[{name!r}])"
                problem = f"expected numbers, found {shown(value)}"
                problem += advice if isinstance(value, str) else ""
                raise DataError(problem, field=f"column {name!r}")


def number_frame(
    frame: Any, names: Iterable[Any], vocabulary_of: Mapping[Any, Vocabulary] | None = None
) -> tuple[Any, dict[Any, Vocabulary]]:
    """A data frame (pandas, Polars) with codes for the texts of some columns, and vocabularies.

    These are learned if none are given. Texts that are all numbers are taken for these.

    >>> import pandas
    >>> number_frame(pandas.DataFrame({"brand": ["b", None, "a"]}), ["brand"])[1]
    {'brand': ('a', 'b')}
    """
    columns, vocabularies = dict[Any, NDArray[np.float64]](), dict[Any, Vocabulary]()
    for name in names:
        column, field = np.asarray(frame[name]), f"column {name!r}"
        vocabulary = None if vocabulary_of is None else vocabulary_of.get(name)
        if vocabulary is None and column.dtype.kind in "biuf":
            continue
        values = _present(column.tolist())
        texts = texts_among(values, field)
        if vocabulary_of is None and not are_numbers(texts):
            vocabulary = tuple(sorted(texts))
        for value in values:
            if (problem := _problem(value, vocabulary)) is not None:
                raise DataError(f"{problem}: found {shown(value)}", field=field)
        if vocabulary is None:
            columns[name] = np.array([*map(_number, values)], np.float64)
        else:
            columns[name] = Numbering(field, vocabulary).codes(values)
            vocabularies[name] = vocabulary
    return _replaced(frame, columns), vocabularies


def _present(values: Iterable[Any]) -> list[Any]:
    """The values of a column, None for each that is missing."""
    return [None if is_missing(value) else value for value in values]


def _number(value: Any) -> float:
    """A number, also one as text; NaN for None, and for any other text."""
    if value is None or isinstance(value, str):
        return number_in(value or "")
    return float(value)


def _problem(value: Any, vocabulary: Vocabulary | None) -> str | None:
    """What speaks against a value of a column of categories, if anything does."""
    if value is None or (isinstance(value, str) and vocabulary is not None):
        return None
    if isinstance(value, str):
        return None if are_numbers([value]) else TEXTS_FOUND
    if not isinstance(value, Number):
        return "expected categories that are texts or numbers"
    return None if vocabulary is None else NUMBERS_FOUND


def _replaced(frame: Any, columns: Mapping[Any, NDArray[np.float64]]) -> Any:
    """A data frame with other columns of the same names."""
    if not columns:
        return frame
    if hasattr(frame, "with_columns"):
        return frame.with_columns(
            [type(frame[name])(name, values) for name, values in columns.items()]
        )
    frame = frame.copy(deep=False)
    for name, values in columns.items():
        frame[name] = values
    return frame


def is_missing(value: Any) -> bool:
    """Whether this is a blank text, or what a data frame has in the place of a value."""
    if isinstance(value, str):
        return not value.strip()
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ == "NAType"  # of pandas
