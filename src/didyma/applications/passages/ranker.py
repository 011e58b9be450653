"""Questions and passages through a convolutional network (Severyn & Moschitti 2015).

Each word is a vector and, beside it, a small vector that tells whether the other text has the word
too. A convolution over neighbouring words and a maximum over their places make one vector of each
text, φ(q) and φ(d); a hidden layer over both makes the score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, NamedTuple, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from didyma import DataError
from didyma.applications.networks.estimator import NetworkEstimator, device_of
from didyma.applications.networks.words import (
    PADDING,
    RESERVED,
    Numbering,
    Vectors,
    as_vectors,
    start_from,
)
from didyma.applications.passages.text_pairs import N_OVERLAPS, TextPairs, Texts, shape, tokenize
from didyma.data import Lists
from didyma.metrics import Evaluator
from didyma.model import Model, Saved, State
from didyma.nn import RankingLoss
from didyma.ranking import Featuriser, losses
from didyma.ranking.feature_maps import FeatureMap

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

CROSS_ENTROPY = "cross-entropy"
SPREAD = 0.3  # of word vectors that are learned
CHUNK = 64  # texts of about one length that are convolved together
AT_ONCE = 32  # questions that are scored together


class PassageNetwork(nn.Module):
    """Scores passages for questions, row by row.

    The encoder of each side is a wide convolution of ``filters`` filters over ``width`` words and
    the maximum of each over all places; φ = relu of that. The score of a pair is

        u · tanh(V [φ(q); φ(d)] + b) + c,

    with φ(q)ᵀ M φ(d) as a further input of the hidden layer if ``similarity`` is true.

    >>> network = PassageNetwork(n_words=9, dimension=4, filters=6)
    >>> question = Texts(torch.tensor([[2, 3]]), torch.tensor([[1, 3]]))
    >>> passage = Texts(torch.tensor([[3, 4, 5]]), torch.tensor([[3, 1, 1]]))
    >>> network(question, passage).shape, network.embed(question, passage).shape
    (torch.Size([1]), torch.Size([1, 12]))
    """

    def __init__(
        self,
        n_words: int,
        dimension: int = 50,
        *,
        overlap: int = 5,
        filters: int = 100,
        width: int = 5,
        hidden: int = 100,
        dropout: float = 0.3,
        similarity: bool = False,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(n_words, dimension, padding_idx=PADDING)
        self.overlaps = nn.Embedding(N_OVERLAPS, overlap, padding_idx=PADDING)
        # A whole window of padding on both sides: every text then has the same empty window, and
        # the maximum does not depend on how far a batch is padded.
        self.question, self.passage = (
            nn.Conv1d(dimension + overlap, filters, width, padding=width) for _ in range(2)
        )
        self.similarity = nn.Bilinear(filters, filters, 1, bias=False) if similarity else None
        self.hidden = nn.Linear(2 * filters + similarity, hidden)
        self.output = nn.Linear(hidden, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, questions: Texts, passages: Texts) -> Tensor:
        """Score of each pair (B,)."""
        q, d = self._encode(self.question, questions), self._encode(self.passage, passages)
        joint = [self.dropout(q), self.dropout(d)]
        if self.similarity is not None:
            joint.append(self.similarity(q, d))
        return self.output(self.dropout(torch.tanh(self.hidden(torch.cat(joint, 1)))))[:, 0]

    def embed(self, questions: Texts, passages: Texts) -> Tensor:
        """[φ(q), φ(d)] of each pair (B, 2 · filters)."""
        q, d = self._encode(self.question, questions), self._encode(self.passage, passages)
        return torch.cat([q, d], 1)

    def _encode(self, convolution: nn.Conv1d, texts: Texts) -> Tensor:
        lengths = (texts.words != PADDING).sum(1)
        order = lengths.argsort()
        encoded = []
        for rows in order.split(CHUNK):
            n = int(lengths[rows[-1:]].sum().clamp(min=1))  # of the longest, if there is one
            vectors = [self.words(texts.words[rows, :n]), self.overlaps(texts.overlaps[rows, :n])]
            encoded.append(convolution(torch.cat(vectors, 2).mT).amax(2).relu())
        return torch.cat(encoded)[order.argsort()]


class ScoredPassage(NamedTuple):
    """A passage, its place in the list that was given, and its score."""

    place: int
    passage: str
    score: float


@dataclass(eq=False, repr=False)
class PassageRanker(NetworkEstimator[PassageNetwork]):
    """Ranks passages by how well they answer a question: `PassageNetwork`, trained.

    It is given `Lists` of passages with their questions, with labels of 1 for passages that answer
    them. Words that were seen once only, or never, share a vector; all digits are one digit to it.

    Parameters
    ----------
    loss : str or RankingLoss
        "cross-entropy" judges each passage alone; "ap", "rr", "ndcg@10", … is the structured hinge
        of that measure over all passages of a question. The former is that of Severyn and
        Moschitti; for the latter see `didyma.nn.RankingLoss`. It learns from questions that have
        passages of both kinds.
    feature_map : str or FeatureMap
        Feature map of the structured hinge: "pairwise", "positional", "truncated", "top@10".
    latent : bool
        Of the structured hinge.
    dimension : int >= 1
        Size of word vectors, if learned.
    overlap : int
        Size of the vectors that tell shared words.
    filters : int >= 1
        Size of a sentence's vector.
    width : int >= 1
        Words in a window.
    hidden : int >= 1
        Units of the joint layer.
    similarity : bool
        Add a learned similarity of both sentences' vectors, φ(q)ᵀ M φ(d).
    dropout : float in [0, 0.99]
        Share of the inputs and outputs of the joint layer that a step of training leaves out.
    max_length : int
        Words of a text that are read.
    tune_vectors : bool
        Whether word vectors that `fit` is given are trained further.
    batch_size : int >= 1
        Questions in each step, with all their passages.

    Training, ``device`` and other attributes are those of `NetworkEstimator`; the epoch that is
    kept has the best MAP on ``eval_set``, or is the last.

    Attributes
    ----------
    words_ : list of str
        The words that have a vector.

    Examples
    --------
    >>> asked, told = ["who sings ?", "who runs ?"], ["Ann sings .", "Bob runs ."]
    >>> lists = Lists.of_texts(asked, [told, told], [[1, 0], [0, 1]])
    >>> settings = {"dimension": 4, "filters": 8, "epochs": 30, "learning_rate": 0.01}
    >>> ranker = PassageRanker("ap", **settings).fit(lists)
    >>> ranker.rank("who jumps ?", ["Cid jumps .", "Dan sleeps ."])[0].passage
    'Cid jumps .'
    >>> ranker.embed(lists).shape
    (4, 16)
    """

    loss: str | losses.ItemwiseLoss = "cross-entropy"
    _: KW_ONLY
    feature_map: str | FeatureMap = "pairwise"
    latent: bool = False
    dimension: int = 50
    overlap: int = 5
    filters: int = 100
    width: int = 5
    hidden: int = 100
    similarity: bool = False
    dropout: float = 0.3
    max_length: int = 50
    tune_vectors: bool = True

    words_: Annotated[list[str], Saved()] = field(init=False)

    def fit(
        self, lists: Lists, eval_set: Lists | None = None, vectors: Vectors | None = None
    ) -> Self:
        """Learn from questions with judged passages.

        ``eval_set`` are held-out ones, whose MAP chooses the epoch and the learning rate.
        ``vectors`` are words and the vector of each, as `didyma.data.word_vectors.read` gives them;
        other words that occur twice get random ones.
        """
        self._check_parameters()
        loss = self._loss()
        judged = _read(lists, "lists")
        if loss is not None:
            judged = judged.select_lists(np.flatnonzero(_differing(judged)))
        if len(np.unique(judged.y >= 1)) < 2:
            raise DataError(
                "there is nothing to learn from: expected passages that answer a question and "
                "others that do not",
                field="lists",
            )
        given_words, matrix = _by_shape(*as_vectors(vectors, self.dimension))
        texts = judged.query_texts + judged.texts
        often = Numbering.build(([*map(shape, tokenize(text))] for text in texts), min_count=2)
        self.words_ = sorted({*given_words, *often.words})
        pairs, network = self._pairs(judged), self._start(given_words, matrix)

        def batches(rng: np.random.Generator) -> list[Integers]:
            n_steps = -(-len(pairs) // self.batch_size)
            return np.array_split(rng.permutation(len(pairs)), n_steps)

        def cost(chosen: Integers) -> Tensor:
            batch, place = pairs.batch(chosen), device_of(network)
            assert batch.labels is not None
            scores = network(batch.queries.to(place), batch.passages.to(place))
            if loss is not None:
                return loss(scores, batch.labels, group=batch.sizes)
            relevant = torch.from_numpy(batch.labels >= 1).to(scores)
            return binary_cross_entropy_with_logits(scores, relevant)

        evaluate = None if eval_set is None else self._evaluation(network, eval_set, "eval_set")
        return self._train(network, batches, cost, evaluate, (lists, eval_set, vectors))

    def predict(self, lists: Lists) -> Floats:
        """Score of each passage."""
        network = self.network
        return _apply(network, network, self._pairs(lists))

    def embed(self, lists: Lists) -> Floats:
        """[φ(q), φ(d)] of each passage, (n_passages, 2 · filters): features for other rankers."""
        network = self.network
        return _apply(network, network.embed, self._pairs(lists))

    def rank(self, query: str, passages: Sequence[str]) -> list[ScoredPassage]:
        """The passages from the best to the worst, equals in the order they are given."""
        scores = self.predict(Lists.of_texts([query], [passages]))
        order = np.argsort(-scores, kind="stable").tolist()
        return [ScoredPassage(k, passages[k], float(scores[k])) for k in order]

    def score(self, lists: Lists) -> float:
        """Mean average precision over the questions that have passages of both kinds."""
        return self._evaluation(self.network, lists, "lists")()

    def _loss(self) -> RankingLoss | None:
        if self.loss == CROSS_ENTROPY:
            return None
        return RankingLoss(self.loss, self.feature_map, latent=self.latent)

    def _build(self, dimension: int | None = None) -> PassageNetwork:
        return PassageNetwork(
            len(self.words_) + RESERVED,
            dimension or self.weights_["words.weight"].shape[-1],
            overlap=self.overlap,
            filters=self.filters,
            width=self.width,
            hidden=self.hidden,
            dropout=self.dropout,
            similarity=self.similarity,
        )

    def _start(self, given_words: Sequence[str], matrix: NDArray[np.float32]) -> PassageNetwork:
        """The network before training, with the word vectors that are given."""
        network = self._begin(lambda: self._build(matrix.shape[1]))
        if given_words:
            numbers = Numbering(self.words_).ids(given_words)
            start_from(network.words, numbers, matrix, tune=self.tune_vectors)
        else:
            with torch.no_grad():
                network.words.weight *= SPREAD
        return network

    def _evaluation(self, network: PassageNetwork, lists: Lists, field: str) -> Callable[[], float]:
        judged = _read(lists, field)
        judged = judged.select_lists(np.flatnonzero(judged.mixed))
        if not len(judged):
            raise DataError("no question has answers and other passages", field=field)
        pairs = self._pairs(judged)
        evaluator = Evaluator(judged.y, judged.groups, ["AP"])
        return lambda: float(evaluator(_apply(network, network, pairs))["AP"].mean())

    def _pairs(self, lists: Lists) -> TextPairs:
        read = _read(lists, "lists", judged=False)
        return TextPairs(read, Numbering(self.words_), self.max_length)


class PassageEmbedding(Featuriser):
    """[φ(q), φ(d)] of a trained `PassageRanker`, 2 · filters columns.

    It learned with the network, so that `fit` has nothing to do: the lists that another ranker
    learns from may be others.

    >>> asked, told = ["who sings ?", "who runs ?"], ["Ann sings .", "Bob runs ."]
    >>> lists = Lists.of_texts(asked, [told, told], [[1, 0], [0, 1]])
    >>> ranker = PassageRanker(dimension=4, filters=8, epochs=1).fit(lists)
    >>> PassageEmbedding(ranker).fit(lists).transform(lists).shape
    (4, 16)
    """

    def __init__(self, ranker: PassageRanker) -> None:
        self.ranker = ranker

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        sides = ("question", "passage")
        return tuple(f"{side}_{k}" for side in sides for k in range(self.ranker.filters))

    def fit(self, lists: Lists) -> Self:
        """Leave everything as it is."""
        return self

    def transform(self, lists: Lists) -> NDArray[np.float64]:
        """The vectors of question and passage of each row."""
        return self.ranker.embed(lists)

    def state(self) -> State:
        """The network and its words."""
        arrays, record = Model.of(self.ranker).state()
        return arrays, {"ranker": record}

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The embedding by this network."""
        ranker = Model.from_state(arrays, values["ranker"]).estimator
        if not isinstance(ranker, PassageRanker):
            raise ValueError(f"expected a PassageRanker, found {type(ranker).__name__}")
        return cls(ranker)


def _read(lists: Lists, field: str, *, judged: bool = True) -> Lists:
    if not isinstance(lists, Lists):
        raise DataError(
            f"expected Lists, as Lists.of_texts makes them, found {type(lists).__name__}",
            field=field,
        )
    if not len(lists.groups):
        raise DataError("expected a question at least, found none", field=field)
    if judged and lists.labels is None:
        raise DataError("expected judged passages, found no labels", field=field)
    return lists


def _differing(lists: Lists) -> NDArray[np.bool_]:
    """Whether a list has several labels."""
    groups = lists.groups
    pairs = np.unique(np.stack([groups.codes, lists.y]), axis=1)
    return np.bincount(pairs[0].astype(np.int64), minlength=len(groups)) > 1


def _by_shape(
    words: Sequence[str], matrix: NDArray[np.float32]
) -> tuple[list[str], NDArray[np.float32]]:
    """Words in their `shape`, each once, and their vectors."""
    first = {shape(word): row for row, word in reversed(list(enumerate(words)))}
    return list(first), matrix[list(first.values())]


def _apply(
    network: PassageNetwork, function: Callable[[Texts, Texts], Tensor], pairs: TextPairs
) -> Floats:
    """Values of a function of the network for all rows, a few lists at a time."""
    place = device_of(network)
    with torch.inference_mode():
        values = []
        for first in range(0, len(pairs), AT_ONCE):
            batch = pairs.batch(np.arange(first, min(first + AT_ONCE, len(pairs))))
            values.append(function(batch.queries.to(place), batch.passages.to(place)).cpu())
        by_list = torch.cat(values).double().numpy()
    by_row = np.empty_like(by_list)
    by_row[pairs.rows] = by_list
    return by_row
