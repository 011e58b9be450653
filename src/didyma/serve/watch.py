"""Monitoring of models: drift, probabilities, missing signals, shadow models."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranking
    from didyma.serve.samples import SampleFile
    from didyma.serve.served import ServedModel, ServedModels
    from didyma.text.drift import Drift, Observed, Ranges
    from didyma.text.observation import Scored

CHANCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
TOP = 10  # documents of a ranking that are compared with those of a shadow model
OVERLAPS = tuple(n / 10 for n in range(11))
CORRELATIONS = tuple((n - 5) / 5 for n in range(11))
DAYS = 30  # that are remembered
NAMED = 5  # features of a day that are told
DRIFT = ["level", "verdict", "n_queries", "untried", "departure", "distance", "inputs_distance"]
RECENT = 32  # answers whose probabilities are counted at once
PAUSE = 0.1  # seconds between two queries of a model that are looked at


class Buckets:
    """A histogram with fixed bounds; callers of `add` hold a lock.

    >>> buckets = Buckets([0.5, 1.0])
    >>> buckets.add([0.2, 0.5, 0.7, 3.0])
    >>> buckets.cumulative
    [('0.5', 2), ('1.0', 3), ('+Inf', 4)]
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = np.asarray(bounds, np.float64)
        self.counts = np.zeros(len(bounds) + 1, np.int64)
        self.sum = 0.0

    def add(self, values: ArrayLike) -> None:
        """Count values."""
        numbers = np.asarray(values, np.float64)
        places = np.searchsorted(self.bounds, numbers)
        self.counts += np.bincount(places, minlength=len(self.counts))
        self.sum += float(numbers.sum())

    @property
    def cumulative(self) -> list[tuple[str, int]]:
        """Bounds as Prometheus writes them, and how many values are up to each."""
        names = [*map(str, self.bounds.tolist()), "+Inf"]
        return list(zip(names, np.cumsum(self.counts).tolist()))

    def to_dict(self) -> dict[str, Any]:
        """Bounds, counts between them, and the mean, ready for JSON."""
        total = int(self.counts.sum())
        return {
            "bounds": self.bounds.tolist(),
            "counts": self.counts.tolist(),
            "mean": self.sum / total if total else None,
        }


class ShadowComparison:
    """How far the order of a shadow model is from that of the served one.

    Compared are the scores of two rerankers, before any teacher or step: the share of the first ten
    documents that both have there, whether the first differs, and the correlation of ranks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.displaced = self.requests = 0
        self.overlap, self.correlation = Buckets(OVERLAPS), Buckets(CORRELATIONS)

    def add(self, scores: NDArray[np.float64], others: NDArray[np.float64]) -> None:
        """Count the scores of both for the documents of a request."""
        if not len(scores):
            return
        tops = [np.argsort(-each, kind="stable")[:TOP].tolist() for each in (scores, others)]
        shared = len(set(tops[0]) & set(tops[1])) / len(tops[0])
        correlation = rank_correlation(scores, others)
        with self._lock:
            self.requests += 1
            self.displaced += tops[0][0] != tops[1][0]
            self.overlap.add([shared])
            if correlation is not None:
                self.correlation.add([correlation])

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "requests": self.requests,
            "displaced_tops": self.displaced,
            "overlap": self.overlap.to_dict(),
            "correlation": self.correlation.to_dict(),
        }


def rank_correlation(scores: ArrayLike, others: ArrayLike) -> float | None:
    """Spearman's: the correlation of ranks, equal scores with their mean rank.

    None where one of both does not tell documents apart.

    >>> rank_correlation([3.0, 2.0, 1.0], [0.1, 0.2, 0.3]), rank_correlation([1.0], [2.0])
    (-1.0, None)
    """
    ranks = [_ranks(np.asarray(each)) for each in (scores, others)]
    first, second = (each - each.mean() for each in ranks)
    length = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / length if length else None


def _ranks(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 0, equal scores with their mean."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: NDArray[np.float64] = (2 * ends - counts - 1) / 2
    return means[place]


@dataclass
class ObservedDay:
    """The queries of a day to one version of a model, as sums."""

    day: date
    version: str
    ranges: Ranges
    observed: Observed

    @property
    def drift(self) -> Drift:
        """How far they are from training."""
        return self.ranges.judge(self.observed)

    def to_dict(self) -> dict[str, Any]:
        """The drift, ready for JSON, with the features that differ most."""
        drift = self.drift.to_dict()
        return {
            "day": self.day.isoformat(),
            "version": self.version,
            **{name: drift[name] for name in DRIFT},
            "features": drift["features"][:NAMED],
        }


class ModelWatch:
    """Counts of one model; of bounded size, as all names are the model's and none a request's."""

    def __init__(self, today: Callable[[], date]) -> None:
        self._today, self._lock = today, threading.Lock()
        self._of: ServedModel | None = None
        self._thresholds: list[tuple[str, float]] = []
        self._recent: list[NDArray[np.float64]] = []
        self._due = 0.0
        self.answers = self.empty = self.words = self.unseen = self.teacher_documents = 0
        self.chances = Buckets(CHANCES)
        self.documents_above: Counter[str] = Counter()
        self.answers_above: Counter[str] = Counter()
        self.imputed: Counter[str] = Counter()
        self.teacher: Counter[str] = Counter()
        self.days: deque[ObservedDay] = deque(maxlen=DAYS)
        self.shadow = ShadowComparison()

    def count(self, model: ServedModel, ranking: Ranking, scored: Scored | None) -> None:
        """Count an answer; that is cheap, and done with every one."""
        imputed = None if scored is None else scored.imputed()
        asked, failure = getattr(ranking, "asked", None), getattr(ranking, "failure", None)
        with self._lock:
            self.answers += 1
            self.empty += not len(ranking)
            if imputed:
                self.imputed.update(imputed)
            if asked is not None:
                outcome = "failed" if failure is not None else "asked" if asked else "spared"
                self.teacher[outcome] += 1
                self.teacher_documents += asked
            if scored is None or scored.probability is None:
                return
            if self._of is not model:
                self._sum_up()
                self._of = model
                self._thresholds = [(f"{at['asked']:g}", at["score"]) for at in model.thresholds]
            self._recent.append(scored.probability)
            if len(self._recent) >= RECENT:
                self._sum_up()

    def _sum_up(self) -> None:
        """Count the probabilities of recent answers, all at once, as that is cheaper."""
        recent, self._recent = self._recent, []
        if not recent:
            return
        chances, highest = np.concatenate(recent), np.array([each.max() for each in recent])
        self.chances.add(chances)
        for precision, threshold in self._thresholds:
            self.documents_above[precision] += int(np.count_nonzero(chances >= threshold))
            self.answers_above[precision] += int(np.count_nonzero(highest >= threshold))

    def sum_up(self) -> None:
        """Count the probabilities of all answers so far."""
        with self._lock:
            self._sum_up()

    def is_due(self) -> bool:
        """Whether it is time to look at a query again."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + PAUSE
        return True

    def look(self, scored: Scored, version: str) -> None:
        """Compare a query with those of training, after its answer is sent."""
        observed = scored.observed()
        words, unseen = scored.unseen_words()
        with self._lock:
            self.words += words
            self.unseen += unseen
            if observed is None:
                return
            ranges = scored.reranker.ranges_  # type: ignore[attr-defined]
            last, day = self.days[-1] if self.days else None, self._today()
            if last is None or (last.day, last.version) != (day, version):
                self.days.append(ObservedDay(day, version, ranges, observed))
            else:
                last.observed = last.observed + observed

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        with self._lock:
            self._sum_up()
            return {
                "answers": self.answers,
                "empty": self.empty,
                "probabilities": self.chances.to_dict(),
                "above": [
                    {
                        "precision": precision,
                        "threshold": threshold,
                        "documents": self.documents_above[precision],
                        "answers": self.answers_above[precision],
                    }
                    for precision, threshold in self._thresholds
                ],
                "imputed": dict(self.imputed),
                "words": self.words,
                "unseen_words": self.unseen,
                "teacher": {**self.teacher, "documents": self.teacher_documents},
                "days": [day.to_dict() for day in reversed(self.days)],
                "shadow": self.shadow.to_dict() if self.shadow.requests else None,
            }


class Watch:
    """The counts of each model, those of work after answers, and those of the sample."""

    def __init__(
        self,
        models: ServedModels,
        works: Counter[tuple[str, str]],
        samples: SampleFile | None = None,
        today: Callable[[], date] | None = None,
    ) -> None:
        self.by_name = {name: ModelWatch(today or _today) for name in models.by_name}
        self.works = works
        self.samples = None if samples is None else samples.outcomes

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        works: dict[str, dict[str, int]] = {}
        for (work, outcome), count in list(self.works.items()):
            works.setdefault(work, {})[outcome] = count
        models = {name: model.to_dict() for name, model in self.by_name.items()}
        samples = None if self.samples is None else dict(self.samples)
        return {"models": models, "afterwards": works, "samples": samples}


def _today() -> date:
    return datetime.now(UTC).date()
