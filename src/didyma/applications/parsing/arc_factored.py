"""The network of the parser: a BiLSTM reads the sentence, and every arc has a score."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from didyma.applications.networks.bilstm import BiLSTM


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
