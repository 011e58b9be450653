"""The columns of a matrix of features: how many, their names, and the index of the first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from didyma.data.matrix import widened
from didyma.errors import DataError
from didyma.files import PathName
from didyma.values import kind_of

if TYPE_CHECKING:
    from didyma.data.lists import Lists


@dataclass(frozen=True)
class Columns:
    """What the columns of a matrix are: how many, their names, and the index of the first.

    ``zero_based`` says whether a LETOR file calls the first column 0 or 1. It is None where columns
    never had an index, as those of a table.

    >>> from didyma.data.lists import Lists
    >>> train = Lists(np.eye(2), np.ones(2), np.zeros(2), feature_names=("bm25", "age"))
    >>> test = Lists(np.eye(2), np.ones(2), np.zeros(2), feature_names=("age", "bm25"))
    >>> train.features.arrange(test).X.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    count: int
    names: tuple[str, ...] | None = None
    zero_based: bool | None = None

    @classmethod
    def of(cls, owner: Any) -> Columns:
        """The features of judged results, or those that a fitted estimator or pipeline asks for."""
        if isinstance(owner, Columns):
            return owner
        if isinstance(getattr(owner, "features", None), Columns):
            return owner.features
        first = owner.steps[0][1] if hasattr(owner, "steps") else owner
        if not hasattr(first, "n_features_in_"):
            raise DataError(
                f"expected judged results or a fitted model, found {kind_of(owner)}",
                field="like",
            )
        names = getattr(first, "feature_names_in_", None)
        return cls(
            int(first.n_features_in_),
            None if names is None else tuple(map(str, names)),
            getattr(first, "zero_based_in_", None),
        )

    @property
    def labels(self) -> list[str]:
        """What to call each column: its name, or its index as in a file."""
        first = 0 if self.zero_based else 1
        return list(self.names or map(str, range(first, first + self.count)))

    def places(self, labels: Iterable[str], field: str | None = None) -> tuple[int, ...]:
        """The columns of some of the `labels`; ``field`` is what an error names.

        >>> Columns(3, zero_based=False).places(["3", "1"])
        (2, 0)
        """
        place_of = {label: place for place, label in enumerate(self.labels)}
        wanted = tuple(labels)
        for label in wanted:
            if label not in place_of:
                raise DataError(f"there is no feature {label!r}", field=field)
        return tuple(place_of[label] for label in wanted)

    def remember(self, estimator: Any) -> None:
        """Make these the features that a fitted estimator asks for."""
        estimator.n_features_in_ = self.count
        estimator.zero_based_in_ = self.zero_based
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_

    def arrange(self, data: Lists, path: PathName | None = None) -> Lists:
        """The same rows with these columns: by name where both have names, by place otherwise.

        Data with indices may lack the last columns, as a LETOR file does that never lists them.
        ``path`` is what errors name.
        """
        if data.features == self:
            return data
        if self.names is not None and data.feature_names is not None:
            return self._chosen(data, self.names, data.feature_names, path)
        if None not in (self.zero_based, data.zero_based) and self.zero_based != data.zero_based:
            raise DataError(
                f"expected features that count from {int(not self.zero_based)}, found some that "
                f"count from {int(not data.zero_based)}: read the file with like= the other data",
                path=path,
            )
        width = data.X.shape[1]
        if width > self.count or (width < self.count and data.zero_based is None):
            raise DataError(f"expected {self.count} features, found {width}", path=path)
        return replace(
            data,
            items=widened(data.X, self.count),
            feature_names=self.names,
            zero_based=data.zero_based if self.zero_based is None else self.zero_based,
        )

    @staticmethod
    def _chosen(
        data: Lists,
        names: tuple[str, ...],
        present: tuple[str, ...],
        path: PathName | None,
    ) -> Lists:
        place = {name: k for k, name in enumerate(present)}
        if missing := [name for name in names if name not in place]:
            raise DataError(f"expected also the features {', '.join(missing)}", path=path)
        return replace(data, items=data.X[:, [place[name] for name in names]], feature_names=names)
