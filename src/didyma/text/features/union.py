"""Features of texts: a reader and parts that share what it reads, as documents call for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from didyma.data.attributes import Attributes
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.schema import Schema
from didyma.errors import DataError
from didyma.execution import check_interruption
from didyma.learning.scoring import standard_in_query
from didyma.model import Saved, State
from didyma.ranking.featuriser import Featuriser, Windowed
from didyma.text.features.digests import concepts_with_places
from didyma.text.features.extended import ExtendedFeatures
from didyma.text.features.meaning import NO_VECTOR, Meaning
from didyma.text.features.part import IN_LIST, RRF, FirstStage, Part, reciprocal_ranks
from didyma.text.features.reading import Reader, Reading, cut_windows
from didyma.text.features.signals import Signals
from didyma.text.features.small import FieldOverlaps, SmallFeatures
from didyma.text.features.word_vectors import WORDLLAMA, WordVectors

SHORT = 80  # characters of a text field that is embedded beside the whole text

AnyPart = TypeVar("AnyPart", bound=Part)


class TextFeatures(Featuriser):
    """Features of queries and passages.

    >>> passages = [["Jane Austen wrote Emma.", "A clock has two hands."]]
    >>> lists = Lists.of_texts(["who wrote Emma?"], passages)
    >>> features = TextFeatures([SmallFeatures()]).fit(lists)
    >>> X = features.transform(lists)
    >>> X.shape == (2, len(features.names)) and bool((X[0, :14] > X[1, :14]).all())
    True

    Parameters
    ----------
    parts : sequence of Part
        Their columns stand side by side; the texts are read once for all of them.
    language : str or None
        Of the stop words and stems, or several ("english,russian"), of which each word is then of
        one; "auto" finds them by counting stop words in `fit`, None does without both.
    window : int, optional
        `windowed` cuts passages of more words than this into windows of so many.
    relative : sequence of str
        Columns that stand there once more as "… in list": in deviations from their mean over the
        passages of the query.
    reciprocal : sequence of str
        Columns that stand there once more as "… rrf": 1 / (60 + rank) within the list.

    >>> long = Lists.of_texts(["x y"], [["a b c x y", "z"]])
    >>> windowed = TextFeatures([SmallFeatures()], window=3).fit(long).windowed(long)
    >>> score, window = windowed.best(windowed.X[:, 0])
    >>> windowed.spans[window].tolist()
    [[4, 9], [0, 1]]
    """

    parts: Annotated[tuple[Part, ...], Saved()]
    language: Annotated[str | None, Saved()]
    window: Annotated[int | None, Saved()]
    relative: Annotated[tuple[str, ...], Saved()]
    reciprocal: Annotated[tuple[str, ...], Saved(default=())]
    reader_: Annotated[Reader, Saved()]

    def __init__(
        self,
        parts: Sequence[Part],
        language: str | None = "auto",
        window: int | None = None,
        relative: Sequence[str] = (),
        reciprocal: Sequence[str] = (),
    ) -> None:
        self.parts, self.language, self.window = tuple(parts), language, window
        self.relative, self.reciprocal = tuple(relative), tuple(reciprocal)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        self._reader()  # which columns there are may depend on the language
        relative = [name + IN_LIST for name in self.relative]
        return (*self._part_names, *relative, *(name + RRF for name in self.reciprocal))

    @property
    def absolute(self) -> tuple[str, ...]:
        """Names of columns that mean the same whatever else is in the list."""
        count_of = Counter(self._part_names)  # a signal may be called as the rank of another
        return tuple(name for part in self.parts for name in part.absolute if count_of[name] == 1)

    @property
    def uses_scores(self) -> bool:
        """Whether the first stage's scores make features."""
        return any(isinstance(part, FirstStage) for part in self.parts)

    @property
    def _part_names(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.names)

    def fit(self, lists: Lists) -> Self:
        """Learn how rare words are, and what the parts learn."""
        self.reader_ = Reader.fit(lists, self.language)
        reading = self.reader_.read(lists)
        for part in self.parts:
            part.fit(reading)
        return self

    def transform(self, lists: Lists) -> NDArray[np.float64]:
        """Features of each passage; shape (n_rows, n_columns)."""
        columns, rows = self._columns(self._reader().read(lists)), lists.groups.rows
        if (np.diff(rows) == 1).all():
            return columns
        X = np.empty_like(columns)
        X[rows] = columns  # which stand list by list
        return X

    def windowed(self, lists: Lists) -> Windowed:
        """Features of the windows of each passage."""
        if self.window is None:
            return super().windowed(lists)
        reading, row, spans = cut_windows(self._reader().read(lists), self.window)
        X, item = self._columns(reading), lists.groups.rows[row]
        order = np.argsort(item, kind="stable")
        return Windowed(X[order], item[order], spans[order])

    def _columns(self, reading: Reading) -> NDArray[np.float64]:
        columns = []
        for part in self.parts:
            check_interruption()
            columns.append(part.columns(reading))
        X = np.hstack(columns)
        columns, names = [X], self._part_names
        if self.relative:
            sizes = np.diff(reading.bounds)
            compared = X[:, [names.index(name) for name in self.relative]]
            columns.append(standard_in_query(compared, Groups.from_lists(sizes[sizes > 0])))
        for name in self.reciprocal:
            values, groups = X[:, names.index(name)], reading.lists.groups
            columns.append(reciprocal_ranks(values, reading.document, groups)[:, None])
        return np.hstack(columns)

    def with_columns(self, names: Iterable[str]) -> TextFeatures:
        """The same reader with the parts that these columns need, and those of them in lists."""
        compared: dict[str, list[str]] = {IN_LIST: [], RRF: []}
        part_names, wanted = set(self._part_names), set()
        for name in names:
            suffix = "" if name in part_names else IN_LIST if name.endswith(IN_LIST) else RRF
            wanted.add(name.removesuffix(suffix))
            if suffix:
                compared[suffix].append(name.removesuffix(suffix))
        small = set(SmallFeatures().names)
        parts = [
            SmallFeatures()
            if isinstance(part, ExtendedFeatures) and wanted.isdisjoint(set(part.names) - small)
            else part
            for part in self.parts
            if not wanted.isdisjoint(part.names)
        ]
        features = TextFeatures(parts, self.language, self.window, *compared.values())
        features.reader_ = self._reader()
        return features

    def state(self) -> State:
        """What was learned; a part stands as the name of its class and its state."""
        self._reader()
        arrays, values = super().state()
        return arrays, {**values, "parts": [[*part.values()] for part in values["parts"]]}

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The features that have learned this."""
        parts = [{"class": name, "state": state} for name, state in values["parts"]]
        return super().from_state(concepts_with_places(arrays), {**values, "parts": parts})

    def _check_state(self) -> None:
        if not self.parts:
            raise ValueError("expected parts that make columns")
        if not {*self.relative, *self.reciprocal} <= set(self._part_names):
            raise ValueError("columns are asked for in lists that are not there")

    def _reader(self) -> Reader:
        if not hasattr(self, "reader_"):
            raise DataError("the features are not fitted yet: call fit first")
        return self.reader_


def parts_of(
    lists: Lists,
    vectors: Any = None,
    encoder: Any = None,
    store: Any = None,
    on_encoded: Callable[[int], Any] | None = None,
) -> list[Part]:
    """Beside those of the whole text: scores, fields, signals, meaning and word vectors.

    A static encoder gives the word vectors, too, if there are no others.
    """
    parts: list[Part] = [FirstStage()] if lists.scores is not None else []
    if (attributes := lists.attributes) is not None:
        texts = list(lists.items)
        parts += [
            FieldOverlaps(name)
            for name, field_texts in attributes.fields.items()
            if any(text.strip() for text in field_texts) and list(field_texts) != texts
        ]
        parts += [Signals()] * bool(attributes.signals)
    has_vectors = attributes is not None and attributes.vectors is not None
    if encoder is not None or (has_vectors and lists.query_vectors is not None):
        short = [] if attributes is None or has_vectors else _short_fields(attributes)
        parts.append(meaning := Meaning(encoder, store, None, on_encoded, short))
        if vectors is None and meaning.encoder is not None and meaning.encoder.is_static:
            is_named = meaning.encoder.name == WORDLLAMA
            vectors = WORDLLAMA if is_named else meaning.encoder.encode_documents
    if vectors is not None:
        parts.append(WordVectors(vectors))
    return parts


def _short_fields(attributes: Attributes) -> list[str]:
    """Text fields beside the main one that have few characters in most documents."""
    main = Schema.of(attributes).main
    return [
        name
        for name, texts in attributes.fields.items()
        if name != main and 0 < np.median([len(text) for text in texts]) <= SHORT
    ]


def part_of(features: TextFeatures, kind: type[AnyPart]) -> AnyPart | None:
    """The part of this kind, if there is one."""
    return next((part for part in features.parts if isinstance(part, kind)), None)


def further_columns(features: TextFeatures) -> list[str]:
    """Columns of what documents are beside their text."""
    kinds = (Signals, FieldOverlaps, Meaning)
    parts = [part for part in features.parts if isinstance(part, kinds)]
    return [name for part in parts for name in part.names if name != NO_VECTOR]
