"""What is known of documents besides one text: text fields, signals and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.data.schema import Schema


@dataclass(frozen=True, eq=False)
class Attributes:
    """Attributes of the rows of `Lists`, column by column.

    Attributes
    ----------
    fields : mapping of str to sequence of str
        Texts of each row by the name of the field (title, url, tags); "" where there is none.
    signals : mapping of str to array of shape (n_rows,)
        Numbers (float64, NaN where there is none) or categories (an object array of str, None where
        there is none).
    first_stages : tuple of str
        The signals that are scores of retrieval functions, which can rank by themselves.
    vectors : array of shape (n_rows, dimension), float32, optional
        Embeddings of the rows; those of a row without one are NaN.
    schema : Schema, optional
        What each field of the documents is of which these were read.

    >>> attributes = Attributes({"title": ["Emma", ""]}, {"year": np.array([1815, np.nan])})
    >>> len(attributes), attributes[[1]].signals["year"].tolist()
    (2, [nan])
    """

    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    signals: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    first_stages: tuple[str, ...] = ()
    vectors: NDArray[np.float32] | None = None
    schema: Schema | None = None

    def __post_init__(self) -> None:
        columns = self._columns()
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            name, size = next(iter(sizes.items()))
            other = next(name for name in sizes if sizes[name] != size)
            raise DataError(
                f"expected {size} values, one for each row as {name} has, found {sizes[other]}",
                field=other,
            )
        for name, values in self.signals.items():
            if values.dtype != np.float64 and values.dtype != np.object_:
                raise DataError(f"expected numbers or texts, found {values.dtype}", field=name)
            if values.dtype == np.float64 and np.isinf(values).any():
                raise DataError("expected finite numbers, or NaN where there is none", field=name)
        for name in self.first_stages:
            if name not in self.signals or self.signals[name].dtype != np.float64:
                raise DataError("expected the name of a signal of numbers", field=name)
        if self.vectors is not None and self.vectors.ndim != 2:
            raise DataError(
                f"expected an array of two axes, found shape {self.vectors.shape}", field="vectors"
            )

    def _columns(self) -> dict[str, Any]:
        vectors = {} if self.vectors is None else {"vectors": self.vectors}
        return {**self.fields, **self.signals, **vectors}

    def __len__(self) -> int:
        return next((len(column) for column in self._columns().values()), 0)

    def __bool__(self) -> bool:
        return bool(self._columns())

    def __getitem__(self, rows: Any) -> Attributes:
        """Those of some rows: indices, or a slice."""
        indices = np.arange(len(self))[rows] if self else np.empty(0, np.int64)
        return Attributes(
            {name: [texts[n] for n in indices.tolist()] for name, texts in self.fields.items()},
            {name: values[indices] for name, values in self.signals.items()},
            self.first_stages,
            None if self.vectors is None else self.vectors[indices],
            self.schema,
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Attributes | None]) -> Attributes | None:
        """Those of several blocks of rows, which must have the same columns, or none at all.

        >>> one, two = (Attributes(signals={"year": np.array([y])}) for y in (1815.0, 1808.0))
        >>> Attributes.concatenate([one, two]).signals["year"].tolist()
        [1815.0, 1808.0]
        """
        present = [part for part in parts if part]
        if not present:
            return None
        first, names = present[0], present[0]._columns().keys()
        if len(present) < len(parts) or any(part._columns().keys() != names for part in present):
            problem = f"expected {', '.join(names)} in all rows, found others in some"
            raise DataError(problem, field="attributes")
        return cls(
            {
                name: [text for part in present for text in part.fields[name]]
                for name in first.fields
            },
            {
                name: np.concatenate([part.signals[name] for part in present])
                for name in first.signals
            },
            first.first_stages,
            None
            if first.vectors is None
            else np.concatenate([part.vectors for part in present if part.vectors is not None]),
            first.schema,
        )

    def document(self, row: int) -> dict[str, Any]:
        """A row as a document, without what is missing there.

        >>> Attributes({"title": ["Emma"]}, {"year": np.array([np.nan])}).document(0)
        {'title': 'Emma'}
        """
        document: dict[str, Any] = {name: texts[row] for name, texts in self.fields.items()}
        for name, values in self.signals.items():
            value = values[row]
            if value is not None and value == value:
                document[name] = value if isinstance(value, str) else float(value)
        if self.vectors is not None and not np.isnan(self.vectors[row]).any():
            rows = () if self.schema is None else self.schema.of_role("vector")
            document[next((field.name for field in rows), "vector")] = self.vectors[row].tolist()
        return document
