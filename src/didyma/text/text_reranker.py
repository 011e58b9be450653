"""The reranker of texts, which selects its features and ranker by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.columns import Columns
from didyma.data.lists import Lists
from didyma.data.passage import Passage, passages_of
from didyma.data.schema import Schema
from didyma.errors import DataError
from didyma.model import Model, Saved, State
from didyma.model.fields import check_parameters
from didyma.ranking.explanation import contributions
from didyma.ranking.svm import SVMRanker
from didyma.text.calibration import Calibration
from didyma.text.drift import Drift, Ranges, departures
from didyma.text.features import (
    ExtendedFeatures,
    FirstStage,
    Part,
    SmallFeatures,
    TextFeatures,
    WordVectors,
)
from didyma.text.features.in_lists import IN_LIST
from didyma.text.judgements import Target, check_queries, read_judged
from didyma.text.reranker import Reranker
from didyma.text.verdict import Verdict, decide, select

__all__ = ["TextReranker"]

WINDOW = 200  # words
SAMPLE = 1000  # queries that tell how important features are
ORDERS = ("stem_bm25", "bm25")  # that need no training, where there is no first stage
FEATURES = ("auto", "small", "extended")
PARAMETERS = ("features", "language", "measure", "window", "time_budget", "quick", "random_state")


class TextReranker(Reranker):
    """Ranks passages for a query, learned from texts and judgements.

    `fit` computes features of texts, chooses columns, a linear or additive ranker and C by
    cross-validation over queries, and keeps what it has learned only if held-out queries say that
    it helps (`gate_`).

    >>> queries = ["who wrote Emma?", "who wrote Faust?", "when did Goethe die?"]
    >>> passages = [
    ...     ["Austen wrote Emma.", "Emma is a novel.", "It is late."],
    ...     ["It rains.", "Goethe wrote Faust.", "Faust is a play."],
    ...     ["Goethe wrote plays.", "He was a poet.", "Goethe died in 1832."],
    ... ]
    >>> reranker = TextReranker().fit(queries, passages, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> best, *_ = reranker.rank("who wrote Ivanhoe?", ["Nobody knows.", "Scott wrote Ivanhoe."])
    >>> best.text
    'Scott wrote Ivanhoe.'

    Parameters
    ----------
    features : {"auto", "small", "extended"}
        Set to choose columns from: of the small one, of the extended one as a whole, or of both.
    vectors : mapping, callable, object with ``encode``, or "wordllama", optional
        Vectors of words, as `didyma.text.WordVectors` takes them, for features beside those of
        words as they are written. A saved model holds no vectors: it needs the package
        ``wordllama`` when it is loaded, or the same table from `attach`.
    language : str or None
        Of stop words and stems; "auto" finds out.
    measure : str, optional
        What to choose by: AP if not given, nDCG for a teacher's scores.
    window : int or None
        Longer documents are cut into windows of so many words, and are as good as their best.
    time_budget : float
        Seconds after which nothing more is tried; `gate_` says what was left out then.
    quick : bool
        Try the small set of features and linear rankers only.
    random_state : int
        Of the folds.
    callback : callable, optional
        Called with a `Progress` after each candidate; True ends the search. Not saved.

    Attributes
    ----------
    schema_ : Schema
        What each field of the documents was read as, and by which `rank` reads others.
    gate_ : Verdict
        What ranks, and why, in words and figures.
    trials_ : list of dict
        What was tried, and how it did.
    calibration_ : Calibration
        From raw scores to the chance of relevance; it has thresholds, too.
    ranges_ : Ranges
        What features were like in training, for `drift`.
    out_of_fold_ : array of shape (n_rows,)
        Raw scores of the best that was learned, kept or not, by models that had not seen the query.
        Not saved.
    interrupted_ : bool
        Whether Ctrl-C ended the search. Not saved.
    """

    schema_: Annotated[Schema, Saved()]
    gate_: Annotated[Verdict, Saved()]
    trials_: Annotated[list[dict[str, Any]], Saved()]
    calibration_: Annotated[Calibration, Saved()]
    ranges_: Annotated[Ranges, Saved()]
    out_of_fold_: NDArray[np.float64]
    interrupted_: bool

    def __init__(
        self,
        *,
        features: str = "auto",
        vectors: Any = None,
        language: str | None = "auto",
        measure: str | None = None,
        window: int | None = WINDOW,
        time_budget: float = 60.0,
        quick: bool = False,
        random_state: int = 0,
        callback: Any = None,
    ) -> None:
        self.features, self.vectors, self.language = features, vectors, language
        self.measure, self.window = measure, window
        self.time_budget, self.quick = time_budget, quick
        self.random_state, self.callback = random_state, callback

    def fit(  # type: ignore[override]
        self,
        queries: Lists | Sequence[str],
        passages: Sequence[Any] | None = None,
        labels: Sequence[Any] | None = None,
        scores: Sequence[Any] | None = None,
        query_vectors: ArrayLike | None = None,
    ) -> Self:
        """Learn from judged passages.

        Parameters
        ----------
        queries : sequence of str or mappings, or Lists
            One for each query, or one for each passage; `Lists` stand for all others, too. A
            mapping has a text and a vector.
        passages : sequence of sequences of str or mappings, or sequence of str or mappings
            Those of each query, or one for each entry of ``queries``. A mapping has a text and
            other fields (`didyma.data.Schema`).
        labels : as ``passages``
            Relevant or not (1, 0), grades, or a teacher's scores, which may be any numbers.
        scores : as ``passages``, optional
            The first stage's; `rank` must then be given them too.
        query_vectors : array of shape (n_queries, dimension), optional
            Embeddings of the queries.
        """
        from didyma.text.selection import CrossValidation, JudgedFeatures, candidates

        self._refuse_shards(queries)
        if self.features not in FEATURES:
            expected = ", ".join(FEATURES)
            raise DataError(
                f"expected one of {expected}, found {self.features!r}", field="features"
            )
        lists = read_judged(queries, passages, labels, scores, query_vectors)
        self.schema_ = Schema.of(lists.attributes)
        target = Target.of(lists.y, lists.groups, self.measure)
        fitted = TextFeatures(self._parts(lists), self.language, self.window).fit(lists)
        relative = [] if self.quick else [name for name in fitted.names if ":" not in name]
        everything = fitted.with_columns([*fitted.names, *(name + IN_LIST for name in relative)])
        orders = FirstStage().names[:1] if lists.scores is not None else ORDERS
        windowed = everything.windowed(lists)
        judged = JudgedFeatures.of(lists, windowed, everything.names, target, by=ORDERS[0])
        search = CrossValidation(judged, target, orders, self.random_state)
        if not len(search.usable):
            raise DataError(
                "expected a query with a relevant and an irrelevant passage, found none",
                field="labels",
            )
        sets = ("extended set",) if self.features == "extended" and not self.quick else None
        tried = candidates(everything.names, len(search.usable), quick=self.quick, sets=sets)
        search.run(tried, self.time_budget, self.callback)
        best = select(search.trials, search.baseline_values)
        baseline = search.baseline, search.baseline_values
        self.gate_ = decide(best, *baseline, target.measure, search.untried)
        self.trials_ = [  # by the names that files of 0.2 have
            {"rung": str(t.candidate), "C": t.C, "beside": t.blend, target.measure: t.mean}
            for t in search.trials
        ]
        old = judged.best(search.baseline)
        if best is None or not self.gate_.passed:
            self.model_, raw = single_column(search.baseline, len(search.usable)), old
        else:
            self.model_, raw = search.final(best), best.scores
        self.featuriser = everything.with_columns(self.model_.features.names or ())
        self.calibration_ = Calibration.fit(raw, target.relevance, lists.groups)
        rows = lists.select(windowed.item).with_items(windowed.X, everything.names)
        self.ranges_ = self._ranges(
            self.model_.features.arrange(rows), departures(raw, old, lists.groups)
        )
        self.out_of_fold_ = raw if best is None else best.scores
        self.interrupted_ = search.interrupted
        return self

    @property
    def uses_scores(self) -> bool:
        """Whether it was trained with the first stage's scores; what was kept may do without."""
        return self.gate_.baseline in FirstStage().names

    def _ranges(self, rows: Lists, departed: NDArray[np.float64]) -> Ranges:
        names = rows.features.labels
        some = rows.select_lists(np.arange(min(len(rows.groups), SAMPLE)))
        amounts, _ = contributions(self.model_, some)
        importance = amounts[:, : len(names)].std(axis=0)
        return Ranges.fit(rows.X, rows.groups, names, importance, departed)

    def drift(self, lists: Lists) -> Drift:
        """How far queries are from those of training, where that may change their order.

        >>> queries, passages = ["where is it?", "who is it?"], [["Here.", "There."], ["Me.", "I."]]
        >>> lists = Lists.of_texts(queries, passages, [[1, 0], [0, 1]])
        >>> print(TextReranker(quick=True).fit(lists).drift(lists))
        like training, as far as 2 queries can tell
        """
        windowed, rows, raw, _ = self._score(lists)
        seen = self.model_.features.arrange(rows)
        column = self.model_.features.labels.index(self.gate_.baseline)
        old, _ = windowed.best(seen.X[:, column])
        return self.ranges_.compare(seen.X, seen.groups, departures(raw, old, lists.groups))

    def _parts(self, lists: Lists) -> list[Part]:
        is_small = self.quick or self.features == "small"
        parts: list[Part] = [SmallFeatures() if is_small else ExtendedFeatures()]
        if lists.scores is not None:
            parts.append(FirstStage())
        if self.vectors is not None:
            parts.append(WordVectors(self.vectors))
        return parts

    def baseline(self, lists: Lists) -> tuple[str, NDArray[np.float64]]:
        """The order that reranking was compared with: its name, and a score for each row."""
        name = self.gate_.baseline
        if name in FirstStage().names:
            if lists.scores is None:
                raise DataError("expected the first stage's scores, found none", field="scores")
            return name, lists.scores
        features = TextFeatures([SmallFeatures()], self.language, self.window)
        features.reader_ = cast("TextFeatures", self.featuriser).reader_
        windowed = features.windowed(lists)
        return name, windowed.best(windowed.X[:, features.names.index(name)])[0]

    def attach(self, vectors: Any) -> Self:
        """Give a loaded model the vectors of words that it was trained with."""
        features = cast("TextFeatures", self.featuriser)
        for part in features.parts:
            if isinstance(part, WordVectors):
                part.attach(vectors)
        return self

    def _lists(self, query: Any, documents: list[Passage], scores: ArrayLike | None) -> Lists:
        lists = super()._lists(query, documents, scores)
        check_queries(lists)
        return lists

    def _read(self, documents: Iterable[Any]) -> list[Passage]:
        texts = [field.name for field in self.schema_.of_role("text")]
        return passages_of(documents, partial(Passage.of, texts=texts))

    def _list(self, query: Any, documents: list[Passage], scores: list[ArrayLike] | None) -> Lists:
        texts, attributes, _ = self.schema_.read(documents)
        lists = Lists.of_texts([query], [texts], scores=scores)
        return replace(lists, attributes=attributes if attributes else None)

    def _calibrated(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.calibration_(raw)

    def state(self) -> State:
        """What was learned, as arrays and values that JSON can hold."""
        arrays, values = super().state()
        return arrays, {**values, "parameters": {name: getattr(self, name) for name in PARAMETERS}}

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The reranker that has this state."""
        others = {"schema": Schema(), **values}  # files of 0.2 have none
        parameters = others.pop("parameters")
        check_parameters(cls, parameters, PARAMETERS)
        reranker = super().from_state(arrays, others)
        vars(reranker).update(parameters)
        return reranker


def single_column(column: str, n_queries: int) -> Model:
    """The model that ranks by one column as it is."""
    ranker = SVMRanker()
    ranker.coef_, ranker.n_queries_ = np.ones(1), n_queries
    Columns(1, (column,)).remember(ranker)
    return Model.of(ranker)
