"""From a query and its candidates to a ranking: features, and a ranker over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Lists
from didyma.data.passage import Passage, passages_of
from didyma.data.schema import Schema
from didyma.errors import DataError, ModelFileError
from didyma.execution import on_cluster
from didyma.files import PathName
from didyma.model import Model, Savable, Saved, Serialisable, State, load
from didyma.model.codec import Record, Tensors
from didyma.protocol import Estimator
from didyma.ranking.explanation import MatchedSpan, PassageExplanation, explain_rows
from didyma.ranking.featuriser import Featuriser, Windowed
from didyma.ranking.ranked import Ranked, Ranking
from didyma.text.baselines import Verdict
from didyma.text.calibration import Calibration
from didyma.text.features import TextFeatures
from didyma.text.features.descriptions import described
from didyma.text.observation import Scored, notify
from didyma.text.spans import matched_spans
from didyma.text.steps.step import Step, check_top_k, take_steps
from didyma.text.training_data import TrainingData

if TYPE_CHECKING:
    from didyma.metrics import Evaluation

MEASURES = "AP, RR, nDCG@10"
Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gated(Serialisable):
    """What held-out queries said of a ranker: whether it ranks, and what its scores mean."""

    verdict: Verdict
    calibration: Calibration


class Reranker(Serialisable, Savable):
    """Ranks the candidates of a query by what a ranker makes of their features.

    >>> from didyma import Lists, Reranker, SVMRanker
    >>> from didyma.text import SmallFeatures, TextFeatures
    >>> lists = Lists.of_texts(
    ...     ["who wrote Emma?", "when was Emma written?"],
    ...     [["It is late.", "Austen wrote Emma."], ["Emma was written in 1815.", "No."]],
    ...     [[0, 1], [1, 0]],
    ... )
    >>> reranker = Reranker(TextFeatures([SmallFeatures()]), SVMRanker(C=1)).fit(lists)
    >>> best, *_ = reranker.rank("who wrote it?", ["A clock.", "She wrote it."])
    >>> best.index, best.text
    (1, 'She wrote it.')

    Parameters
    ----------
    featuriser : Featuriser
    ranker : estimator or pipeline
        What ranks rows of features, such as `didyma.SVMRanker`; also scikit-learn's. One that a
        model file cannot hold is refused by `save`.
    gate : str, optional
        A column whose order is there without training. The ranker is then cross-validated over
        queries, kept only if it is better than that order, and its scores are calibrated.

    Attributes
    ----------
    model_ : Model
        The fitted ranker as plain values, or the order by ``gate``.
    gate_ : Verdict or None
        With a gate: what ranks, and why.
    calibration_ : Calibration or None
        With a gate: from raw scores to `Ranked.score` and `Ranked.probability`, with thresholds. It
        means the same in any company if no column compares the passages of a list.
    out_of_fold_ : array of shape (n_rows,)
        With a gate: raw scores by models that had not seen the query. Not saved.
    trained_on_ : TrainingData or None
        By which it knows queries of its training; None of files of before 0.3.
    """

    featuriser: Annotated[Featuriser, Saved()]
    model_: Annotated[Model, Saved(key="ranker")]

    language: str | None = "auto"  # that texts of files are read in
    measure: str | None = None
    schema_: Schema = Schema()
    gate_: Verdict | None = None
    out_of_fold_: Vector
    trained_on_: Annotated[TrainingData | None, Saved(default=None)] = None
    _gated: Annotated[Gated | None, Saved(default=None)] = None

    def __init__(self, featuriser: Featuriser, ranker: Any, gate: str | None = None) -> None:
        self.featuriser, self.ranker, self.gate = featuriser, ranker, gate

    @on_cluster("didyma.text.cluster:fit_on_cluster")
    def fit(self, lists: Any, eval_set: Lists | None = None) -> Self:
        """Learn from judged lists; the ranker may watch ``eval_set``.

        ``lists`` may be texts on a cluster, where they stay: `Shards`, or a Dask data frame with
        the columns query, passage and label. The ranker must be one that learns there.
        """
        self.featuriser.fit(lists)
        self.trained_on_ = TrainingData.of(lists)
        self._gated = self.gate_ = None
        if self.gate is None:
            from didyma.text.candidates import fit_ranker

            watched = None if eval_set is None else self._features(eval_set)
            self.model_ = fit_ranker(self.ranker, self._features(lists), watched)
            return self
        if eval_set is not None:
            raise DataError("is for a ranker without a gate: leave it out", field="eval_set")
        from didyma.text.selection import fit_gated

        settings = self.featuriser, self.ranker, self.gate
        self.gate_, self.model_, self.out_of_fold_, calibration = fit_gated(*settings, lists)
        self._gated = Gated(self.gate_, calibration)
        return self

    @property
    def calibration_(self) -> Calibration | None:
        """From raw scores to `Ranked.probability`, with thresholds for it; None without a gate."""
        return None if self._gated is None else self._gated.calibration

    def baseline(self, lists: Lists) -> tuple[str, Vector]:
        """The order that reranking was compared with: its name, and a score for each row."""
        self._check_fitted()
        if self.gate_ is None:
            raise DataError("the reranker was fitted without a gate: it is compared with nothing")
        order, features = self.gate_.baseline_order, self.featuriser
        if isinstance(features, TextFeatures):
            features = features.with_columns(order.columns)
        windowed = features.windowed(lists)
        return order.name, windowed.best(order.scores(windowed.X, features.names))[0]

    def _features(self, lists: Lists) -> Lists:
        return lists.with_items(self.featuriser.transform(lists), self.featuriser.names)

    @property
    def uses_scores(self) -> bool:
        """Whether it was trained with the first stage's scores, so that `rank` takes them."""
        return self.featuriser.uses_scores

    @property
    def vector_dimension(self) -> int:
        """Length of the vectors that queries and documents may have; 0 if they do not count."""
        return 0

    @on_cluster("didyma.cluster.prediction:predict_texts_on_cluster")
    def predict(self, lists: Any) -> Vector:
        """Raw score of each row; higher ranks first within a list.

        Lists may bring scores of a first stage that the reranker was trained without: they do not
        count. The files of `Shards` are scored on the workers of the active Dask client.
        """
        return self._score(lists)[2]

    def rank(
        self,
        query: Any,
        documents: Iterable[Any],
        top_k: int | None = None,
        scores: ArrayLike | None = None,
        *,
        explain: bool = False,
        then: Sequence[Step] = (),
    ) -> Ranking:
        """Documents by descending score, of equal ones the first given first.

        Parameters
        ----------
        query : str
            What is asked.
        documents : sequence of str or of mappings
            A mapping has a ``text`` and, if wanted, an ``id`` and other entries.
        top_k : int, optional
            How many of the best to return.
        scores : array of shape (n_documents,), optional
            The first stage's, if the reranker was trained with such (`uses_scores`), and only then.
        explain : bool
            Fill in `Ranked.explanation`, of a long document that of its best window.
        then : sequence of Step
            What follows: `didyma.text.Recency`, `Boost`, and last `Diversity`. `Ranked.steps` says
            what they did.
        """
        check_top_k(top_k)
        passages = self._read(documents)
        lists = self._lists(query, passages, scores)
        if not passages:
            return Ranking()
        windowed, rows, raw, window = self._score(lists)
        order = np.argsort(-raw, kind="stable")[: None if then else top_k]
        score, probability = self._calibrated(raw), self._probability(windowed, raw)
        notify(lambda: Scored(self, lists, windowed, raw, probability))
        spans = self._spans(windowed, window)
        ranked = [
            Ranked(
                index=n,
                score=float(score[n]),
                id=passages[n].id,
                text=passages[n].text,
                metadata=passages[n].metadata,
                window=spans.get(n),
                raw=float(raw[n]),
                probability=None if probability is None else float(probability[n]),
            )
            for n in order.tolist()
        ]
        ranking = Ranking(ranked, self._notes(passages, lists, windowed))
        if then:
            ranking = take_steps(ranking, then, top_k)
        if explain:
            windows = window[[one.index for one in ranking]]
            ranking[:] = self._explained(ranking, lists, rows, windows)
        return ranking

    def _notes(self, passages: list[Passage], lists: Lists, windowed: Windowed) -> Iterable[str]:
        """What whoever asked should know."""
        return ()

    def explain(
        self, query: Any, documents: Iterable[Any], scores: ArrayLike | None = None
    ) -> list[PassageExplanation]:
        """The explanations of `rank`, in the order of the documents."""
        ranked = self.rank(query, documents, scores=scores, explain=True)
        explanations = {one.index: one.explanation for one in ranked}
        return [explanations[n] for n in range(len(ranked))]  # type: ignore[misc]

    def _explained(
        self, ranked: list[Ranked], lists: Lists, rows: Lists, window: NDArray[np.int64]
    ) -> list[Ranked]:
        """The same with explanations; ``window`` is the row of features of each."""
        matched = self._matched(lists, ranked)
        return [
            replace(
                one,
                explanation=replace(
                    reasons, raw=one.raw, score=one.score, spans=tuple(spans), text=one.text
                ),
            )
            for one, reasons, spans in zip(ranked, self._reasons(rows, window), matched)
        ]

    @staticmethod
    def _spans(windowed: Windowed, best: NDArray[np.int64]) -> dict[int, tuple[int, int]]:
        """Where the best window of each long item stands in it."""
        if windowed.spans is None:
            return {}
        long = np.flatnonzero(np.bincount(windowed.item) > 1)
        return {n: (a, b) for n, (a, b) in zip(long.tolist(), windowed.spans[best[long]].tolist())}

    @on_cluster("didyma.cluster.prediction:evaluate_texts_on_cluster")
    def evaluate(self, lists: Any, measures: Any = MEASURES) -> Evaluation:
        """Measures of the rankings of judged lists, one value for each query; texts as in `fit`."""
        return measured(self.predict, lists, measures)

    def _read_file(self, path: PathName) -> Lists:
        """The lists of a file of `Shards`."""
        from didyma.data.texts import reader as texts

        return texts.read(path)

    def _read(self, documents: Iterable[Any]) -> list[Passage]:
        return passages_of(documents)

    def _lists(self, query: Any, documents: list[Passage], scores: ArrayLike | None) -> Lists:
        self._check_fitted()
        if scores is not None and not self.uses_scores:
            raise DataError(
                "the reranker was trained without a first stage's: leave them out, or fit it with "
                "lists that have them",
                field="scores",
            )
        return self._list(query, documents, None if scores is None else [scores])

    def _list(self, query: Any, documents: list[Passage], scores: list[ArrayLike] | None) -> Lists:
        return Lists.of_texts([query], [[document.text for document in documents]], scores=scores)

    def _rows(self, lists: Lists) -> tuple[Windowed, Lists]:
        """The windows of each row, and lists of them as rows of features."""
        self._check_fitted()
        windowed = self.featuriser.windowed(lists)
        rows = lists if len(windowed.item) == len(lists) else lists.select(windowed.item)
        return windowed, rows.with_items(windowed.X, self.featuriser.names)

    def _score(self, lists: Lists) -> tuple[Windowed, Lists, Vector, NDArray[np.int64]]:
        """What `_rows` gives, the score of each row of ``lists`` and the window that has it."""
        windowed, rows = self._rows(lists)
        return windowed, rows, *windowed.best(self._raw(rows))

    def _raw(self, rows: Lists) -> Vector:
        """The score of each row of features."""
        return self.model_.predict(rows)

    def _reasons(self, rows: Lists, wanted: NDArray[np.int64]) -> list[PassageExplanation]:
        """Why some rows of features, given with all those of their list, have their scores."""
        explanations = explain_rows(self.model_, rows, wanted)
        if not isinstance(self.featuriser, TextFeatures):
            return explanations
        return [
            replace(
                explanation,
                contributions=tuple(
                    part._replace(words=described(part.name)) for part in explanation.contributions
                ),
            )
            for explanation in explanations
        ]

    def _matched(self, lists: Lists, ranked: list[Ranked]) -> list[list[MatchedSpan]]:
        """What matched in each document, or in its best window."""
        if not isinstance(self.featuriser, TextFeatures):
            return [[] for _ in ranked]
        reading = self.featuriser.reader_.read(lists)
        return [matched_spans(reading, one.index, one.window) for one in ranked]

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise DataError("the reranker is not fitted yet: call fit first")

    def _calibrated(self, raw: Vector) -> Vector:
        return raw if self._gated is None else self._gated.calibration(raw)

    def _probability(self, windowed: Windowed, raw: Vector) -> Vector | None:
        """The chance that each document is relevant, where that was learned."""
        return None if self._gated is None else self._gated.calibration(raw)

    def state(self) -> State:
        """What was learned, as arrays and values that JSON can hold."""
        self._check_fitted()
        return super().state()

    @classmethod
    def from_state(cls, arrays: Tensors, values: Record) -> Self:
        """The reranker that has this state."""
        reranker = super().from_state(arrays, values)
        if reranker._gated is not None:
            reranker.gate_ = reranker._gated.verdict
        return reranker

    def _check_state(self) -> None:
        steps = [step["n_features"] for step, _ in self.model_.steps]
        names = self.model_.features.names
        if names is None or steps != [len(names)] * len(steps):
            raise ValueError("the steps of the ranker ask for different features")
        if not set(names) <= set(self.featuriser.names):
            raise ValueError("the ranker asks for features that the featuriser does not have")


def measured(predict: Callable[[Lists], Vector], lists: Lists, measures: Any) -> Evaluation:
    """Measures of the rankings by predicted scores, one value for each list that has rows."""
    from didyma.metrics import evaluate

    full = lists.select(np.arange(len(lists)))
    return evaluate(predict(full), full.y, full.groups, measures, docid=full.docid)


def load_reranker(path: PathName, trust: Iterable[str] = ()) -> Reranker:
    """The reranker of texts that a file holds, whichever its features; see `didyma.load`."""
    return check_reranker(load(path, trust), path)


def check_reranker(reranker: Any, path: PathName) -> Reranker:
    """What a file holds, if that is a reranker of texts."""
    if not isinstance(reranker, Reranker) or isinstance(reranker, Estimator):
        raise ModelFileError(f"{path}: holds a {type(reranker).__name__}, not a TextReranker")
    return reranker
