"""Overlaps of a query with one text field of documents, such as their titles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from didyma.model import Saved
from didyma.text.features.part import Part
from didyma.text.features.reading import Reader, Reading
from didyma.text.features.small import NAMES

# Of the small set, those that a short text is compared by.
OVERLAPS = (
    *("stem_bm25", "stem_coverage", "stem_idf_coverage", "stem_idf_jaccard"),
    *("pair_coverage", "gram_coverage", "length"),
)


class FieldOverlaps(Part):
    """Overlaps of the small set (`SmallFeatures`) with one field, as FIELD.stem_bm25 and so on.

    The field has a mean length and frequencies of words of its own, as in BM25F.

    >>> from didyma.data.attributes import Attributes
    >>> from didyma.data.lists import Lists
    >>> from didyma.text.features.union import TextFeatures
    >>> titles = Attributes({"title": ["Emma", "Clocks"]})
    >>> lists = Lists(["A novel.", "A book."], queries=["who wrote Emma"], attributes=titles)
    >>> features = TextFeatures([FieldOverlaps("title")]).fit(lists)
    >>> features.names[1], features.transform(lists)[:, 1].tolist()
    ('title.stem_coverage', [0.5, 0.0])
    """

    field: Annotated[str, Saved()]
    reader_: Annotated[Reader, Saved()]

    def __init__(self, field: str) -> None:
        self.field = field

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return tuple(f"{self.field}.{name}" for name in OVERLAPS)

    def fit(self, reading: Reading) -> Self:
        """Learn how rare words are in the field."""
        texts = self._texts(reading)
        self.reader_ = Reader.fit(reading.lists.with_items(texts), reading.language)
        return self

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Overlaps of each row; shape (n_rows, n_columns)."""
        own = self.reader_.read(reading.lists.with_items(self._texts(reading)))
        places = [NAMES.index(name) for name in OVERLAPS]
        overlaps: NDArray[np.float64] = own.overlaps[:, places][reading.document]
        return overlaps

    def _texts(self, reading: Reading) -> Sequence[str]:
        attributes = reading.lists.attributes
        fields = {} if attributes is None else attributes.fields
        return fields.get(self.field, [""] * len(reading.lists))
