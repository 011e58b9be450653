"""From a log of clicks to judgements: what users would click if they looked everywhere alike."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma import DataError
from didyma.applications.clicks.examination import Examination, estimate, sums
from didyma.applications.clicks.log import ClickLog
from didyma.data import Lists, text_array
from didyma.errors import LeftOutWarning, warn

Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClickJudgements:
    """Lists whose labels are chances of a click, and what each row rests on.

    Attributes
    ----------
    lists : Lists
        Queries and documents: texts where the log has them, else their ids.
    impressions, clicks : arrays of shape (n_rows,)
    weights : array of shape (n_rows,)
        Impressions that were looked at, by the model: how much a label rests on.
    left_out : dict
        Counts of what makes no judgement, by why.
    """

    lists: Lists
    impressions: NDArray[np.int64]
    clicks: NDArray[np.int64]
    weights: Vector
    left_out: dict[str, int]


@dataclass(eq=False, repr=False)
class ClickModel:
    """Tells positions from relevance, by documents that were shown at several positions.

    With θ_k the examination of position k (`examination`), n_k impressions and c_k
    clicks there, m the mean and s the smoothing, the label of a document is

        γ = (Σ_k c_k + s m) / (Σ_k n_k max(θ_k, clip) + s)

    Without smoothing this is the mean of what each position says with inverse propensity,
    c_k / (n_k θ_k), weighed by how often it was looked at, n_k θ_k.

    >>> import pathlib, tempfile
    >>> from didyma.applications.clicks import log
    >>> path = pathlib.Path(tempfile.mkdtemp(), "log.csv")
    >>> shown = {("a", 1): (60, 100), ("a", 2): (15, 50), ("b", 2): (20, 100), ("b", 1): (20, 50)}
    >>> lines = [
    ...     f"who?,{d},{k},{int(i < clicks)}"
    ...     for (d, k), (clicks, views) in shown.items()
    ...     for i in range(views)
    ... ]
    >>> _ = path.write_text("\\n".join(["query,docid,position,clicked", *lines]))
    >>> log = log.read(path)
    >>> model = ClickModel(bootstrap=0, smoothing=0.0).fit(log)
    >>> model.examination_.values.round(3).tolist()
    [1.0, 0.5]
    >>> model.judge(log).lists.labels.round(3).tolist()
    [0.6, 0.4]

    Parameters
    ----------
    method : {"swaps", "em"}
        "swaps" looks only at where the clicks of each document fell; "em" also at impressions
        without clicks, which needs many for each document.
    clip : float in [0, 1]
        Least examination that a position counts as, so that no click counts as too many.
    smoothing : float >= 0
        Impressions with the mean relevance that are added to each document.
    min_impressions : int >= 0
        Documents with fewer are left out.
    min_clicks : int >= 0
        Queries with fewer are left out.
    bootstrap : int >= 0
        Curves from queries with random weights, for the interval; 0 for none.
    random_state : int
        Of the bootstrap.

    Attributes
    ----------
    examination_ : Examination
    """

    method: str = "swaps"
    _: KW_ONLY
    clip: float = 0.05
    smoothing: float = 1.0
    min_impressions: int = 5
    min_clicks: int = 1
    bootstrap: int = 100
    random_state: int = 0

    examination_: Examination = field(init=False)

    def fit(self, log: ClickLog) -> Self:
        """Estimate the examination of positions."""
        self._check()
        self.examination_ = estimate(
            log, self.method, bootstrap=self.bootstrap, random_state=self.random_state
        )
        unknown = np.isnan(self.examination_.at(log.position))
        if unknown.any():
            places = ", ".join(map(str, np.unique(log.position[unknown])[:10].tolist()))
            warn(
                f"left out {log.impressions[unknown].sum()} impressions at positions {places}: no "
                "clicked document was shown there and at one of the others, so that their "
                "examination cannot be known",
                LeftOutWarning,
            )
        return self

    def judge(self, log: ClickLog) -> ClickJudgements:
        """The label of each document that was shown often enough, for a log that need not be new.

        Queries stand in the order of the log, and so do the documents of each.
        """
        self._check()
        examination = self.examination_.at(log.position)
        comparable = ~np.isnan(examination)
        pair, n_pairs = log.pair[comparable], len(log.documents)
        looked = np.maximum(examination[comparable], self.clip) * log.impressions[comparable]
        weights = sums(pair, looked, n_pairs)
        clicks = sums(pair, log.clicks[comparable], n_pairs)
        impressions = sums(pair, log.impressions[comparable], n_pairs)
        judged, left_out = self._judged(log, impressions, clicks)
        mean = clicks.sum() / weights.sum()
        with np.errstate(invalid="ignore"):
            labels = (clicks + self.smoothing * mean) / (weights + self.smoothing)
        rows = np.flatnonzero(judged)[np.argsort(log.query[judged], kind="stable")]
        return ClickJudgements(
            _lists(log, rows, np.minimum(labels[rows], 1.0)),
            impressions[rows].astype(np.int64),
            clicks[rows].astype(np.int64),
            weights[rows],
            left_out,
        )

    def _judged(
        self, log: ClickLog, impressions: Vector, clicks: Vector
    ) -> tuple[NDArray[np.bool_], dict[str, int]]:
        clicked = np.bincount(log.query, clicks, len(log.queries)) >= self.min_clicks
        least = max(self.min_impressions, 1)
        reasons = {
            f"of queries with fewer than {self.min_clicks} clicks": ~clicked[log.query],
            f"with fewer than {least} impressions": impressions < least,
            "without a text": ~_have_texts(log),
        }
        judged, left_out = np.ones(len(log.documents), bool), {}
        for reason, lacks in reasons.items():
            if count := int((judged & lacks).sum()):
                left_out[reason] = count
            judged &= ~lacks
        if not judged.any():
            reasons_met = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
            raise DataError(f"expected documents to judge, found only {reasons_met}")
        return judged, left_out

    def _check(self) -> None:
        for name, least, most in (
            ("clip", 0.0, 1.0),
            ("smoothing", 0.0, math.inf),
            ("min_impressions", 0.0, math.inf),
            ("min_clicks", 0.0, math.inf),
            ("bootstrap", 0.0, math.inf),
        ):
            value = getattr(self, name)
            if not (isinstance(value, Real) and least <= float(value) <= most):
                wanted = "or more" if most == math.inf else f"to {most:g}"
                raise DataError(f"expected {least:g} {wanted}, found {value!r}", field=name)


def _have_texts(log: ClickLog) -> NDArray[np.bool_]:
    """Whether query and document of each pair have texts, if any of the log have."""
    present = np.ones(len(log.documents), bool)
    if log.query_texts is not None:
        texts = log.query_texts
        present &= np.array([name in texts for name in log.queries], bool)[log.query]
    if log.passages is not None:
        present &= np.array([name in log.passages for name in log.documents], bool)
    return present


def _lists(log: ClickLog, rows: NDArray[np.int64], labels: Vector) -> Lists:
    documents = [log.documents[row] for row in rows.tolist()]
    asked = [log.queries[n] for n in dict.fromkeys(log.query[rows].tolist())]
    names = text_array(log.queries)[log.query[rows]]
    texts, passages = log.query_texts or {}, log.passages or {}
    return Lists(
        [passages.get(name, name) for name in documents],
        labels,
        names,
        text_array(documents),
        queries=[texts.get(name, name) for name in asked],
    )
