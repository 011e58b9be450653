"""The reranker of texts, which selects its features and ranker by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Lists
from didyma.data.passage import Passage, passages_of
from didyma.data.schema import Schema, SchemaField
from didyma.errors import DataError, check_choice
from didyma.execution import on_cluster
from didyma.model import Saved, State
from didyma.model.fields import check_parameters
from didyma.parameters import check_parameter
from didyma.ranking.explanation import contributions
from didyma.ranking.featuriser import Windowed
from didyma.ranking.ranked import Ranked
from didyma.text.baselines import LEXICAL, Z_SUM, Opponent, Verdict, opponents, retrieval_columns
from didyma.text.calibration import Calibration
from didyma.text.drift import Drift, Ranges, departures
from didyma.text.features import (
    ExtendedFeatures,
    FirstStage,
    Meaning,
    Signals,
    SmallFeatures,
    TextFeatures,
    WordVectors,
)
from didyma.text.features.meaning import NO_VECTOR, texts_too_late
from didyma.text.features.part import IN_LIST, RRF
from didyma.text.features.signals import SIGNAL, signs_of, with_given
from didyma.text.features.union import further_columns, part_of, parts_of
from didyma.text.observation import OLD_FILE, Scored, imputed, unknown, without_vectors
from didyma.text.relevance import RelevanceModel
from didyma.text.reranker import Reranker, Vector
from didyma.text.training_data import Target, TrainingData, check_queries, read_judged

WINDOW = 200  # words
VECTOR = "vector"  # the field of documents that were embedded by the same encoder
SAMPLE = 1000  # queries that tell how important features are
FEATURES = ("auto", "small", "extended")
PARAMETERS = ("features", "language", "measure", "window", "time_budget", "quick", "random_state")
LATER = {"embed_budget": 100, "increasing": (), "decreasing": ()}  # which files of 0.2 have not


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
    vectors : mapping, callable, or "wordllama", optional
        Vectors of words, as `didyma.text.WordVectors` takes them, for features beside those of
        words as they are written. A saved model holds no vectors: it needs the package
        ``wordllama`` when it is loaded, or the same table from `attach`.
    encoder : str, object or callable, optional
        Embeds queries and documents, as `didyma.text.encoders.resolve` takes it: "auto" is what is
        installed. Text fields that are short, such as titles, are embedded as well, unless
        documents bring vectors. A saved model holds its name; `attach` gives back what is no
        installed package.
    store : VectorStore or path, optional
        Where vectors of documents are kept: those that it has cost nothing, and `fit` and `rank`
        add others in batches. Not saved.
    embed_budget : int
        Texts that `rank` embeds at most; documents beyond it count as the median in training.
    increasing, decreasing : sequence of str
        Signals with which scores must not fall, or must not rise.
    language : str or None
        Of stop words and stems, or several ("english,russian"); "auto" finds out.
    measure : str, optional
        What to choose by: AP if not given, nDCG for a teacher's scores. Its level, as in
        "AP(rel=2)", is the grade from which a passage is relevant.
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
    on_encoded : callable, optional
        Called by `fit` with the number of texts embedded, after each batch. Not saved.

    Attributes
    ----------
    schema_ : Schema
        What each field of the documents was read as, and by which `rank` reads others.
    gate_ : Verdict
        What ranks, and why, in words and figures.
    trials_ : list of dict
        What was tried, and how it did.
    relevance_ : RelevanceModel or None
        The chance of relevance by columns that do not compare passages of a list (`Ranked`). None
        without judgements, and in files of before 0.3.
    calibration_ : Calibration
        From its logits to `Ranked.probability`, with thresholds for it. A model of before 0.3 has
        none but that of scores.
    order_calibration_ : Calibration
        From raw scores to `Ranked.score`.
    ranges_ : Ranges
        What features were like in training, for `drift`.
    out_of_fold_ : array of shape (n_rows,)
        Raw scores of the best that was learned, kept or not, by models that had not seen the query.
        Not saved.
    interrupted_ : bool
        Whether Ctrl-C ended the search. Not saved.
    """

    if TYPE_CHECKING:
        featuriser: TextFeatures
    schema_: Annotated[Schema, Saved(default=Schema())]
    gate_: Annotated[Verdict, Saved()]
    trials_: Annotated[list[dict[str, Any]], Saved()]
    relevance_: Annotated[RelevanceModel | None, Saved(default=None)]
    order_calibration_: Annotated[Calibration, Saved(key="calibration")]
    ranges_: Annotated[Ranges, Saved()]
    out_of_fold_: Vector
    interrupted_: bool

    def __init__(
        self,
        *,
        features: str = "auto",
        vectors: Any = None,
        encoder: Any = None,
        store: Any = None,
        embed_budget: int = 100,
        increasing: Sequence[str] = (),
        decreasing: Sequence[str] = (),
        language: str | None = "auto",
        measure: str | None = None,
        window: int | None = WINDOW,
        time_budget: float = 60.0,
        quick: bool = False,
        random_state: int = 0,
        callback: Any = None,
        on_encoded: Any = None,
    ) -> None:
        self.features, self.vectors, self.language = features, vectors, language
        self.encoder, self.store, self.embed_budget = encoder, store, embed_budget
        self.increasing, self.decreasing = increasing, decreasing
        self.measure, self.window = measure, window
        self.time_budget, self.quick = time_budget, quick
        self.random_state, self.callback, self.on_encoded = random_state, callback, on_encoded

    @on_cluster("didyma.text.cluster:refuse")
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
        labels : as ``passages``, optional
            Relevant or not (1, 0), grades, or a teacher's scores, which may be any numbers. Without
            any, nothing is learned: the order is the sum of z-scores of what can rank by itself.
        scores : as ``passages``, optional
            The first stage's; `rank` must then be given them too.
        query_vectors : array of shape (n_queries, dimension), optional
            Embeddings of the queries.
        """
        from didyma.text.candidates import candidates
        from didyma.text.selection import CrossValidation, JudgedFeatures

        for name in (*PARAMETERS, *LATER, "callback", "on_encoded"):
            check_parameter(name, getattr(self, name))
        check_choice(self.features, FEATURES, "features")
        lists = read_judged(queries, passages, labels, scores, query_vectors)
        self.schema_, self.trained_on_ = Schema.of(lists.attributes), TrainingData.of(lists)
        target = None if lists.labels is None else Target.of(lists.y, lists.groups, self.measure)
        fitted = TextFeatures(
            [
                SmallFeatures() if self.quick or self.features == "small" else ExtendedFeatures(),
                *parts_of(lists, self.vectors, self.encoder, self.store, self.on_encoded),
            ],
            self.language,
            self.window,
        ).fit(lists)
        signals = part_of(fitted, Signals)
        numbers = () if signals is None else signals.numbers_
        signs = signs_of(self.increasing, self.decreasing, [signal.name for signal in numbers])
        fused = [column for column, _ in retrieval_columns(fitted.names, numbers)]
        relative = fused if self.quick else [name for name in fitted.names if ":" not in name]
        compared = [
            name + suffix
            for suffix, names in ((IN_LIST, relative), (RRF, fused))
            for name in names
            if not name.startswith(SIGNAL) and name != NO_VECTOR  # signals have their own
        ]
        everything = fitted.with_columns([*fitted.names, *compared])
        orders = opponents(everything.names, numbers, self.decreasing)
        windowed = everything.windowed(lists)
        if target is None:
            self._fit_unjudged(lists, everything, windowed, orders)
            return self
        judged = JudgedFeatures.of(lists, windowed, everything.names, target, by=LEXICAL[0])
        search = CrossValidation(judged, target, orders, self.random_state, signs)
        tried = candidates(
            everything.names,
            len(search.usable),
            quick=self.quick,
            sets=("extended set",) if self.features == "extended" else None,
            further=further_columns(fitted),
            baseline=search.baseline.columns,
        )
        search.run(tried, self.time_budget, self.callback)
        self.gate_, self.model_, raw = search.settle()
        self.trials_ = [  # by the names that files of 0.2 have
            {"rung": str(t.candidate), "C": t.C, "beside": t.blend, target.measure: t.mean}
            for t in search.trials
        ]
        self.order_calibration_ = Calibration.fit(raw, target.relevance, lists.groups)
        # Columns by kinds of questions (with a colon) are many, and tell chances no better.
        # Concepts know the training passages, held out or not: of new ones they say less.
        names = self._keep_columns(everything).absolute
        absolute = [name for name in names if ":" not in name and name != "concepts"]
        self.relevance_ = RelevanceModel.fit(judged, absolute, target.relevance, search.fold, signs)
        departed = departures(raw, judged.best(search.baseline), lists.groups)
        self._fit_ranges(lists, everything, windowed, departed)
        self.out_of_fold_ = raw if search.best is None else search.best.scores
        self.interrupted_ = search.interrupted
        return self

    def _fit_unjudged(
        self, lists: Lists, everything: TextFeatures, windowed: Windowed, orders: list[Opponent]
    ) -> None:
        """Without judgements: the sum of z-scores, and no probabilities."""
        order = next((one for one in orders if one.name == Z_SUM), orders[0])
        summed = ", ".join(column.removesuffix(IN_LIST) for column in order.columns)
        by = f"the sum of z-scores of {summed}" if order.name == Z_SUM else f"that of {summed}"
        verdict = (
            "There are no judgements, so nothing was learned, compared or calibrated: the order is "
            f"{by}."
        )
        measure, name = self.measure or "AP", order.name
        self.gate_ = Verdict(name, name, measure, 0, 0.0, 0.0, 1.0, False, verdict, tuple(orders))
        n_queries = len(lists.groups)
        self.trials_, self.model_ = [], order.model(n_queries)
        identity, nothing = np.array([0.0, 1.0, 0.0]), np.zeros((4, 0))
        self.order_calibration_ = Calibration("platt", identity, {}, nothing, 0.0, n_queries, ())
        self.relevance_ = None
        self.out_of_fold_, _ = windowed.best(order.scores(windowed.X, everything.names))
        self._keep_columns(everything)
        self._fit_ranges(lists, everything, windowed, np.zeros(1))
        self.interrupted_ = False

    def _keep_columns(self, everything: TextFeatures) -> TextFeatures:
        """Keep the columns of the ranker and of the baseline."""
        columns = [*(self.model_.features.names or ()), *self.gate_.baseline_order.columns]
        self.featuriser = features = everything.with_columns(dict.fromkeys(columns))
        if (meaning := part_of(features, Meaning)) is not None:
            meaning.budget, meaning.on_encoded = self.embed_budget, None
        return features

    def _fit_ranges(
        self,
        lists: Lists,
        everything: TextFeatures,
        windowed: Windowed,
        departed: Vector,
    ) -> None:
        """Remember what the columns are like that the order and probabilities rest on."""
        order = self.model_.features.names or ()
        relevance = self.relevance_
        weights = {} if relevance is None else dict(zip(relevance.names, abs(relevance.weights)))
        names = tuple(dict.fromkeys([*order, *weights]))
        columns = windowed.X[:, [everything.names.index(name) for name in names]]
        rows = lists.select(windowed.item).with_items(columns, names)
        some = rows.select_lists(np.arange(min(len(rows.groups), SAMPLE)))
        amounts, _ = contributions(self.model_, self.model_.features.arrange(some))
        importance = np.zeros(len(names))
        importance[: len(order)] = amounts[:, : len(order)].std(axis=0)
        inputs = np.array([weights.get(name, 0.0) for name in names]) if weights else None
        self.ranges_ = Ranges.fit(columns, rows.groups, names, importance, departed, inputs)

    @property
    def uses_scores(self) -> bool:
        """Whether it was trained with the first stage's scores; what was kept may do without."""
        orders = [order.name for order in self.gate_.opponents] or [self.gate_.baseline]
        return FirstStage().names[0] in orders

    def drift(self, lists: Lists) -> Drift:
        """How far queries are from those of training, where order or probabilities rest on that.

        >>> queries, passages = ["where is it?", "who is it?"], [["Here.", "There."], ["Me.", "I."]]
        >>> lists = Lists.of_texts(queries, passages, [[1, 0], [0, 1]])
        >>> print(TextReranker(quick=True).fit(lists).drift(lists))
        like training, as far as 2 queries can tell
        """
        windowed, rows, raw, _ = self._score(lists)
        seen, departed = Scored(self, lists, windowed, raw, None).features_and_departures()
        return self.ranges_.compare(seen, rows.groups, departed)

    def attach(
        self,
        vectors: Any = None,
        encoder: Any = None,
        store: Any = None,
        embed_budget: int | None = None,
    ) -> Self:
        """Give a loaded model the word vectors and the encoder that it was trained with.

        ``store`` has vectors of documents (`VectorStore`, or its folder); ``embed_budget`` is as in
        the constructor.
        """
        self.store = self.store if store is None else store
        self.embed_budget = self.embed_budget if embed_budget is None else embed_budget
        if vectors is not None and (words := part_of(self.featuriser, WordVectors)) is not None:
            words.attach(vectors)
        if (meaning := part_of(self.featuriser, Meaning)) is not None:
            meaning.attach(encoder, store)
            meaning.budget = self.embed_budget
        return self

    def _notes(self, passages: list[Passage], lists: Lists, windowed: Windowed) -> Iterator[str]:
        """What was missing in a request, and what nobody asks for."""
        features = self.featuriser
        if (signals := part_of(features, Signals)) is not None:
            yield from imputed(signals, lists)
        yield from unknown(self._schema_of(passages), passages)
        has_vectors = self.schema_.of_role("vector") or part_of(features, Meaning) is not None
        if lists.query_vectors is not None and not has_vectors:
            yield "vector of the query: not known from training, ignored"
        if NO_VECTOR in features.names:
            is_missing = windowed.X[:, features.names.index(NO_VECTOR)] > 0
            n_missing = len(np.unique(windowed.item[is_missing]))
            yield from without_vectors(n_missing, len(lists), texts_too_late())
        if self.has_old_probabilities:
            yield OLD_FILE

    def _explained(
        self, ranked: list[Ranked], lists: Lists, rows: Lists, window: NDArray[np.int64]
    ) -> list[Ranked]:
        """Signals are told as they were given."""
        explained = super()._explained(ranked, lists, rows, window)
        if lists.attributes is None or not lists.attributes.signals:
            return explained
        return [
            replace(one, explanation=with_given(one.explanation, lists.attributes, one.index))
            for one in explained
            if one.explanation is not None
        ]

    def _lists(self, query: Any, documents: list[Passage], scores: ArrayLike | None) -> Lists:
        lists = super()._lists(query, documents, scores)
        check_queries(lists)
        if lists.query_vectors is not None:
            dimension, expected = lists.query_vectors.shape[1], self.vector_dimension
            if expected and dimension != expected:
                problem = f"expected a vector of {expected} numbers, found {dimension}"
                raise DataError(problem, field="query")
        return lists

    def _read(self, documents: Iterable[Any]) -> list[Passage]:
        self._check_fitted()
        texts = [field.name for field in self.schema_.of_role("text")]
        return passages_of(documents, partial(Passage.of, texts=texts))

    def _list(self, query: Any, documents: list[Passage], scores: list[ArrayLike] | None) -> Lists:
        schema = self._schema_of(documents)
        if not schema.has_attributes:
            return super()._list(query, documents, scores)
        texts, attributes, _ = schema.read(documents)
        if len(self.schema_.of_role("text")) < 2:  # a title is part of the text then
            texts = [document.text for document in documents]
        lists = Lists.of_texts([query], [texts], scores=scores)
        return replace(lists, attributes=attributes if attributes else None)

    @property
    def calibration_(self) -> Calibration:
        """That of probabilities; of scores, where there are no others."""
        return self.order_calibration_ if self.relevance_ is None else self.relevance_.calibration

    def calibration_report(self) -> list[dict[str, Any]]:
        """Errors on held-out queries (`HeldOutError`): of probabilities, and of the order's scores.

        Of each, by either kind of calibration, and by the one that other queries have chosen.
        """
        relevance = {} if self.relevance_ is None else {"probability": self.relevance_.calibration}
        return [
            {"of": name, **error._asdict()}
            for name, calibration in {**relevance, "score": self.order_calibration_}.items()
            for error in calibration.held_out
        ]

    def _schema_of(self, documents: list[Passage]) -> Schema:
        """By which documents are read: they may have vectors of the encoder beside their fields."""
        has_vectors = any(VECTOR in document.metadata for document in documents)
        if not has_vectors or self.schema_.of_role("vector") or not self.vector_dimension:
            return self.schema_
        field = SchemaField(VECTOR, "vector", "of the encoder", "named", self.vector_dimension)
        return Schema((*self.schema_.fields, field))

    @property
    def vector_dimension(self) -> int:
        """Length of the vectors of training, or of the encoder; 0 if they do not count."""
        for field in self.schema_.of_role("vector"):
            return field.dimension
        meaning = part_of(self.featuriser, Meaning)
        return 0 if meaning is None or meaning.encoder is None else meaning.encoder.dimension

    def _calibrated(self, raw: Vector) -> Vector:
        return self.order_calibration_(raw)

    def _probability(self, windowed: Windowed, raw: Vector) -> Vector | None:
        if self.relevance_ is not None:
            return self.relevance_(windowed, self.featuriser.names)
        return self.order_calibration_(raw) if self.has_old_probabilities else None

    @property
    def has_old_probabilities(self) -> bool:
        """Whether its file is of before 0.3: probabilities are scores then."""
        return self.relevance_ is None and self.gate_.n_queries > 0

    def state(self) -> State:
        """What was learned, as arrays and values that JSON can hold."""
        arrays, values = super().state()
        later = {name: getattr(self, name) for name in LATER}
        changed = {name: value for name, value in later.items() if value != LATER[name]}
        parameters = {name: getattr(self, name) for name in PARAMETERS} | changed
        return arrays, {**values, "parameters": parameters}

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The reranker that has this state."""
        others = dict(values)
        parameters = others.pop("parameters")
        check_parameters(cls, parameters, (*PARAMETERS, *LATER))
        reranker = super().from_state(arrays, others)
        vars(reranker).update(parameters)
        if (meaning := part_of(reranker.featuriser, Meaning)) is not None:
            meaning.budget = reranker.embed_budget
        return reranker

    def _check_state(self) -> None:
        super()._check_state()
        columns = {*(() if self.relevance_ is None else self.relevance_.names)}
        if not columns <= {*self.featuriser.names}:
            raise ValueError("probabilities ask for features that the featuriser does not have")
        if columns and self.ranges_.inputs is None:
            raise ValueError("expected ranges of what probabilities rest on")
