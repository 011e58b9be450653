"""Signals of documents as columns: standardised numbers, ranks, missing values, categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.attributes import Attributes
from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.learning.scoring import standard_in_query
from didyma.model import Saved
from didyma.ranking.explanation import PassageExplanation
from didyma.text.features.part import IN_LIST, RRF, RRF_CONSTANT, Part, Vector, places
from didyma.text.features.reading import Reading

SIGNAL, RANK, MISSING = "signal.", " rank", " missing"  # begins and ends names of columns
LINEAR = 3.0  # deviations from the median within which a column is linear in its signal
NORMAL_RANGE = 1.3489795  # between the quartiles of a standard normal distribution
MOST_CATEGORIES = 20
FEWEST = 5  # documents of a category that has a column


class NumberSignal(NamedTuple):
    """What was learned of a signal of numbers; ``imputed`` stands for those that are missing."""

    name: str
    median: float
    deviation: float
    imputed: float
    was_missing: bool
    is_first_stage: bool

    @classmethod
    def of(cls, name: str, values: Vector, *, is_first_stage: bool) -> Self:
        """What values tell, of which some may be NaN."""
        is_missing = np.isnan(values)
        present = np.zeros(1) if is_missing.all() else values[~is_missing]
        low, median, high = np.quantile(present, [0.25, 0.5, 0.75])
        deviation = (high - low) / NORMAL_RANGE or float(np.std(present)) or 1.0
        imputed = float(present.min() if is_first_stage else median)
        missing = bool(is_missing.any())
        return cls(name, float(median), float(deviation), imputed, missing, is_first_stage)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        missing = (MISSING,) if self.was_missing else ()
        fused = (RRF,) if self.is_first_stage else ()
        return tuple(SIGNAL + self.name + end for end in ("", RANK, *missing, IN_LIST, *fused))

    def standardised(self, values: Vector) -> Vector:
        """(x − median) / deviation, and what is beyond ±3 of that by its logarithm."""
        z = (values - self.median) / self.deviation
        beyond = np.maximum(np.abs(z) - LINEAR, 0.0)
        return np.where(beyond > 0, np.copysign(LINEAR + np.log1p(beyond), z), z)

    def values(self, signal: Vector, groups: Groups) -> list[Vector]:
        """The columns of the documents of lists."""
        is_missing = np.isnan(signal)
        filled = np.where(is_missing, self.imputed, signal)
        ranked = compared = filled
        if self.is_first_stage and is_missing.any():  # what was not found ranks below all others
            ranked = np.where(is_missing, -np.inf, signal)
            compared = np.where(is_missing, _least(signal, groups)[groups.codes], signal)
            compared = np.where(np.isnan(compared), self.imputed, compared)
        place = places(ranked, groups)
        columns = [self.standardised(filled), 1.0 / (1 + place)]
        if self.was_missing:
            columns.append(is_missing.astype(np.float64))
        sizes = Groups.from_lists(groups.sizes[groups.sizes > 0])
        columns.append(standard_in_query(compared[:, None], sizes)[:, 0])
        if self.is_first_stage:
            columns.append(np.where(is_missing, 0.0, 1 / (RRF_CONSTANT + 1 + place)))
        return columns


class CategorySignal(NamedTuple):
    """The frequent values of a signal of categories, each of which is a column of 0 and 1."""

    name: str
    categories: tuple[str, ...]

    @classmethod
    def of(cls, name: str, values: NDArray[Any]) -> Self:
        """The most frequent values."""
        counts = Counter(value for value in values.tolist() if value is not None)
        frequent = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_CATEGORIES]
        return cls(name, tuple(value for value in frequent if counts[value] >= FEWEST))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(f"{SIGNAL}{self.name}={category}" for category in self.categories)

    def values(self, signal: NDArray[Any], groups: Groups) -> list[Vector]:
        """The columns of the documents of lists."""
        return [(signal == category).astype(np.float64) for category in self.categories]


class Signals(Part):
    """Signals that documents bring along: scores, clicks, ages, prices, categories.

    signal.NAME
        (x − median) / deviation, the deviation by the quartiles; beyond ±3 its logarithm counts, so
        that no outlier outweighs all else while the order stays that of x. A missing value is the
        median in training; of a score by which documents were found (a first stage), the least.
    signal.NAME rank
        1 / (1 + place in the list, from 0); of equal values all have the best place.
    signal.NAME missing
        Whether it is missing, if it was for some documents in training.
    signal.NAME in list
        In deviations from the mean of the list.
    signal.NAME rrf
        Of first stages 1 / (60 + rank), 0 where it is missing.
    signal.NAME=VALUE
        Whether a category is one of the frequent ones, each a column.

    >>> from didyma.data.attributes import Attributes
    >>> from didyma.data.lists import Lists
    >>> from didyma.text.features.union import TextFeatures
    >>> clicks = Attributes(signals={"clicks": np.array([0.0, 10.0, 20.0, np.nan])})
    >>> lists = Lists(["a", "b", "c", "d"], queries=["x"], attributes=clicks)
    >>> features = TextFeatures([Signals()]).fit(lists)
    >>> features.names[:3]
    ('signal.clicks', 'signal.clicks rank', 'signal.clicks missing')
    >>> features.transform(lists)[:, :3].round(2).tolist()
    [[-1.35, 0.25, 0.0], [0.0, 0.5, 0.0], [1.35, 1.0, 0.0], [0.0, 0.5, 1.0]]
    """

    numbers_: Annotated[tuple[NumberSignal, ...], Saved()]
    categories_: Annotated[tuple[CategorySignal, ...], Saved()]

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return tuple(name for signal in self._signals for name in signal.columns)

    @property
    def absolute(self) -> tuple[str, ...]:
        """Numbers, whether they are missing, and categories."""
        missing = [signal.name for signal in self.numbers_ if signal.was_missing]
        return (
            *(SIGNAL + signal.name for signal in self.numbers_),
            *(SIGNAL + name + MISSING for name in missing),
            *(name for signal in self.categories_ for name in signal.columns),
        )

    @property
    def signals(self) -> tuple[str, ...]:
        """Name of each signal."""
        return tuple(signal.name for signal in self._signals)

    def fit(self, reading: Reading) -> Self:
        """Learn medians and deviations, and which categories are frequent."""
        attributes = reading.lists.attributes
        signals = {} if attributes is None else attributes.signals
        first = () if attributes is None else attributes.first_stages
        self.numbers_ = tuple(
            NumberSignal.of(name, values, is_first_stage=name in first)
            for name, values in signals.items()
            if values.dtype == np.float64
        )
        self.categories_ = tuple(
            CategorySignal.of(name, values)
            for name, values in signals.items()
            if values.dtype != np.float64
        )
        return self

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Columns of each row; shape (n_rows, n_columns)."""
        lists, columns = reading.lists, [np.zeros((0, len(reading.lists)))]
        signals = {} if lists.attributes is None else lists.attributes.signals
        for signal in self._signals:
            dtype = np.float64 if isinstance(signal, NumberSignal) else np.object_
            values = signals.get(signal.name)
            if values is None or values.dtype != dtype:  # as if all were missing
                fill = np.nan if dtype is np.float64 else None
                values = np.full(len(lists), fill, dtype)
            columns += signal.values(values, lists.groups)
        return np.vstack(columns).T[reading.document]

    @property
    def _signals(self) -> tuple[NumberSignal | CategorySignal, ...]:
        return (*self.numbers_, *self.categories_)

    def _check_state(self) -> None:
        for signal in self.numbers_:
            if not (np.isfinite(signal[1:4]).all() and signal.deviation > 0):
                raise ValueError(f"signal {signal.name} has no finite median and deviation")


def with_given(
    explanation: PassageExplanation, attributes: Attributes, row: int
) -> PassageExplanation:
    """An explanation with the values of signals as they came, none where they were missing."""
    value_of = {
        SIGNAL + name: None if np.isnan(values[row]) else float(values[row])
        for name, values in attributes.signals.items()
        if values.dtype == np.float64
    }
    contributions = tuple(
        part._replace(value=value_of[part.name]) if part.name in value_of else part
        for part in explanation.contributions
    )
    return replace(explanation, contributions=contributions)


def _least(values: Vector, groups: Groups) -> Vector:
    """The least value of each list that is not NaN; NaN where there is none."""
    least = np.full(len(groups), np.nan)
    full = groups.sizes > 0
    least[full] = np.fmin.reduceat(values, groups.starts[:-1][full])
    return least


def signs_of(
    increasing: Sequence[str], decreasing: Sequence[str], numbers: Sequence[str]
) -> dict[str, int]:
    """1 or −1 for columns with which scores must rise or fall; ``numbers`` are signals there are.

    >>> sorted(signs_of(["clicks"], ["price"], ["price", "clicks"]).items())[::4]
    [('signal.clicks', 1), ('signal.price', -1)]
    """
    constraints = (("increasing", increasing, 1), ("decreasing", decreasing, -1))
    for field, names, _ in constraints:
        for name in names:
            if name not in numbers:
                present = ", ".join(numbers) or "none"
                problem = f"expected signals of numbers (there are {present}), found {name!r}"
                raise DataError(problem, field=field)
            if name in increasing and name in decreasing:
                raise DataError(f"{name!r} is both increasing and decreasing", field=field)
    return {
        SIGNAL + name + end: sign
        for _, names, sign in constraints
        for name in names
        for end in ("", RANK, IN_LIST, RRF)
    }
