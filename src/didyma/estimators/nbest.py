"""Rerank n-best lists of texts: features, a model and the decoder's score in one estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from didyma.data import Groups, Lists
from didyma.errors import DataError
from didyma.estimators.boosting import BoostingReranker
from didyma.estimators.latent import LatentPerceptronRanker
from didyma.estimators.low_rank import LowRankReranker
from didyma.estimators.svm import SVMRanker
from didyma.features.bags import KINDS, Bag
from didyma.features.joint import DECODER, JointFeatures
from didyma.formats.nbest import Candidate, NBest, losses, scores
from didyma.matrix import Matrix
from didyma.model import Savable
from didyma.scoring import linear_scores

__all__ = ["MODELS", "Contribution", "Explanation", "NBestReranker"]

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
# Parameters that are chosen on dev lists unless they are given.
GRIDS: dict[str, dict[str, list[Any]]] = {"svm": {"C": [100.0, 1000.0, 10000.0]}}
# Parameters of the low-rank model that it can tune faster than one by one, and their names there.
TUNED = {"tau": "taus", "lam": "lams", "n_components": "components"}
WEIGHTS = np.arange(101.0)
VECTORS = "vectors"
TINY = 1e-12  # what is smaller, relative to the values, is rounding


class Contribution(NamedTuple):
    """What a feature, or a pair of an input feature and an output feature, speaks for."""

    name: str
    value: float


class Explanation(NamedTuple):
    """Why a candidate was chosen instead of the decoder's: differences between the two.

    ``decoder`` and ``model`` add up to the difference of their scores, ``contributions`` (the
    largest ones) and ``rest`` to ``model``.
    """

    chosen: int
    first: int
    decoder: float
    model: float
    contributions: list[Contribution]
    rest: float


@dataclass(frozen=True, eq=False)
class _Data:
    """Lists as a model sees them; ``inputs`` are for the low-rank one."""

    lists: Lists
    inputs: Matrix | None

    def split(self, values: Any) -> list[Any]:
        """Rows or values of all candidates, list by list."""
        starts = self.lists.groups.starts.tolist()
        return [values[i:j] for i, j in pairwise(starts)]

    @property
    def decoder(self) -> Vector:
        """The decoder's score of each candidate, 0 if there is none."""
        n_rows = self.lists.X.shape[0]
        return np.zeros(n_rows) if self.lists.scores is None else self.lists.scores

    @property
    def boosted(self) -> tuple[list[Matrix], list[Vector] | None]:
        """Candidates and decoder scores of each list."""
        found = self.lists.scores
        return self.split(self.lists.X), None if found is None else self.split(found)

    @property
    def best(self) -> Vector:
        """1 for the candidates of least loss of their list, 0 for others."""
        assert self.lists.losses is not None
        full = self.lists.groups.sizes > 0
        least = np.full(len(self.lists.groups), np.inf)
        least[full] = np.minimum.reduceat(self.lists.losses, self.lists.groups.starts[:-1][full])
        return (self.lists.losses == least[self.lists.groups.codes]).astype(np.float64)


class NBestReranker(Savable, BaseEstimator):
    """Chooses among the candidates of n-best lists, by a model and the decoder's score together.

    With s the decoder's score and p the model's, a candidate scores

        (1 − w/100) s + (w/100) c p,

    where c brings p to the scale of s: it is the ratio of their deviations within the training
    lists. The weight w is in per cent: 0 is the decoder's own choice, 100 that of the model alone.
    Without decoder scores s is 0, and 0 is the first candidate.

    Parameters
    ----------
    model : str
        "low-rank" projects inputs and outputs separately, so that they need not be aligned
        (`LowRankReranker`). The others are linear in joint features of both, the decoder's score
        among them: "boosting" and "ridge-boosting" (`BoostingReranker`), "svm" (`SVMRanker`),
        "perceptron" and "latent-perceptron" (`LatentPerceptronRanker`, the former for the first
        place only). They learn to put the candidates of least loss first.
    parameters : mapping, optional
        Parameters of that model. Of several values, in a list, the best on ``dev`` is taken; with
        ``dev``, those of C for "svm" are 100, 1000 and 10000 unless it is given.
    features : {"auto", "suffix", "n-gram", "text"}
        Joint features; see `JointFeatures`.
    input_view, output_view : {"auto", "suffixes", "n-grams", "characters", "vectors"}
        What "low-rank" sees of inputs and outputs; see `Bag`. "auto" takes vectors where all lists
        have them, otherwise suffixes of the input's words, and n-grams of the output's.
    min_count : int
        How often a feature must occur in training (joint ones: make a difference).
    loss : {"auto", "hamming", "edit"}
        How losses come from references, for lists without any; see `didyma.formats.nbest.losses`.
    weight : float, optional
        w. None takes the best on ``dev`` of 0, 1, … 100, the smallest among equals; without ``dev``
        it is 100 for joint features, and chosen by cross-validation for "low-rank".
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
        Parameters, weight and mean loss on ``dev`` of each model that was tried.
    interrupted_ : bool
        Whether Ctrl-C ended training early; the best so far is kept.

    >>> train = [
    ...     NBest("1", "the ring", "DT NN", [Candidate("DT VB", -3.0), Candidate("DT NN", -4.0)]),
    ...     NBest("2", "they ring", "PR VB", [Candidate("PR VB", -3.0), Candidate("PR NN", -4.0)]),
    ... ]
    >>> reranker = NBestReranker("perceptron").fit(train)
    >>> reranker.rerank(train)
    [1, 0]
    """

    _state: ClassVar[tuple[str, ...]] = (
        *("model_", "joint_", "input_view_", "output_view_"),
        *("weight_", "scale_", "uses_decoder_"),
    )
    _transient: ClassVar[tuple[str, ...]] = ("callback",)

    model_: Any
    joint_: JointFeatures | None
    input_view_: Bag | None
    output_view_: Bag | None
    weight_: float
    scale_: float
    uses_decoder_: bool
    tuning_: list[dict[str, Any]]
    interrupted_: bool

    def __init__(
        self,
        model: str = "low-rank",
        parameters: Mapping[str, Any] | None = None,
        *,
        features: str = "auto",
        input_view: str = "auto",
        output_view: str = "auto",
        min_count: int = 1,
        loss: str = "auto",
        weight: float | None = None,
        callback: Callable[[Any], bool | None] | None = None,
    ) -> None:
        self.model = model
        self.parameters = parameters
        self.features = features
        self.input_view = input_view
        self.output_view = output_view
        self.min_count = min_count
        self.loss = loss
        self.weight = weight
        self.callback = callback

    def fit(self, lists: Sequence[NBest], dev: Sequence[NBest] | None = None) -> Self:
        """Learn from lists; ``dev`` are others, to choose the weight and parameters by.

        Empty lists teach nothing and are left out, as are those whose candidates have all the same
        loss where a model learns an order only, that is, with joint features.
        """
        grid = self._grid(dev is not None)
        measured = losses(lists, self.loss)
        useful = [i for i, loss in enumerate(measured) if self._teaches(loss)]
        if not useful:
            raise DataError(
                "there is nothing to learn from: no list has candidates of different losses"
            )
        kept, known = [lists[i] for i in useful], [measured[i] for i in useful]
        self.uses_decoder_ = scores(kept) is not None
        self._learn_features(kept)
        train = self._read(kept, known)
        right = self._right_outputs(kept, known)
        held_out = None if dev is None else self._read(dev, losses(dev, self.loss))
        best = np.inf
        self.tuning_ = []
        self.interrupted_ = False
        try:
            for fitted in self._models(grid, train, right, held_out):
                scale = _deviation(train, train.decoder) / _deviation(
                    train, self._model_scores(fitted, train)
                )
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

    def score_candidates(self, lists: Sequence[NBest]) -> list[Vector]:
        """The score of each candidate of each list; higher is better."""
        data = self._read(lists)
        return np.split(self._combined(data), data.lists.groups.starts[1:-1])

    def rerank(self, lists: Sequence[NBest]) -> list[int]:
        """The place of the best candidate of each list, the first among equals; −1 if empty."""
        data = self._read(lists)
        return data.lists.groups.choose(self._combined(data)).tolist()

    def explain(self, nbest: NBest, n: int = 10) -> Explanation:
        """Which features speak for the chosen candidate, and which for the decoder's.

        Positive contributions, in the unit of scores, are in favour of the chosen one.
        """
        if not nbest.candidates:
            raise DataError("expected candidates, found none", field=f"list {nbest.id!r}")
        data = self._read([nbest])
        chosen = int(data.lists.groups.choose(self._combined(data))[0])
        first = int(data.lists.groups.choose(data.decoder)[0])
        unit = self.weight_ / 100 * self.scale_
        found = [
            Contribution(name, unit * value)
            for name, value in self._contributions(data, chosen, first)
            if value != 0
        ]
        found.sort(key=lambda contribution: -abs(contribution.value))
        return Explanation(
            chosen,
            first,
            (1 - self.weight_ / 100) * float(data.decoder[chosen] - data.decoder[first]),
            sum(contribution.value for contribution in found),
            found[:n],
            sum(contribution.value for contribution in found[n:]),
        )

    def _check_state(self) -> None:
        model, weighted = self.model_, list[tuple[Bag | JointFeatures | None, Any]]()
        if self._has_views:
            weighted += [(self.input_view_, model.A_), (self.output_view_, model.B_)]
        else:
            weighted += [(self.joint_, model.coef_)]
        for features, weights in weighted:
            if features is not None and features.n_features_out != len(weights):
                count = features.n_features_out
                raise ValueError(f"{count} features have {len(weights)} weights")

    @property
    def _has_views(self) -> bool:
        return self.model == "low-rank"

    def _grid(self, can_choose: bool) -> dict[str, list[Any]]:
        """The values of each parameter of the model, after a check of all parameters."""
        if self.model not in MODELS:
            names = ", ".join(map(repr, MODELS))
            raise DataError(f"expected one of {names}, found {self.model!r}", field="model")
        if self.weight is not None and not 0 <= self.weight <= 100:
            raise DataError(f"expected 0 to 100 per cent, found {self.weight}", field="weight")
        for name in ("input_view", "output_view"):
            if (kind := getattr(self, name)) not in ("auto", VECTORS, *KINDS):
                names = ", ".join(map(repr, ("auto", *KINDS, VECTORS)))
                raise DataError(f"expected one of {names}, found {kind!r}", field=name)
        known = MODELS[self.model][0]().get_params()
        grid = dict(GRIDS.get(self.model, {})) if can_choose else {}
        for name, value in (self.parameters or {}).items():
            if name not in known:
                raise DataError(f"{self.model} has no parameter {name!r}", field="parameters")
            grid[name] = list(value) if isinstance(value, (list, tuple)) else [value]
            if len(grid[name]) != 1 and not can_choose:
                raise DataError(f"several values of {name} need dev, to choose by", field="dev")
        return grid

    def _teaches(self, loss: Vector) -> bool:
        return len(loss) > 0 and (self._has_views or bool(loss.min() < loss.max()))

    def _learn_features(self, lists: Sequence[NBest]) -> None:
        self.joint_ = self.input_view_ = self.output_view_ = None
        if not self._has_views:
            boosted = MODELS[self.model][0] is BoostingReranker
            joint = JointFeatures(
                self.features, self.min_count, decoder=not boosted, binary=boosted
            )
            self.joint_ = joint.fit(lists)
            return
        outputs = [candidate for nbest in lists for candidate in nbest.candidates]
        kind = self.input_view
        if kind == "auto":
            kind = "suffixes" if any(nbest.vector is None for nbest in lists) else VECTORS
        if kind != VECTORS:
            self.input_view_ = Bag(kind, min_count=self.min_count).fit(map(_input_text, lists))
        kind = self.output_view
        if kind == "auto":
            kind = "n-grams" if any(output.vector is None for output in outputs) else VECTORS
        if kind != VECTORS:
            texts = [nbest.reference for nbest in lists if nbest.reference is not None]
            texts += [output.text for output in outputs]
            self.output_view_ = Bag(kind, min_count=self.min_count).fit(texts)

    def _read(self, lists: Sequence[NBest], measured: Sequence[Vector] | None = None) -> _Data:
        """Lists as the model sees them, with their losses where these are needed."""
        check_is_fitted(self, "joint_")
        if not len(lists):
            raise DataError("expected at least one list, found none", field="lists")
        decoder = scores(lists) if self.uses_decoder_ else None
        candidates = [candidate for nbest in lists for candidate in nbest.candidates]
        if self.uses_decoder_ and decoder is None and candidates:
            raise DataError("expected a score for each candidate, as in training", field="score")
        rows = self._outputs(candidates) if self.joint_ is None else self.joint_.transform(lists)
        found = Lists(
            rows,
            grouping=Groups.from_lists([len(nbest) for nbest in lists]),
            losses=None if measured is None else np.concatenate(measured),
            scores=None if decoder is None else np.concatenate(decoder),
        )
        return _Data(found, self._inputs(lists) if self._has_views else None)

    def _inputs(self, lists: Sequence[NBest]) -> Matrix:
        if self.input_view_ is not None:
            return self.input_view_.transform(map(_input_text, lists))
        return _stacked([nbest.vector for nbest in lists])

    def _outputs(self, candidates: Sequence[Candidate]) -> Matrix:
        if self.output_view_ is not None:
            return self.output_view_.transform(candidate.text for candidate in candidates)
        return _stacked([candidate.vector for candidate in candidates])

    def _right_outputs(self, lists: Sequence[NBest], measured: Sequence[Vector]) -> Matrix | None:
        """References, or the best candidates where there are none."""
        if not self._has_views:
            return None
        right = []
        for nbest, loss in zip(lists, measured):
            known = nbest.reference if self.output_view_ is not None else nbest.reference_vector
            best = nbest.candidates[int(loss.argmin())]
            reference = Candidate(nbest.reference or "", vector=nbest.reference_vector)
            right.append(best if known is None else reference)
        return self._outputs(right)

    def _models(
        self,
        grid: Mapping[str, list[Any]],
        train: _Data,
        right: Matrix | None,
        dev: _Data | None,
    ) -> Iterator[Any]:
        """A fitted model for each combination of parameters."""
        kind, defaults = MODELS[self.model]
        tuned = {name: grid[name] for name in grid if self._has_views and name in TUNED}
        others = {name: grid[name] for name in grid if name not in tuned}
        for values in product(*others.values()):
            fitted = kind(**{**defaults, **dict(zip(others, values)), "callback": self.callback})
            if self._has_views:
                _fit_views(fitted, tuned, train, right, dev)
            elif kind is BoostingReranker:
                _fit_boosting(fitted, train, dev)
            else:
                _fit_ranker(fitted, train, dev)
            yield fitted

    def _model_scores(self, fitted: Any, data: _Data) -> Vector:
        """The score p of each candidate."""
        if not data.lists.X.shape[0]:
            return np.zeros(0)
        if self._has_views:
            return np.concatenate(fitted.similarities(data.inputs, data.lists))
        if isinstance(fitted, BoostingReranker):
            return np.concatenate(fitted.score_candidates(*data.boosted))
        return linear_scores(data.lists.X, fitted.coef_)

    def _combined(self, data: _Data) -> Vector:
        """The score of each candidate."""
        return self._mix(data, self._model_scores(self.model_, data), self.scale_, self.weight_)

    def _mix(self, data: _Data, found: Vector, scale: float, weight: Any) -> Vector:
        share = weight / 100
        return (1 - share) * data.decoder + share * (scale * found)

    def _choose_weight(
        self, fitted: Any, scale: float, dev: _Data | None
    ) -> tuple[float, float | None]:
        """The weight of a model, and its mean loss on dev lists."""
        if dev is None:
            if self.weight is not None:
                return float(self.weight), None
            if not (self._has_views and self.uses_decoder_):
                return 100.0, None
            return 100.0 * fitted.weight_ / (fitted.weight_ + scale), None
        weights = WEIGHTS if self.weight is None else np.array([float(self.weight)])
        found = self._model_scores(fitted, dev)
        groups = dev.lists.groups
        chosen = (groups.choose(self._mix(dev, found, scale, weight)) for weight in weights)
        total = np.array([dev.lists.loss_of(choice).sum() for choice in chosen])
        best = int(np.argmin(total))
        n_lists = max(1, np.count_nonzero(groups.sizes))
        return float(weights[best]), float(total[best] / n_lists)

    def _contributions(self, data: _Data, chosen: int, first: int) -> list[tuple[str, float]]:
        """What each feature adds to p of one candidate more than to that of another."""
        rows, fitted = data.lists.X, self.model_
        if self._has_views:
            inputs, outputs = _names(self.input_view_), _names(self.output_view_)
            pairs: dict[str, float] = {}
            for place, sign in ((chosen, 1.0), (first, -1.0)):
                found = fitted.explain(
                    data.inputs, rows[[place]], None, input_names=inputs, output_names=outputs
                )
                for source, target, value in found.pairs:
                    name = f"{source} ~ {target}"
                    pairs[name] = pairs.get(name, 0.0) + sign * value
            return list(pairs.items())
        assert self.joint_ is not None
        dense = sp.csr_array(rows[[chosen, first]]).toarray()
        extra = []
        if isinstance(fitted, BoostingReranker):
            dense = (dense > 0).astype(np.float64)
            difference = data.decoder[chosen] - data.decoder[first]
            extra = [(DECODER, float(fitted.decoder_weight_ * difference))]
        values = (dense[0] - dense[1]) * fitted.coef_
        names = self.joint_.get_feature_names_out()
        return extra + [(str(names[k]), float(values[k])) for k in np.flatnonzero(values)]


def _fit_views(
    fitted: LowRankReranker,
    tuned: Mapping[str, list[Any]],
    train: _Data,
    right: Matrix | None,
    dev: _Data | None,
) -> None:
    """Fit the low-rank model; of ``tuned`` parameters, the best on dev lists are taken."""
    fitted.set_params(**{name: values[0] for name, values in tuned.items()})
    if dev is not None:
        fitted.set_params(weight=1.0)  # no cross-validation: dev lists tell
    fitted.fit(train.inputs, right, train.lists)
    if dev is not None and tuned:
        choices = {TUNED[name]: values for name, values in tuned.items()}
        fitted.tune(dev.inputs, dev.lists, **choices)


def _fit_boosting(fitted: BoostingReranker, train: _Data, dev: _Data | None) -> None:
    """Fit a boosting model, whose number of rounds dev lists tell."""
    held_out = None
    if dev is not None:
        rows, decoder = dev.boosted
        held_out = (rows, dev.split(dev.lists.losses), decoder)
    rows, decoder = train.boosted
    fitted.fit(rows, train.split(train.lists.losses), decoder, eval_set=held_out)


def _fit_ranker(fitted: Any, train: _Data, dev: _Data | None) -> None:
    """Fit a ranker of rows; dev lists tell the best epoch of a perceptron."""
    watched: dict[str, Any] = {}
    if dev is not None and isinstance(fitted, LatentPerceptronRanker):
        watched = {"eval_set": (dev.lists.X, dev.best), "eval_qid": dev.lists.groups.codes}
    fitted.fit(train.lists.X, train.best, qid=train.lists.groups.codes, **watched)


def _was_interrupted(fitted: Any) -> bool:
    """Whether a model kept what it had when Ctrl-C came."""
    result = getattr(fitted, "result_", None)
    status = getattr(result, "status", None)
    return status == "interrupted" or getattr(fitted, "interrupted_", False)


def _input_text(nbest: NBest) -> str:
    if nbest.input is None:
        raise DataError("expected an input, found none", field=f"list {nbest.id!r}")
    return nbest.input


def _stacked(vectors: Sequence[Vector | None]) -> Vector:
    lengths = {0 if vector is None else len(vector) for vector in vectors}
    if 0 in lengths or len(lengths) > 1:
        raise DataError(f"expected vectors of one length, found {sorted(lengths)}", field=VECTORS)
    return np.array(vectors, dtype=np.float64)


def _names(view: Bag | None) -> Any:
    return None if view is None else view.get_feature_names_out()


def _deviation(data: _Data, values: Vector) -> float:
    """The root mean square of values less the mean of their list; 1 if that is 0."""
    groups = data.lists.groups
    means = np.add.reduceat(values, groups.starts[:-1]) / groups.sizes
    compared = groups.sizes[groups.codes] > 1
    centred = (values - means[groups.codes])[compared]
    deviation = float(np.sqrt(np.mean(centred**2))) if len(centred) else 0.0
    return deviation if deviation > TINY * float(np.abs(values).max()) else 1.0
