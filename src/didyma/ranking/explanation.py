"""Explanations of linear and additive scores: what each feature adds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.categories import text_of
from didyma.data.lists import Lists
from didyma.data.matrix import dense
from didyma.errors import DataError
from didyma.model import Model
from didyma.values import shown_value

SHOWN = 8  # features that a text lists
LONGEST = 60  # characters of a passage in it


class FeatureContribution(NamedTuple):
    """What a feature, or a pair of such ("a × b", without a value), adds to a raw score.

    The value of a category that is a text is the text. ``words`` say what the feature is to those
    who do not know its name.
    """

    name: str
    amount: float
    value: float | str | None
    words: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON; without words if there are none."""
        fields = self._asdict()
        return fields if self.words else {key: fields[key] for key in fields if key != "words"}


class MatchedSpan(NamedTuple):
    """Code points ``start`` to ``stop`` of a passage, and the words of the query that they match.

    ``kind`` is "word" if they are the query's own, "stem" if only their stems are.
    """

    start: int
    stop: int
    matched: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class PassageExplanation:
    """The raw score of a passage as a sum, and what it is the score of.

        raw = intercept + Σ amounts of contributions

    Of a linear ranker a feature adds its weight times its scaled value, of an additive one the
    value of its function less the mean of that in training; these means add up to the intercept.

    Attributes
    ----------
    raw, score : float
        The raw score, and the calibrated one.
    intercept : float
    contributions : tuple of FeatureContribution
        The greatest amounts, up or down, first.
    spans : tuple of MatchedSpan
        Ascending, without overlaps.
    text : str

    >>> from didyma import SVMRanker
    >>> X, names = np.array([[3.0, 1.0], [1.0, 0.0]]), ("bm25", "length")
    >>> lists = Lists(X, np.array([1.0, 0.0]), feature_names=names)
    >>> model = Model.of(SVMRanker(C=1).fit(lists))
    >>> [explanation] = explain_rows(model, lists, [0])
    >>> [part.name for part in explanation.contributions]
    ['bm25', 'length']
    >>> bool(np.isclose(explanation.raw, model.predict(lists)[0]))
    True
    """

    raw: float
    score: float
    intercept: float
    contributions: tuple[FeatureContribution, ...]
    spans: tuple[MatchedSpan, ...] = ()
    text: str = ""

    def above(self, other: PassageExplanation) -> RelativeExplanation:
        """Why this passage has a higher score than another one, or not."""
        ours, theirs = ({part.name: part for part in e.contributions} for e in (self, other))
        if ours.keys() != theirs.keys():
            raise DataError("expected explanations of the same model")
        differences = [
            FeatureDifference(
                name, part.amount - theirs[name].amount, part.value, theirs[name].value
            )
            for name, part in ours.items()
        ]
        differences.sort(key=lambda part: -abs(part.amount))
        return RelativeExplanation(
            self.raw - other.raw, self.intercept - other.intercept, tuple(differences)
        )

    def __str__(self) -> str:
        head = (
            f"{self.score:.3g}"
            if self.score == self.raw
            else f"{self.score:.3g}, raw {self.raw:.3g}"
        )
        lines = [f"score {head}: {_short(self.text)}" if self.text else f"score {head}"]
        lines += _lines(
            [(part.amount, _valued(part.name, part.value)) for part in self.contributions],
            self.intercept,
        )
        if self.spans:
            words = (self.text[span.start : span.stop] for span in self.spans)
            lines.append(f"matched: {', '.join(dict.fromkeys(words))}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it but the text, ready for JSON."""
        return {
            "score": self.score,
            "raw": self.raw,
            "intercept": self.intercept,
            "contributions": [part.to_dict() for part in self.contributions],
            "spans": [{**span._asdict(), "matched": list(span.matched)} for span in self.spans],
        }


class FeatureDifference(NamedTuple):
    """What a feature adds to the distance of two passages, and its value in each."""

    name: str
    amount: float
    value: float | str | None
    other_value: float | str | None


@dataclass(frozen=True)
class RelativeExplanation:
    """The distance of two passages' raw scores as a sum over features, the greatest first."""

    distance: float
    intercept: float
    differences: tuple[FeatureDifference, ...]

    def __str__(self) -> str:
        way = "above" if self.distance >= 0 else "below"
        listed = [
            (part.amount, f"{_valued(part.name, part.value)}{_against(part.other_value)}")
            for part in self.differences
        ]
        return "\n".join([f"{way} by {abs(self.distance):.3g}", *_lines(listed, self.intercept)])

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {**asdict(self), "differences": [part._asdict() for part in self.differences]}


def contributions(model: Model, lists: Lists) -> tuple[NDArray[np.float64], float]:
    """What each feature, and each pair of them, adds to each row's score, and what is added to all.

    Amounts have the shape (n_rows, n_features + n_pairs).
    """
    if not model.scales or model.name not in PARTS:
        raise DataError(
            f"expected a linear or additive ranker behind scalers, found a {model.name}: "
            "it has no contributions of features"
        )
    return PARTS[model.name](dense(model.inputs(lists)), model.ranker)


def explain_rows(model: Model, lists: Lists, rows: ArrayLike) -> list[PassageExplanation]:
    """Explain some rows of features, given with all those of their queries.

    What is not known of features alone is left out: the raw score stands for the calibrated one.
    """
    wanted, learned = np.asarray(rows, np.int64), model.learned
    lists = model.features.arrange(lists)
    amounts, intercept = contributions(model, lists)
    texts = model.features.categories or (None,) * model.features.count
    names, pairs = model.features.labels, learned.get("pairs_", np.zeros((0, 2), np.int64))
    names += [f"{names[first]} × {names[second]}" for first, second in pairs.tolist()]
    explanations = []
    for of_row, features in zip(amounts[wanted].tolist(), dense(lists.X[wanted]).tolist()):
        values = [*map(text_of, features, texts), *[None] * len(pairs)]
        parts = sorted(
            map(FeatureContribution, names, of_row, values), key=lambda part: -abs(part.amount)
        )
        raw = intercept + sum(of_row)
        explanations.append(PassageExplanation(raw, raw, intercept, tuple(parts)))
    return explanations


def _linear(rows: NDArray[Any], ranker: Any) -> tuple[NDArray[np.float64], float]:
    """Weights times values."""
    return rows * ranker.coef_, float(getattr(ranker, "intercept_", 0.0))


def _additive(rows: NDArray[Any], ranker: Any) -> tuple[NDArray[np.float64], float]:
    """Values of functions, of features and of pairs, less their means."""
    means, bins = ranker.means_, ranker.bins_.transform(rows).bins
    return ranker.tables_[bins, np.arange(bins.shape[1])] - means, float(means.sum())


# What the features of rows add to their scores, by the class of the ranker.
PARTS = {
    "SVMRanker": _linear,
    "ClassificationRanker": _linear,
    "LatentPerceptronRanker": _linear,
    "LatentSVMRanker": _linear,
    "RidgeRanker": _linear,
    "AdditiveSVMRanker": _additive,
}


def _lines(listed: list[tuple[float, str]], intercept: float) -> list[str]:
    """The greatest amounts with their names, and the sum of all others."""
    lines = [f"{amount:+9.3f}  {name}" for amount, name in listed[:SHOWN]]
    if rest := listed[SHOWN:]:
        lines.append(f"{sum(amount for amount, _ in rest):+9.3f}  {len(rest)} others")
    if intercept:
        lines.append(f"{intercept:+9.3f}  intercept")
    return lines


def _valued(name: str, value: float | str | None) -> str:
    return name if value is None else f"{name} = {shown_value(value)}"


def _against(value: float | str | None) -> str:
    return "" if value is None else f" against {shown_value(value)}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 2]} …"
