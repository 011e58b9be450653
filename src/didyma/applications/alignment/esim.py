"""Entailment with latent alignment: ESIM (Chen et al. 2017), and a classifier around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from didyma import DataError
from didyma.applications.alignment.layers import Aligned, alignment_layer
from didyma.applications.alignment.reader import Pair, tokenize
from didyma.applications.networks.bilstm import BiLSTM
from didyma.applications.networks.estimator import NetworkEstimator, device_of
from didyma.applications.networks.words import (
    PADDING,
    RESERVED,
    UNKNOWN,
    Numbering,
    Vectors,
    as_vectors,
    pad,
    start_from,
)
from didyma.model import Saved
from didyma.polytope import Distributions

Floats: TypeAlias = NDArray[np.float64]
SentencePair: TypeAlias = "Pair | tuple[str | Sequence[str], str | Sequence[str]]"
Words: TypeAlias = tuple[str, ...]

EMPTY = ("∅",)  # stands for a sentence without words
POOL = 50  # batches among which pairs are sorted by length
EVALUATED = 128  # pairs at a time, when nothing is learned


class ESIM(nn.Module):
    """Two sentences to one score per label, through a soft alignment of their words.

    1. A bidirectional LSTM reads both sentences: p₁ … p_m and h₁ … h_n.
    2. Inner products p_i · h_j are aligned (see `didyma.applications.alignment.layers`).
    3. Each word is joined by what it is aligned to, [p; p̃; p − p̃; p ∘ p̃], and projected.
    4. A second LSTM reads that; means and maxima over the words are classified.

    Premises (B, M) and hypotheses (B, N) are numbers of words, 0 in padding; each has a word at
    least.

    >>> network = ESIM(n_words=9, n_labels=3, dimension=4, hidden=5)
    >>> network(torch.tensor([[2, 3, 4]]), torch.tensor([[5, 3]])).shape
    torch.Size([1, 3])
    """

    def __init__(
        self,
        n_words: int,
        n_labels: int,
        dimension: int = 100,
        hidden: int = 100,
        alignment: str = "softmax",
        *,
        dropout: float = 0.5,
        tol: float = 1e-9,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.embedding = nn.Embedding(n_words, dimension, padding_idx=PADDING)
        self.encoder = BiLSTM(dimension, hidden, layers=1, dropout=dropout)
        self.align = alignment_layer(alignment, tol, n_jobs)
        self.projection = nn.Sequential(nn.Linear(8 * hidden, hidden), nn.ReLU())
        self.composition = BiLSTM(hidden, hidden, layers=1, dropout=dropout)
        self.classifier = nn.Sequential(
            nn.Linear(8 * hidden, hidden),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(hidden, n_labels),
        )

    def forward(self, premises: Tensor, hypotheses: Tensor) -> Tensor:
        """Scores of the labels, (B, n_labels)."""
        return self.read(premises, hypotheses)[0]

    def read(self, premises: Tensor, hypotheses: Tensor) -> tuple[Tensor, Aligned]:
        """Scores of the labels, and the alignment they rest on."""
        both = _stack(premises, hypotheses)
        lengths = (both != PADDING).sum(1)
        sizes = lengths.reshape(2, -1).T.cpu()
        m, n = sizes.amax(0).tolist()
        states = self.encoder(self.embedding(both), lengths)
        p, h = states[: len(premises), :m], states[len(premises) :, :n]
        aligned = self.align(p @ h.mT, sizes)
        joined = _stack(
            self._join(p, aligned.to_hypothesis @ h), self._join(h, aligned.to_premise.mT @ p)
        )
        pooled = _pool(self.composition(joined, lengths), lengths)
        return self.classifier(torch.cat([*pooled.tensor_split(2)], 1)), aligned

    def _join(self, words: Tensor, others: Tensor) -> Tensor:
        return self.projection(torch.cat([words, others, words - others, words * others], 2))


def _stack(first: Tensor, second: Tensor) -> Tensor:
    """One batch below the other, both padded to the longer one: (2 B, longest, …)."""
    return pad_sequence([*first, *second], batch_first=True)


def _pool(states: Tensor, lengths: Tensor) -> Tensor:
    outside = torch.arange(states.shape[1], device=states.device) >= lengths[:, None]
    mean = states.masked_fill(outside[:, :, None], 0.0).sum(1) / lengths[:, None]
    return torch.cat([mean, states.masked_fill(outside[:, :, None], -torch.inf).amax(1)], 1)


class Selected(NamedTuple):
    """Structures that SparseMAP selected, as cells (k, m, n), and their probabilities (k,)."""

    structures: NDArray[np.bool_]
    probabilities: Floats


@dataclass(frozen=True)
class Alignment:
    """How two sentences were aligned; all matrices are (premise words, hypothesis words).

    ``to_hypothesis`` has the weights with which each premise word takes hypothesis words, a row
    each, and ``to_premise`` those of each hypothesis word, a column each. ``selected`` has the
    structures that they are mixtures of: under "matching", or under "premise to hypothesis" and
    "hypothesis to premise"; nothing for softmax.
    """

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    to_hypothesis: Floats
    to_premise: Floats
    selected: Mapping[str, Selected]

    @property
    def nonzero_share(self) -> float:
        """Share of the pairs of words with a weight, the mean of both directions."""
        return nonzero_share([self])


def nonzero_share(alignments: Sequence[Alignment]) -> float:
    """Share of all pairs of words that have a weight, the mean of both directions."""
    weights = [w for one in alignments for w in (one.to_hypothesis, one.to_premise)]
    return float(sum(map(np.count_nonzero, weights)) / max(sum(w.size for w in weights), 1))


@dataclass(eq=False, repr=False)
class EntailmentClassifier(NetworkEstimator[ESIM]):
    """Says whether a premise entails a hypothesis, contradicts it, or neither: `ESIM`, trained.

    Pairs are (premise, hypothesis), texts or lists of words, or `reader.Pair`; labels
    are any texts. A sentence without words has one, ∅. To learn what to make of unseen words,
    training reads every other occurrence of a word that it sees only once as unknown.

    Parameters
    ----------
    alignment : {"softmax", "sequential", "matching"}
        Each word for itself, two chains, or one matching of the words; see
        `didyma.applications.alignment.layers`.
    dimension : int >= 1
        Size of word vectors, if learned.
    hidden : int >= 1
        Units of each layer.
    dropout : float in [0, 0.99]
        Share of the units that a step of training leaves out.
    tune_vectors : bool
        Whether word vectors that `fit` is given are trained further.
    lowercase : bool
        Whether texts are put in lower case.
    tol : float
        Duality gap at which SparseMAP stops, in training and afterwards.
    n_jobs : int, optional
        Threads of SparseMAP; None means every core.

    Training, ``device`` and other attributes are those of `NetworkEstimator`; alignments are on
    the CPU, in double precision.

    Attributes
    ----------
    classes_ : list of str
        The labels.
    words_ : list of str
        The words that have a vector.

    Examples
    --------
    >>> pairs = [("a dog runs", "a dog moves"), ("a dog runs", "no dog runs")] * 8
    >>> labels = ["entailment", "contradiction"] * 8
    >>> settings = {"dimension": 8, "hidden": 8, "epochs": 20, "learning_rate": 0.01}
    >>> classifier = EntailmentClassifier("matching", **settings).fit(pairs, labels)
    >>> str(classifier.predict([("a cat runs", "no cat runs")])[0])
    'contradiction'
    """

    _transient: ClassVar[tuple[str, ...]] = ("n_jobs", *NetworkEstimator._transient)

    alignment: str = "matching"
    _: KW_ONLY
    dimension: int = 100
    hidden: int = 100
    dropout: float = 0.3
    tune_vectors: bool = True
    lowercase: bool = True
    tol: float = 1e-9
    n_jobs: int | None = None

    words_: Annotated[list[str], Saved()] = field(init=False)
    classes_: Annotated[list[str], Saved()] = field(init=False)

    def fit(
        self,
        pairs: Sequence[SentencePair],
        labels: Sequence[str],
        eval_set: tuple[Sequence[SentencePair], Sequence[str]] | None = None,
        vectors: Vectors | None = None,
    ) -> Self:
        """Learn from labelled pairs.

        ``eval_set`` are held-out pairs and labels, whose accuracy chooses the epoch and the
        learning rate. ``vectors`` are words and the vector of each, as
        `didyma.data.word_vectors.read` gives them; words of the pairs that are not among them get
        random ones.
        """
        self._check_parameters()
        sentences = self._tokenize(pairs)
        self.classes_ = sorted(set(map(str, labels)))
        if len(self.classes_) < 2:
            present = ", ".join(self.classes_) or "none"
            raise DataError(f"expected two labels at least, found {present}", field="labels")
        given_words, matrix = as_vectors(vectors, self.dimension)
        self.words_ = sorted(self.vocabulary(pairs).union(given_words))
        examples = self._examples(sentences, labels)
        held_out = None
        if eval_set is not None:
            held_out = self._examples(self._tokenize(eval_set[0]), eval_set[1])
            if not len(held_out.labels):
                raise DataError("expected a pair at least, found none", field="eval_set")
        network = self._begin(lambda: self._build(matrix.shape[1]))
        rare = examples.counts(len(self.words_) + RESERVED) == 1
        if given_words:
            numbers = Numbering(self.words_).ids(given_words)
            start_from(network.embedding, numbers, matrix, tune=self.tune_vectors)
            rare[numbers] = False

        def loss(batch: _Batch) -> Tensor:
            place = device_of(network)
            scores = network(batch.premises.to(place), batch.hypotheses.to(place))
            return cross_entropy(scores, batch.labels.to(place))

        def accuracy() -> float:
            assert held_out is not None
            return float(np.mean(_scores(network, held_out).argmax(1) == held_out.labels))

        return self._train(
            network,
            lambda rng: examples.shuffled(self.batch_size, rng, rare),
            loss,
            None if held_out is None else accuracy,
            (pairs, labels, eval_set, vectors),
        )

    def predict(self, pairs: Sequence[SentencePair]) -> NDArray[Any]:
        """The most probable label of each pair."""
        best = self.predict_proba(pairs).argmax(axis=1)
        return np.array(self.classes_)[best]

    def predict_proba(self, pairs: Sequence[SentencePair]) -> Floats:
        """Probabilities (n_pairs, n_labels), in the order of ``classes_``."""
        network = self.network
        scores = _scores(network, self._examples(self._tokenize(pairs)))
        return torch.from_numpy(scores).softmax(1).numpy()

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.target_tags.required = True
        return tags

    def score(self, pairs: Sequence[SentencePair], labels: Sequence[str]) -> float:
        """Accuracy."""
        return float(np.mean(self.predict(pairs) == np.array(labels, dtype=str)))

    def alignments(self, pairs: Sequence[SentencePair]) -> list[Alignment]:
        """How the words of each pair are aligned, and by which structures."""
        sentences = self._tokenize(pairs)
        alignments: dict[int, Alignment] = {}
        for rows, _, aligned in _passes(self.network, self._examples(sentences)):
            weights = [t.double().cpu().numpy() for t in aligned[:2]]
            for b, row in enumerate(rows.tolist()):
                premise, hypothesis = sentences[row]
                m, n = len(premise), len(hypothesis)
                alignments[row] = Alignment(
                    premise,
                    hypothesis,
                    weights[0][b, :m, :n],
                    weights[1][b, :m, :n],
                    _selected(aligned.solutions, b, m, n),
                )
        return [alignments[row] for row in range(len(pairs))]

    def vocabulary(self, pairs: Sequence[SentencePair]) -> set[str]:
        """The words of pairs as they are looked up: what `fit` may be given vectors of."""
        return {word for pair in self._tokenize(pairs) for word in chain(*pair)}

    def _build(self, dimension: int | None = None) -> ESIM:
        return ESIM(
            len(self.words_) + RESERVED,
            len(self.classes_),
            dimension or self.weights_["embedding.weight"].shape[-1],
            self.hidden,
            self.alignment,
            dropout=self.dropout,
            tol=self.tol,
            n_jobs=self.n_jobs,
        )

    def _tokenize(self, pairs: Sequence[SentencePair]) -> list[tuple[Words, Words]]:
        sentences = []
        for place, pair in enumerate(pairs):
            if isinstance(pair, str) or len(pair) < 2:
                raise DataError(
                    f"expected a premise and a hypothesis, found {pair!r}", field=f"pairs[{place}]"
                )
            premise, hypothesis = map(self._words, pair[:2])
            sentences.append((premise, hypothesis))
        return sentences

    def _words(self, sentence: str | Sequence[str]) -> Words:
        if isinstance(sentence, str):
            sentence = tokenize(sentence, lowercase=self.lowercase)
        return tuple(sentence) or EMPTY

    def _examples(
        self, sentences: Sequence[tuple[Words, Words]], labels: Sequence[str] | None = None
    ) -> _Examples:
        """Words and labels as numbers; a label that was not learned is −1."""
        if labels is not None and len(labels) != len(sentences):
            raise DataError(
                f"expected one for each of {len(sentences)} pairs, found {len(labels)}",
                field="labels",
            )
        vocabulary = Numbering(self.words_)
        number = {label: k for k, label in enumerate(self.classes_)}
        numbers = [number.get(str(label), -1) for label in labels or [""] * len(sentences)]
        return _Examples(
            [vocabulary.ids(premise) for premise, _ in sentences],
            [vocabulary.ids(hypothesis) for _, hypothesis in sentences],
            np.array(numbers, np.int64),
        )


class _Batch(NamedTuple):
    premises: Tensor
    hypotheses: Tensor
    labels: Tensor


@dataclass(frozen=True)
class _Examples:
    """Pairs and their labels as numbers."""

    premises: list[list[int]]
    hypotheses: list[list[int]]
    labels: NDArray[np.int64]

    def counts(self, n_words: int) -> NDArray[np.int64]:
        """How often each word occurs."""
        words = chain.from_iterable(self.premises + self.hypotheses)
        return np.bincount(np.fromiter(words, np.int64), minlength=n_words)

    def by_length(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same rows, those of similar lengths together."""
        lengths = [sorted((len(self.premises[i]), len(self.hypotheses[i]))) for i in rows]
        return rows[np.lexsort(np.reshape(lengths, (-1, 2)).T)]

    def batch(self, rows: NDArray[np.int64]) -> _Batch:
        return _Batch(
            pad([self.premises[i] for i in rows]),
            pad([self.hypotheses[i] for i in rows]),
            torch.from_numpy(self.labels[rows]),
        )

    def shuffled(
        self, size: int, rng: np.random.Generator, rare: NDArray[np.bool_]
    ) -> list[_Batch]:
        """Batches of similar lengths, in which every other rare word is unknown."""
        order = rng.permutation(len(self.labels))
        pools = (order[i : i + POOL * size] for i in range(0, len(order), POOL * size))
        order = np.concatenate([self.by_length(pool) for pool in pools])
        batches = [self.batch(order[i : i + size]) for i in range(0, len(order), size)]
        hidden = torch.from_numpy(rare)
        for batch in batches:
            for words in (batch.premises, batch.hypotheses):
                chosen = torch.from_numpy(rng.random(words.shape) < 0.5)
                words[hidden[words] & chosen] = UNKNOWN
        return [batches[i] for i in rng.permutation(len(batches))]


def _passes(
    network: ESIM, examples: _Examples
) -> Iterator[tuple[NDArray[np.int64], Floats, Aligned]]:
    """Rows, scores of labels and alignments of a batch at a time, short pairs first."""
    order = examples.by_length(np.arange(len(examples.labels)))
    place = device_of(network)
    for start in range(0, len(order), EVALUATED):
        rows = order[start : start + EVALUATED]
        batch = examples.batch(rows)
        with torch.no_grad():
            scores, aligned = network.read(batch.premises.to(place), batch.hypotheses.to(place))
        yield rows, scores.double().cpu().numpy(), aligned


def _scores(network: ESIM, examples: _Examples) -> Floats:
    scores = np.zeros((len(examples.labels), network.n_labels))
    for rows, values, _ in _passes(network, examples):
        scores[rows] = values
    return scores


def _selected(solutions: Sequence[Distributions], b: int, m: int, n: int) -> dict[str, Selected]:
    """The structures of one pair without its padding, all as cells (premise, hypothesis)."""
    if not solutions:
        return {}
    if len(solutions) == 1:
        return {"matching": _cells(solutions[0], b, m, n)}
    structures, probabilities = _cells(solutions[1], b, n, m)
    return {
        "premise to hypothesis": _cells(solutions[0], b, m, n),
        "hypothesis to premise": Selected(structures.swapaxes(1, 2), probabilities),
    }


def _cells(solution: Distributions, b: int, rows: int, columns: int) -> Selected:
    one = solution[b]
    return Selected(one.structures[:, :rows, None] == np.arange(columns), one.probabilities)
