"""The preset for n-best lists, whole: features, a model and the decoder's score together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain, product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Lists
from didyma.data.matrix import Matrix
from didyma.data.passage import Passage, passages_of
from didyma.errors import DataError, check_choice
from didyma.execution import on_cluster
from didyma.files import PathName
from didyma.learning.scoring import linear_scores
from didyma.model import Model, Saved
from didyma.nbest.bags import (
    KINDS,
    VECTORS,
    Bag,
    GivenVectors,
    View,
    learn_views,
    written_inputs,
)
from didyma.nbest.boosting import BoostingReranker
from didyma.nbest.defaults import GRIDS, next_default, warn_of_ends
from didyma.nbest.formats import Input, Output, inputs_of, of_outputs, outputs_of, read
from didyma.nbest.formats.collector import check_number
from didyma.nbest.formats.outputs import output_of, passage_of
from didyma.nbest.joint import DECODER, SETS, JointFeatures
from didyma.nbest.loss import deviation, label_best, least_losses, losses
from didyma.nbest.low_rank import LowRankReranker
from didyma.protocol import Estimator
from didyma.ranking.explanation import FeatureContribution, MatchedSpan, PassageExplanation
from didyma.ranking.featuriser import State, Windowed
from didyma.ranking.latent import LatentPerceptronRanker
from didyma.ranking.ranked import Ranked
from didyma.ranking.svm import SVMRanker
from didyma.text.reranker import MEASURES, Reranker
from didyma.values import kind_of

if TYPE_CHECKING:
    from didyma.metrics import Evaluation

Vector = NDArray[np.float64]

# What each model is, and how it differs from the defaults of its class.
MODELS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "low-rank": (LowRankReranker, {}),
    "boosting": (BoostingReranker, {}),
    "ridge-boosting": (BoostingReranker, {"ridge": 1.0}),
    "svm": (SVMRanker, {"solver": "one-slack"}),
    "perceptron": (LatentPerceptronRanker, {"loss": None, "weights": (1.0,), "epochs": 20}),
    "latent-perceptron": (LatentPerceptronRanker, {"epochs": 20}),
}
# Parameters of the low-rank model that it can tune faster than one by one, and their names there.
TUNED = {"tau": "taus", "lam": "lams", "n_components": "components"}
WEIGHTS = np.arange(101.0)
DECODERS_OWN = "decoder's own score"  # what it adds by its share, beside any feature made of it


@dataclass(eq=False, repr=False)
class NBestReranker(Reranker, Estimator):
    """Chooses among the candidates of n-best lists, by a model and the decoder's score together.

    With s the decoder's score and p the model's, a candidate scores

        (1 − w/100) s + (w/100) c p,

    where c brings p to the scale of s: it is the ratio of their deviations within the training
    lists. The weight w is in per cent: 0 is the decoder's own choice, 100 that of the model alone.
    Without decoder scores s is 0, and 0 is the first candidate.

    `rank` and `explain` take an input (a text or an `Input`) and its outputs: texts, `Output`, or
    mappings with ``text`` and, if wanted, ``features`` and ``vector``; their scores are s.

    Parameters
    ----------
    model : {"low-rank", "boosting", "ridge-boosting", "svm", "perceptron", "latent-perceptron"}
        "low-rank" projects inputs and outputs separately, so that they need not be aligned
        (`LowRankReranker`). The others are linear in joint features of both, the decoder's score
        among them: "boosting" and "ridge-boosting" (`BoostingReranker`), "svm" (`SVMRanker`),
        "perceptron" and "latent-perceptron" (`LatentPerceptronRanker`, the former for the first
        place only). They learn to put the candidates of least loss first.
    parameters : mapping, optional
        Parameters of that model. Of several values, in a list, the best on ``eval_set`` is taken;
        with it, those of C for "svm" are 100, 1000 and 10000 unless C is given. Where the best of
        these, or of the rounds of boosting, is clearly the last, others beyond it are tried too;
        where that of values that were given is an end of them, a warning says so.
    features : {"auto", "suffix", "n-gram", "text"}
        Joint features, for all models but "low-rank"; see `JointFeatures`. "suffix" and "n-gram"
        need candidates as long as their input.
    input_view : {"auto", "suffixes", "n-grams", "characters", "vectors"}
        What "low-rank" sees of inputs; see `Bag`. "auto" takes vectors where all lists have them,
        otherwise suffixes of words.
    output_view : {"auto", "suffixes", "n-grams", "characters", "vectors"}
        What "low-rank" sees of outputs. "auto" takes vectors where all lists have them, otherwise
        n-grams of words.
    min_count : int >= 1
        How often a feature must occur in training (joint ones: make a difference).
    loss : {"auto", "hamming", "edit"}
        How losses come from references where candidates have none: wrong tokens, or edit distance
        over the longer length; see `didyma.nbest.losses`. "auto" counts wrong tokens if all
        lengths agree.
    weight : float in [0, 100], optional
        Weight of the model against the decoder's score, in per cent. None takes the best on
        ``eval_set`` of 0, 1, … 100, the smallest among equals; without it w is 100 for joint
        features, and chosen by cross-validation for "low-rank".
    callback : callable, optional
        Given to the model.

    Attributes
    ----------
    model_ : estimator
    weight_ : float
        w.
    scale_ : float
        c.
    uses_decoder_ : bool
        Whether training lists had decoder scores.
    tuning_ : list of dict
        Parameters, weight and mean loss on ``eval_set`` of each model that was tried.
    interrupted_ : bool
        Whether Ctrl-C ended training early; the best so far is kept.

    >>> from didyma.nbest.formats import of_outputs
    >>> train = of_outputs(
    ...     ["the ring", "they ring"],
    ...     [["DT VB", "DT NN"], ["PR VB", "PR NN"]],
    ...     scores=[[-3.0, -4.0], [-3.0, -4.0]],
    ...     references=["DT NN", "PR VB"],
    ... )
    >>> reranker = NBestReranker("perceptron").fit(train)
    >>> reranker.rerank(train)
    array([1, 0])
    >>> [item.text for item in reranker.rank("the ring", ["DT VB", "DT NN"], scores=[-3.0, -4.0])]
    ['DT NN', 'DT VB']
    """

    model: str = "low-rank"
    parameters: Mapping[str, Any] | None = None
    _: KW_ONLY
    features: str = "auto"
    input_view: str = "auto"
    output_view: str = "auto"
    min_count: int = 1
    loss: str = "auto"
    weight: float | None = None
    callback: Callable[[Any], bool | None] | None = None

    # There are joint features, or views of inputs and outputs, instead.
    featuriser: Annotated[Any, None] = field(init=False)
    trained_on_: Annotated[Any, None] = field(init=False, default=None)
    _gated: Annotated[Any, None] = field(init=False, default=None)
    model_: Annotated[Any, Saved()] = field(init=False)
    joint_: Annotated[JointFeatures | None, Saved()] = field(init=False)
    input_view_: Annotated[View | None, Saved()] = field(init=False)
    output_view_: Annotated[View | None, Saved()] = field(init=False)
    weight_: Annotated[float, Saved()] = field(init=False)
    scale_: Annotated[float, Saved()] = field(init=False)
    uses_decoder_: Annotated[bool, Saved()] = field(init=False)
    tuning_: list[dict[str, Any]] = field(init=False)
    interrupted_: bool = field(init=False)

    _transient: ClassVar[tuple[str, ...]] = ("callback",)

    @on_cluster("didyma.text.cluster:refuse")
    def fit(self, lists: Lists, eval_set: Lists | None = None) -> Self:
        """Learn from lists of outputs; ``eval_set`` are others, to choose weight and parameters by.

        Empty lists teach nothing and are left out, as are those whose candidates have all the same
        loss where a model learns an order only, that is, with joint features.
        """
        self._check_parameters()
        grid = self.grid(eval_set is not None)
        judged = self._judged(lists)
        judged = judged.select_lists(np.flatnonzero(self._is_informative(judged)))
        if not len(judged):
            raise DataError(
                "there is nothing to learn from: no list has candidates of different losses"
            )
        self.uses_decoder_ = judged.scores is not None
        self._learn_features(judged)
        train = self._featurised(judged)
        right = self._right_outputs(judged) if self._has_views else None
        held_out = None if eval_set is None else self._featurised(self._judged(eval_set))
        best = np.inf
        self.tuning_ = []
        self.interrupted_ = False
        models = self._models(grid, train, right, held_out)
        if held_out is not None:
            models = chain(models, self._beyond_defaults(train, right, held_out))
        try:
            for fitted in models:
                scores = self._model_scores(fitted, train)
                scale = deviation(train, _decoder(train)) / deviation(train, scores)
                weight, loss = self._choose_weight(fitted, scale, held_out)
                chosen = {name: getattr(fitted, name) for name in grid}
                self.tuning_.append({**chosen, "weight": weight, "loss": loss})
                if loss is None or loss < best:
                    best = np.inf if loss is None else loss
                    self.model_, self.scale_, self.weight_ = fitted, scale, weight
                if _was_interrupted(fitted):
                    self.interrupted_ = True
                    break
        except KeyboardInterrupt:
            if not self.tuning_:
                raise
            self.interrupted_ = True
        return self

    @property
    def uses_scores(self) -> bool:
        """Whether it was trained with decoder scores."""
        return self.uses_decoder_

    def rerank(self, lists: Lists) -> NDArray[np.int64]:
        """The place of the best output of each list, the first among equals; −1 if empty."""
        return lists.groups.choose(self.predict(lists))

    @on_cluster("didyma.text.cluster:refuse")
    def evaluate(self, lists: Lists, measures: Any = MEASURES) -> Evaluation:
        """Measures of the rankings, in which the outputs of least loss of a list are relevant."""
        return super().evaluate(label_best(self._judged(lists)), measures)

    def _read_file(self, path: PathName) -> Lists:
        return read(path)

    def _read(self, documents: Iterable[Any]) -> list[Passage]:
        return passages_of(documents, passage_of)

    def _list(self, query: Any, documents: list[Passage], scores: list[ArrayLike] | None) -> Lists:
        if not isinstance(query, str | Input):
            raise DataError(f"expected a text or an Input, found {kind_of(query)}", field="query")
        outputs = [output_of(document, n) for n, document in enumerate(documents)]
        return of_outputs([query], [outputs], scores=scores)

    def _rows(self, lists: Lists) -> tuple[Windowed, Lists]:
        self._check_fitted()
        data = self._featurised(lists)
        return Windowed(data.X, np.arange(len(data))), data

    def _raw(self, rows: Lists) -> Vector:
        scores = np.empty(len(rows))
        scores[rows.groups.rows] = self._combined(rows.gathered())
        return scores

    def _reasons(self, rows: Lists, wanted: NDArray[np.int64]) -> list[PassageExplanation]:
        """What decoder and features add; each output of a list has the same features."""
        share, decoder = self.weight_ / 100, _decoder(rows)
        unit = share * self.scale_
        parts = [(name, unit * a, x) for name, a, x in self._contributions(rows)]
        if self.uses_decoder_:
            parts.append((DECODERS_OWN, (1 - share) * decoder, decoder))
        explanations = []
        for n in wanted.tolist():
            contributions = [
                FeatureContribution(name, float(a[n]), None if x is None else float(x[n]))
                for name, a, x in parts
            ]
            contributions.sort(key=lambda part: -abs(part.amount))
            raw = sum(part.amount for part in contributions)
            explanations.append(PassageExplanation(raw, raw, 0.0, tuple(contributions)))
        return explanations

    def _matched(self, lists: Lists, ranked: list[Ranked]) -> list[list[MatchedSpan]]:
        return [[] for _ in ranked]

    def state(self) -> State:
        """What was learned, as arrays and values that JSON can hold."""
        self._check_fitted()
        return Model.of(self).state()

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The reranker that has learned this."""
        reranker: Self = Model.from_state(arrays, values).estimator
        return reranker

    def _check_state(self) -> None:
        model, weighted = self.model_, list[tuple[Any, Any]]()
        if type(model) is not MODELS[self.model][0]:
            raise ValueError(f"{self.model} is no {type(model).__name__}")
        if self._has_views:
            for name, weights in (("input_view_", model.A_), ("output_view_", model.B_)):
                if getattr(self, name) is None:  # as vectors were kept once
                    vectors = GivenVectors()
                    vectors.length_ = len(weights)
                    setattr(self, name, vectors)
            weighted += [(self.input_view_, model.A_), (self.output_view_, model.B_)]
        else:
            weighted += [(self.joint_, model.coef_)]
        for features, weights in weighted:
            if features is not None and len(features.names) != len(weights):
                raise ValueError(f"{len(features.names)} features have {len(weights)} weights")

    @property
    def _has_views(self) -> bool:
        return self.model == "low-rank"

    def grid(self, can_choose: bool) -> dict[str, list[Any]]:
        """The values of each parameter of the model, after a check of all parameters."""
        check_choice(self.model, MODELS, "model")
        if self.weight is not None and not 0 <= self.weight <= 100:
            raise DataError(f"expected 0 to 100 per cent, found {self.weight}", field="weight")
        for name in ("input_view", "output_view"):
            check_choice(getattr(self, name), ("auto", *KINDS, VECTORS), name)
        check_choice(self.features, SETS, "features")
        views = "input_view", "output_view"
        for name in ("features",) if self._has_views else views:
            if getattr(self, name) != "auto":
                says = ", ".join(views) if self._has_views else "features"
                raise DataError(f"is not for {self.model}, which has {says}", field=name)
        kind, defaults = MODELS[self.model]
        parameters = kind().get_params()
        grid = dict(GRIDS.get(self.model, {})) if can_choose else {}
        for name, value in (self.parameters or {}).items():
            if name not in parameters:
                raise DataError(f"{self.model} has no parameter {name!r}", field="parameters")
            grid[name] = list(value) if isinstance(value, (list, tuple)) else [value]
            if len(grid[name]) != 1 and not can_choose:
                raise DataError(
                    f"several values of {name} need held-out lists to choose by", field="eval_set"
                )
            for one in grid[name]:
                kind(**{**defaults, name: one})._check_parameters()
        return grid

    def _judged(self, lists: Lists) -> Lists:
        """The lists with their losses, and with the rows of each together."""
        return replace(lists, losses=losses(lists, self.loss)).gathered()

    def _is_informative(self, lists: Lists) -> NDArray[np.bool_]:
        assert lists.losses is not None
        full = lists.groups.sizes > 0
        if self._has_views:
            return full
        worse = lists.losses > least_losses(lists)[lists.groups.codes]
        return np.bincount(lists.groups.codes[worse], minlength=len(full)) > 0

    def _learn_features(self, lists: Lists) -> None:
        self.joint_ = self.input_view_ = self.output_view_ = None
        if not self._has_views:
            boosted = MODELS[self.model][0] is BoostingReranker
            joint = JointFeatures(
                self.features, self.min_count, decoder=not boosted, binary=boosted
            )
            self.joint_ = joint.fit(lists)
            return
        kinds = self.input_view, self.output_view
        self.input_view_, self.output_view_ = learn_views(lists, *kinds, self.min_count)

    def _featurised(self, lists: Lists) -> Lists:
        """Lists as the model sees them: of features, and of the scores that it was trained with."""
        if not len(lists.groups):
            raise DataError("expected at least one list, found none", field="lists")
        if self.uses_decoder_ and lists.scores is None and len(lists):
            raise DataError("expected a score for each candidate, as in training", field="scores")
        if lists.scores is not None:
            check_number(float(np.abs(lists.scores).max(initial=0.0)), "scores")
        outputs = outputs_of(lists)
        rows = self._outputs(outputs) if self.joint_ is None else self.joint_.transform(lists)
        return replace(lists, items=rows, scores=lists.scores if self.uses_decoder_ else None)

    def _inputs(self, lists: Lists) -> Matrix:
        assert self.input_view_ is not None
        counts = isinstance(self.input_view_, Bag)
        return self.input_view_.transform(Lists((written_inputs if counts else inputs_of)(lists)))

    def _outputs(self, outputs: Sequence[Output]) -> Matrix:
        assert self.output_view_ is not None
        return self.output_view_.transform(Lists(outputs))

    def _right_outputs(self, lists: Lists) -> Matrix:
        """References, or the best candidates where there are none."""
        assert lists.losses is not None
        best = lists.groups.starts[:-1] + lists.groups.choose(-lists.losses)
        outputs = outputs_of(lists)
        right = []
        for input, row in zip(inputs_of(lists), best.tolist()):
            counts = isinstance(self.output_view_, Bag)
            reference = input.reference if counts else input.reference_vector
            output = Output(input.reference or "", vector=input.reference_vector)
            right.append(outputs[row] if reference is None else output)
        return self._outputs(right)

    def _models(
        self, grid: Mapping[str, list[Any]], train: Lists, right: Matrix | None, dev: Lists | None
    ) -> Iterator[Any]:
        kind, defaults = MODELS[self.model]
        tuned = {name: grid[name] for name in grid if self._has_views and name in TUNED}
        others = {name: grid[name] for name in grid if name not in tuned}
        for values in product(*others.values()):
            fitted = kind(**{**defaults, **dict(zip(others, values)), "callback": self.callback})
            if self._has_views:
                self._fit_views(fitted, tuned, train, right, dev)
            elif kind is BoostingReranker:
                fitted.fit(train, eval_set=dev)
            else:
                _fit_ranker(fitted, train, dev)
            yield fitted

    def _beyond_defaults(self, train: Lists, right: Matrix | None, dev: Lists) -> Iterator[Any]:
        """Models beyond the defaults, as long as the best one so far is at their end."""
        given = self.parameters or {}
        warn_of_ends(self.model_, given)
        while further := next_default(self.model_, given, self.tuning_):
            fixed = {name: [getattr(self.model_, name)] for name in given}
            yield from self._models({**fixed, **further}, train, right, dev)

    def _fit_views(
        self,
        fitted: LowRankReranker,
        tuned: Mapping[str, list[Any]],
        train: Lists,
        right: Matrix | None,
        dev: Lists | None,
    ) -> None:
        """Fit the low-rank model; of ``tuned`` parameters, the best on dev lists are taken."""
        fitted.set_params(**{name: values[0] for name, values in tuned.items()})
        if dev is not None:
            fitted.set_params(weight=1.0)  # no cross-validation: dev lists tell
        fitted.fit(self._inputs(train), right, train)
        if dev is not None and tuned:
            choices = {TUNED[name]: values for name, values in tuned.items()}
            fitted.tune(self._inputs(dev), dev, **choices)

    def _model_scores(self, fitted: Any, data: Lists) -> Vector:
        """The score p of each candidate."""
        if not len(data):
            return np.zeros(0)
        if self._has_views:
            return np.concatenate(fitted.similarities(self._inputs(data), data))
        if isinstance(fitted, BoostingReranker):
            return np.concatenate(fitted.score_candidates(data))
        return linear_scores(data.X, fitted.coef_)

    def _combined(self, data: Lists) -> Vector:
        return self._combine(data, self._model_scores(self.model_, data), self.scale_, self.weight_)

    def _combine(self, data: Lists, scores: Vector, scale: float, weight: Any) -> Vector:
        """(1 − w/100) s + (w/100) c p."""
        share = weight / 100
        return (1 - share) * _decoder(data) + share * (scale * scores)

    def _choose_weight(
        self, fitted: Any, scale: float, dev: Lists | None
    ) -> tuple[float, float | None]:
        """The weight of a model, and its mean loss on dev lists."""
        if dev is None:
            if self.weight is not None:
                return float(self.weight), None
            if not (self._has_views and self.uses_decoder_):
                return 100.0, None
            return 100.0 * fitted.weight_ / (fitted.weight_ + scale), None
        weights = WEIGHTS if self.weight is None else np.array([float(self.weight)])
        scores = self._model_scores(fitted, dev)
        chosen = (
            dev.groups.choose(self._combine(dev, scores, scale, weight)) for weight in weights
        )
        total = np.array([dev.loss_of(choice).sum() for choice in chosen])
        best = int(np.argmin(total))
        n_lists = max(1, np.count_nonzero(dev.groups.sizes))
        return float(weights[best]), float(total[best] / n_lists)

    def _contributions(self, data: Lists) -> Iterator[tuple[str, Vector, Vector | None]]:
        """What each feature adds to p of each row, and its values unless it is a pair of such."""
        fitted = self.model_
        if self._has_views:
            assert self.input_view_ is not None
            assert self.output_view_ is not None
            names = {"input_names": self.input_view_.names, "output_names": self.output_view_.names}
            inputs = self._inputs(data)
            pairs: dict[str, Vector] = {}
            for n in range(len(data)):
                explanation = fitted.explain(inputs, data.X[[n]], None, **names)
                for source, target, value in explanation.pairs:
                    pairs.setdefault(f"{source} ~ {target}", np.zeros(len(data)))[n] += value
            yield from ((name, amounts, None) for name, amounts in pairs.items())
            return
        assert self.joint_ is not None
        rows, columns = sp.csc_array(data.X), self.joint_.names
        if isinstance(fitted, BoostingReranker):
            rows = sp.csc_array(rows > 0, dtype=np.float64)
            yield DECODER, fitted.decoder_weight_ * _decoder(data), _decoder(data)
        for k in np.flatnonzero(np.diff(rows.indptr) * (fitted.coef_ != 0)).tolist():
            values = rows[:, [k]].toarray()[:, 0]
            yield columns[k], values * fitted.coef_[k], values


def _decoder(data: Lists) -> Vector:
    """The decoder's score of each candidate, 0 if there is none."""
    return np.zeros(len(data)) if data.scores is None else data.scores


def _fit_ranker(fitted: Any, train: Lists, dev: Lists | None) -> None:
    """Fit a ranker of rows; dev lists tell the best epoch of a perceptron."""
    watched = None
    if dev is not None and isinstance(fitted, LatentPerceptronRanker):
        watched = label_best(dev)
    fitted.fit(label_best(train), eval_set=watched)


def _was_interrupted(fitted: Any) -> bool:
    """Whether a model kept what it had when Ctrl-C came."""
    result = getattr(fitted, "result_", None)
    status = getattr(result, "status", None)
    return status == "interrupted" or getattr(fitted, "interrupted_", False)
