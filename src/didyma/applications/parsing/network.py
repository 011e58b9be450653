"""The network of the parser, a BiLSTM whose states score arcs, and sentences as it reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from didyma.applications.networks.bilstm import BiLSTM
from didyma.applications.networks.words import PADDING, UNKNOWN, Numbering, pad
from didyma.data.conll import Field, Sentence

DIGIT = re.compile(r"\d")
MOST_ARCS = 40_000  # of a batch, so that a hidden layer over all of them fits into a cache

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences as numbers, padded to the n words of the longest."""

    lengths: Tensor  # (B,), words of each
    words: Tensor  # (B, n)
    tags: Tensor  # (B, n)
    characters: Tensor  # (B, n, letters of the longest word)
    heads: Tensor  # (B, n + 1), −1 for the root, padding, and where there is no tree
    labels: Tensor  # (B, n), −1 likewise

    def to(self, device: torch.device) -> Batch:
        """The batch on a device."""
        return replace(self, **{name: tensor.to(device) for name, tensor in vars(self).items()})


class ArcFactored(nn.Module):
    """Scores of arcs, and of the relations that they may have.

    A BiLSTM over embeddings of words, and of tags and letters if they have numbers, gives a state v
    to each word and to the root, which stands before the first. An MLP scores head h of word m,

        score(m, h) = u · tanh(W v_m + W' v_h + b),

    whose products are computed once a word, not once an arc. A second MLP scores relations.

    Kiperwasser & Goldberg, Simple and accurate dependency parsing using bidirectional LSTM feature
    representations, 2016.
    """

    allowed: Tensor

    def __init__(
        self,
        n_words: int,
        n_tags: int,
        n_characters: int,
        n_labels: int,
        *,
        word_size: int = 100,
        tag_size: int = 25,
        character_size: int = 25,
        hidden: int = 125,
        layers: int = 2,
        mlp: int = 100,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(n_words, word_size)
        self.tags = nn.Embedding(n_tags, tag_size) if n_tags else None
        self.letters = Letters(n_characters, character_size) if n_characters else None
        size = word_size + (tag_size if n_tags else 0) + (character_size if n_characters else 0)
        self.root = nn.Parameter(torch.randn(size))
        self.encoder = BiLSTM(size, hidden, layers, dropout)
        self.arc_modifier = nn.Linear(2 * hidden, mlp)
        self.arc_head = nn.Linear(2 * hidden, mlp, bias=False)
        self.arc_score = nn.Linear(mlp, 1, bias=False)
        self.label_modifier = nn.Linear(2 * hidden, mlp)
        self.label_head = nn.Linear(2 * hidden, mlp, bias=False)
        self.label_score = nn.Linear(mlp, n_labels)
        # Which relations arcs from the root (row 0) and from words (row 1) may have.
        self.register_buffer("allowed", torch.ones(2, n_labels, dtype=torch.bool))

    def forward(self, batch: Batch) -> Tensor:
        """States (B, n + 1, 2 · hidden) of the root and the words."""
        parts = [self.words(batch.words)]
        if self.tags is not None:
            parts.append(self.tags(batch.tags))
        if self.letters is not None:
            parts.append(self.letters(batch.characters))
        words = torch.cat(parts, dim=2)
        root = self.root.expand(len(words), 1, -1)
        states: Tensor = self.encoder(torch.cat([root, words], dim=1), batch.lengths + 1)
        return states

    def arc_scores(self, states: Tensor) -> Tensor:
        """Scores (B, n + 1, n + 1) as `Tree` wants them: row m, column h."""
        modifier, head = self.arc_modifier(states), self.arc_head(states)
        scores: Tensor = self.arc_score((modifier[:, :, None] + head[:, None]).tanh_())
        return scores[..., 0]

    def label_scores(self, states: Tensor, heads: Tensor) -> Tensor:
        """Scores (B, n, relations) of each word's relation to its head, given heads (B, n + 1)."""
        heads = heads[:, 1:].clamp(min=0)
        head = self.label_head(states)
        head = head.gather(1, heads[:, :, None].expand(-1, -1, head.shape[2]))
        scores: Tensor = self.label_score((self.label_modifier(states[:, 1:]) + head).tanh_())
        return scores.masked_fill(~self.allowed[(heads > 0).long()], -torch.inf)


class Letters(nn.Module):
    """A vector for the spelling of each word: how well each filter fits it where it fits best."""

    def __init__(self, n_characters: int, size: int, width: int = 3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_characters, size, padding_idx=0)
        self.filters = nn.Conv1d(size, size, width, padding=width // 2)

    def forward(self, characters: Tensor) -> Tensor:
        """Characters (B, n, letters), 0 for padding, to (B, n, size)."""
        flat = characters.flatten(0, 1)
        fits = self.filters(self.embedding(flat).transpose(1, 2)).tanh()
        best = fits.masked_fill((flat == 0)[:, None], -1.0).amax(dim=2)
        return best.unflatten(0, characters.shape[:2])


@dataclass(frozen=True, eq=False)
class NumberedSentence:
    """One sentence."""

    words: Ints
    tags: list[int]
    characters: list[list[int]]
    heads: Ints  # −1 where there is no tree
    labels: Ints

    def __len__(self) -> int:
        return len(self.words)

    def forget(
        self, probability: NDArray[np.float64], random: np.random.Generator
    ) -> NumberedSentence:
        """The same sentence with some words unknown; each word has its own probability."""
        dropped = random.random(len(self)) < probability[self.words]
        return replace(self, words=np.where(dropped, UNKNOWN, self.words))


class ParserLexicon:
    """What a parser knows: texts and their numbers. Words are compared in lower case, digits as 0.

    >>> sentence = Sentence.from_words(["In", "1999"])
    >>> lexicon = ParserLexicon.learn([sentence], tags=None, characters=False)
    >>> lexicon.words.words, lexicon.encode(Sentence.from_words(["in", "spring"])).words
    (['0000', 'in'], array([3, 1]))
    """

    def __init__(
        self,
        words: Sequence[str],
        tags: Sequence[str],
        characters: Sequence[str],
        labels: Sequence[str],
        tag_field: Field | None,
    ) -> None:
        self.words = Numbering(words)
        self.tags = Numbering(tags)
        self.characters = Numbering(characters)
        self.labels = list(labels)
        self._tag_field = tag_field
        self._label_numbers = {label: number for number, label in enumerate(self.labels)}

    @classmethod
    def learn(cls, sentences: Sequence[Sentence], tags: Field | None, characters: bool) -> Self:
        """Everything that occurs in the sentences."""
        return cls(
            Numbering.build(map(_normal_words, sentences)).words,
            [] if tags is None else Numbering.build(s.column(tags) for s in sentences).words,
            Numbering.build(w for s in sentences for w in s.words).words if characters else [],
            sorted({label for s in sentences for label in s.column(Field.DEPREL)}),
            tags,
        )

    def encode(self, sentence: Sentence, heads: Ints | None = None) -> NumberedSentence:
        """The numbers of a sentence, with a tree if heads are given."""
        n, relations = len(sentence), sentence.column(Field.DEPREL)
        return NumberedSentence(
            np.array(self.words.ids(_normal_words(sentence)), np.int64),
            [] if self._tag_field is None else self.tags.ids(sentence.column(self._tag_field)),
            [self.characters.ids(word) for word in sentence.words] if self.characters.words else [],
            np.full(n, -1) if heads is None else heads,
            np.array([self._label_numbers.get(label, -1) for label in relations], np.int64),
        )


def _normal_words(sentence: Sentence) -> list[str]:
    return [DIGIT.sub("0", word.lower()) for word in sentence.words]


def buckets(order: Ints, lengths: Ints, size: int) -> Iterator[Ints]:
    """Rows in batches of similar length; those of the same length stay in the order given."""
    order = order[np.argsort(lengths[order], kind="stable")]
    begin = 0
    for end in range(1, len(order) + 1):
        full = end - begin == size
        if end < len(order):
            full |= (end + 1 - begin) * (lengths[order[end]] + 1) ** 2 > MOST_ARCS
        if full or end == len(order):
            yield order[begin:end]
            begin = end


def collate(examples: Sequence[NumberedSentence]) -> Batch:
    """Examples as one batch."""
    n = max(map(len, examples))
    return Batch(
        torch.tensor([len(example) for example in examples]),
        pad([example.words for example in examples], n),
        pad([example.tags for example in examples], n),
        _letters([example.characters for example in examples], n),
        pad([np.append(-1, example.heads) for example in examples], n + 1, padding=-1),
        pad([example.labels for example in examples], n, padding=-1),
    )


def _letters(sentences: Sequence[list[list[int]]], n: int) -> Tensor:
    if not any(sentences):  # nobody reads them
        return torch.full((len(sentences), n, 1), PADDING)
    words = [word for one in sentences for word in one + [[]] * (n - len(one))]
    return pad(words).unflatten(0, (len(sentences), n))
