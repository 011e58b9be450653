"""DependencyParser: from sentences with trees to trees of other sentences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from didyma import DataError
from didyma.applications.networks.estimator import NetworkEstimator, device_of, restore
from didyma.applications.parsing.measures import evaluate, labelled_tree
from didyma.applications.parsing.network import (
    ArcFactored,
    Batch,
    NumberedSentence,
    ParserLexicon,
    buckets,
    collate,
)
from didyma.data.conll import Field, Sentence
from didyma.errors import check_choice
from didyma.model import Saved
from didyma.nn import FenchelYoungLoss, sparsemap
from didyma.polytope import Distribution
from didyma.protocol import check_is_fitted
from didyma.structures import ProjectiveTree, Tree

# The regulariser of a loss, and whether a wrong head has a cost in it.
LOSSES = {
    "sparsemap": ("sparsemap", False),
    "margin-sparsemap": ("sparsemap", True),
    "crf": ("crf", False),
    "margin-crf": ("crf", True),
    "perceptron": ("perceptron", False),
    "svm": ("perceptron", True),
}
TAGS = {"upos": Field.UPOS, "xpos": Field.XPOS, None: None}
TOL = 1e-3  # of SparseMAP in training: 0.02 % of the gradient, and half the time of 1e-6
AT_ONCE = 64  # sentences that are parsed together

Integers = NDArray[np.int64]
T = TypeVar("T")


@dataclass(eq=False, repr=False)
class DependencyParser(NetworkEstimator[ArcFactored]):
    """Parses sentences whose words are given, and learns from ones whose trees are given too.

    Parameters
    ----------
    loss : {"sparsemap", "margin-sparsemap", "crf", "margin-crf", "perceptron", "svm"}
        How heads are learned. "svm" is the perceptron with a margin. Relations are learned by
        cross-entropy, whatever the loss.
    margin : float >= 0
        Cost of a wrong head, in "svm" and "margin-*".
    projective : bool
        Arcs may not cross.
    single_root : bool
        Whether one word only hangs from the root.
    word_size : int >= 1
        Size of a word's vector.
    tag_size, character_size : int
        Sizes of those of tags and of letters.
    hidden : int >= 1
        States of the LSTM each way.
    layers : int >= 1
        Layers of the LSTM.
    mlp : int >= 1
        Units of the scorers.
    dropout : float in [0, 0.99]
        Share of the LSTM's inputs and outputs that a step of training leaves out.
    word_dropout : float
        α: training takes a word of frequency c for an unknown one with probability α / (c + α).
    tags : {"upos", "xpos", None}
        Tags that the parser reads, of training data and of input alike.
    characters : bool
        Read the letters of words too.

    Training, ``device`` and other attributes are those of `NetworkEstimator`: a batch has sentences
    of similar lengths, and trees are always found on the CPU.

    Attributes
    ----------
    words_, tags_, characters_, labels_ : list of str
        What was seen in training; all else is unknown.

    Examples
    --------
    >>> from didyma.data import conll
    >>> train = conll.read("train.conllu", trees=True)         # doctest: +SKIP
    >>> parser = DependencyParser(loss="sparsemap").fit(train) # doctest: +SKIP
    >>> parsed = parser.predict(conll.read("test.conllu"))     # doctest: +SKIP
    """

    loss: str = "sparsemap"
    _: KW_ONLY
    margin: float = 1.0
    projective: bool = False
    single_root: bool = True
    word_size: int = 100
    tag_size: int = 25
    character_size: int = 25
    hidden: int = 125
    layers: int = 2
    mlp: int = 100
    dropout: float = 0.2
    word_dropout: float = 0.25
    tags: str | None = "upos"
    characters: bool = False
    learning_rate: float = 2e-3
    batch_size: int = 16

    words_: Annotated[list[str], Saved()] = field(init=False)
    tags_: Annotated[list[str], Saved()] = field(init=False)
    characters_: Annotated[list[str], Saved()] = field(init=False)
    labels_: Annotated[list[str], Saved()] = field(init=False)

    def fit(
        self, sentences: Sequence[Sentence], eval_set: Sequence[Sentence] | None = None
    ) -> Self:
        """Learn from sentences with trees; keep the epoch with the best UAS on ``eval_set``.

        Trees that the parser could not predict (of several roots, or with arcs that cross) are left
        out of training, and a warning counts them.
        """
        self._check_parameters()
        loss = self._loss()
        held_out = [sentence for sentence in eval_set or () if len(sentence)]
        if eval_set is not None and not held_out:
            raise DataError("expected sentences with words, found none", field="eval_set")
        for sentence in (*sentences, *held_out):
            sentence.check_tree()
        trees = self._possible(sentences)
        lexicon = ParserLexicon.learn(trees, self._tag_field(), self.characters)
        self.words_, self.tags_ = lexicon.words.words, lexicon.tags.words
        self.characters_, self.labels_ = lexicon.characters.words, lexicon.labels
        self._lexicon = lexicon
        network = self._begin()
        examples = [lexicon.encode(tree, tree.heads) for tree in trees]
        unseen = [lexicon.encode(sentence) for sentence in held_out]
        lengths = np.array([len(example) for example in examples])
        network.allowed.copy_(self._relations(examples))
        forgotten = self._forgotten(examples)

        def batches(random: np.random.Generator) -> list[Batch]:
            order = random.permutation(len(examples))
            rows = list(buckets(order, lengths, self.batch_size))
            return [
                collate([examples[i].forget(forgotten, random) for i in rows[k]])
                for k in random.permutation(len(rows))
            ]

        def uas() -> float:
            predicted = self._apply(unseen, self._best_heads)
            right = [heads == s.heads for heads, s in zip(predicted, held_out)]
            return float(np.concatenate(right).mean())

        return self._train(
            network,
            batches,
            lambda batch: self._batch_loss(batch, loss),
            uas if held_out else None,
            (sentences, eval_set),
        )

    def predict(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The sentences with heads and relations in the place of those that they had."""
        trees = self._apply(self._encode(sentences), self._best_trees)
        return [
            sentence.replaced({Field.HEAD: tree[0], Field.DEPREL: tree[1]}) if tree else sentence
            for sentence, tree in zip(sentences, trees)
        ]

    def score(self, sentences: Sequence[Sentence]) -> float:
        """Unlabelled attachment score."""
        predicted = self.predict(sentences)
        return evaluate(
            list(map(labelled_tree, sentences)), list(map(labelled_tree, predicted))
        ).uas

    def arc_scores(self, sentences: Sequence[Sentence]) -> list[NDArray[np.float64]]:
        """Scores (n + 1, n + 1) of each sentence: [m, h] is that of head h for word m."""
        matrices = self._apply(self._encode(sentences), self._arc_scores)
        return [np.zeros((1, 1)) if scores is None else scores for scores in matrices]

    def alternatives(
        self, sentences: Sequence[Sentence], temperature: float = 1.0
    ) -> list[Distribution]:
        """The few trees of each sentence that SparseMAP selects, with their probabilities.

        ``structures`` has the heads of one tree in each row, after a −1 for the root. A higher
        temperature selects more trees.
        """
        options: dict[str, Any] = {"temperature": temperature, "return_solution": True}
        return [
            sparsemap(torch.from_numpy(scores)[None], self._structure, **options)[1][0]
            if len(scores) > 1
            else NOTHING
            for scores in self.arc_scores(sentences)
        ]

    def label(self, sentences: Sequence[Sentence], heads: Sequence[Integers]) -> list[list[str]]:
        """Relations of the words of each sentence to given heads (n,)."""
        examples = self._encode(sentences, heads)
        return [labels or [] for labels in self._apply(examples, self._best_labels)]

    def _loss(self) -> FenchelYoungLoss:
        check_choice(self.loss, LOSSES, "loss")
        regularizer, costly = LOSSES[self.loss]
        margin = self.margin if costly else 0.0
        return FenchelYoungLoss(
            self._structure, regularizer, margin=margin, reduction="sum", tol=TOL
        )

    def _tag_field(self) -> Field | None:
        check_choice(self.tags, TAGS, "tags")
        return TAGS[self.tags]

    @property
    def _structure(self) -> Tree | ProjectiveTree:
        return (ProjectiveTree if self.projective else Tree)(single_root=self.single_root)

    @cached_property
    def _lexicon(self) -> ParserLexicon:
        check_is_fitted(self, "words_")
        texts = self.words_, self.tags_, self.characters_, self.labels_
        return ParserLexicon(*texts, self._tag_field())

    def _build(self) -> ArcFactored:
        lexicon = self._lexicon
        return ArcFactored(
            len(lexicon.words),
            len(lexicon.tags) if self.tags else 0,
            len(lexicon.characters) if self.characters else 0,
            len(lexicon.labels),
            word_size=self.word_size,
            tag_size=self.tag_size,
            character_size=self.character_size,
            hidden=self.hidden,
            layers=self.layers,
            mlp=self.mlp,
            dropout=self.dropout,
        )

    def _restored(self) -> ArcFactored:
        return restore(self._build, self.weights_, self.layers)

    def _possible(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """Those whose trees are structures of this parser."""
        with_words = [sentence for sentence in sentences if len(sentence)]
        possible = [sentence for sentence in with_words if self._can_predict(sentence)]
        n = len(with_words)
        if not possible:
            raise DataError(
                f"there is nothing to learn from: of {n} sentences with words, none has a tree "
                "that the parser could predict"
            )
        if left_out := n - len(possible):
            trait = "crossing arcs or several roots" if self.projective else "several roots"
            warnings.warn(
                f"{left_out} of {n} trees have {trait}, which the parser could not predict; "
                "training leaves them out",
                stacklevel=3,
            )
        return possible

    def _can_predict(self, sentence: Sentence) -> bool:
        assert sentence.heads is not None
        heads = np.concatenate([[-1], sentence.heads]).astype(np.int32)
        try:
            self._structure.check(heads[None], np.array([len(sentence)]))
        except DataError:
            return False
        return True

    def _relations(self, examples: Sequence[NumberedSentence]) -> Tensor:
        """Which relations occur on arcs from the root (row 0) and from words (row 1)."""
        heads, labels = (
            np.concatenate([getattr(e, name) for e in examples]) for name in ("heads", "labels")
        )
        occurs = torch.zeros(2, len(self.labels_), dtype=torch.bool)
        occurs[(heads > 0).astype(int), labels] = True
        return occurs

    def _forgotten(self, examples: Sequence[NumberedSentence]) -> NDArray[np.float64]:
        """How likely training takes each word for an unknown one."""
        words = np.concatenate([example.words for example in examples])
        counts = np.bincount(words, minlength=len(self._lexicon.words))
        return self.word_dropout / np.maximum(counts + self.word_dropout, 1e-12)

    def _batch_loss(self, batch: Batch, loss: FenchelYoungLoss) -> Tensor:
        """Per word: loss of heads, and cross-entropy of relations given the gold heads."""
        batch = batch.to(device_of(self.network))
        states = self.network(batch)
        heads = loss(self.network.arc_scores(states), batch.heads, batch.lengths)
        labels = self.network.label_scores(states, batch.heads)
        relations = torch.nn.functional.cross_entropy(
            labels.flatten(0, 1), batch.labels.flatten(), ignore_index=-1
        )
        return heads / batch.lengths.sum() + relations

    def _encode(
        self, sentences: Sequence[Sentence], heads: Sequence[Integers] | None = None
    ) -> list[NumberedSentence]:
        trees = [None] * len(sentences) if heads is None else heads
        return [self._lexicon.encode(*pair) for pair in zip(sentences, trees, strict=True)]

    def _apply(
        self, examples: Sequence[NumberedSentence], function: Callable[[Batch, Tensor], Sequence[T]]
    ) -> list[T | None]:
        """Values of a function of batches and states for each example; None for an empty one."""
        values: list[T | None] = [None] * len(examples)
        lengths = np.array([len(example) for example in examples], np.int64)
        training = self.network.training
        self.network.eval()
        with torch.no_grad():
            for rows in buckets(np.flatnonzero(lengths), lengths, AT_ONCE):
                batch = collate([examples[i] for i in rows]).to(device_of(self.network))
                for i, value in zip(rows, function(batch, self.network(batch))):
                    values[i] = value
        self.network.train(training)
        return values

    def _arc_scores(self, batch: Batch, states: Tensor) -> list[NDArray[np.float64]]:
        matrices = self.network.arc_scores(states).cpu().double().numpy()
        return [matrix[: n + 1, : n + 1] for matrix, n in zip(matrices, batch.lengths.tolist())]

    def _argmax(self, batch: Batch, states: Tensor) -> Integers:
        scores = self.network.arc_scores(states).cpu().double().numpy()
        heads: Integers = self._structure.predict(scores, batch.lengths.cpu().numpy())
        return heads

    def _best_heads(self, batch: Batch, states: Tensor) -> list[Integers]:
        return _without_padding(self._argmax(batch, states)[:, 1:], batch)

    def _best_labels(self, batch: Batch, states: Tensor) -> list[list[str]]:
        numbers = self.network.label_scores(states, batch.heads).argmax(dim=2).cpu().numpy()
        return [
            [self.labels_[number] for number in row] for row in _without_padding(numbers, batch)
        ]

    def _best_trees(self, batch: Batch, states: Tensor) -> list[tuple[Integers, list[str]]]:
        heads = self._argmax(batch, states)
        parsed = replace(batch, heads=torch.from_numpy(heads).to(device_of(self.network)))
        return list(zip(_without_padding(heads[:, 1:], batch), self._best_labels(parsed, states)))


# The posterior over the trees of no words.
NOTHING = Distribution(
    *(np.full((1, 1), -1), np.ones(1), np.zeros((1, 1)), 0.0, True, 0),
    *(np.zeros((1, 0), np.int32), np.zeros((1, 0), np.int32)),
)


def _without_padding(rows: NDArray[np.int64], batch: Batch) -> list[NDArray[np.int64]]:
    return [row[:n] for row, n in zip(rows, batch.lengths.tolist())]
