"""The passage network: what the structured hinge costs, and how fast passages are scored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.row import Row
from benchmarks.timing import interleave, measure, stopwatch, torch_threads
from didyma.applications.networks.words import Numbering
from didyma.applications.passages.ranker import PassageNetwork, PassageRanker
from didyma.applications.passages.text_pairs import TextPairs
from didyma.data.lists import Lists
from didyma.nn.ranking_loss import RankingLoss

QUESTIONS, PASSAGES = 32, 10  # of a step, as on WikiQA
WORDS, N_WORDS = 25, 20_000
LISTS, ROWS, POSITIVES = 32, 100, 5


def run(scale: float = 1.0) -> list[Row]:
    with torch_threads(1):
        return [*_steps(scale), *_losses(scale), *_scoring(scale)]


def _questions(count: int) -> Lists:
    rng = np.random.default_rng(0)

    def text(n: int) -> str:
        return " ".join(f"w{rng.zipf(1.3) % N_WORDS}" for _ in range(n))

    passages = [
        [text(int(n)) for n in rng.integers(5, 2 * WORDS - 5, PASSAGES)] for _ in range(count)
    ]
    labels = [np.arange(PASSAGES) == rng.integers(PASSAGES) for _ in range(count)]
    return Lists.of_texts([text(7) for _ in range(count)], passages, labels)


def _steps(scale: float) -> list[Row]:
    """A step of training with either loss, of the same network on the same batch."""
    vocabulary = Numbering([f"w{n}" for n in range(N_WORDS)])
    batch = TextPairs(_questions(max(4, round(QUESTIONS * scale))), vocabulary, 50)
    pairs = batch.batch(np.arange(len(batch)))
    network = PassageNetwork(len(vocabulary))
    optimizer = torch.optim.AdamW(network.parameters())
    assert pairs.labels is not None
    hinge, labels = RankingLoss("ap"), torch.from_numpy(pairs.labels)

    def step(loss: Callable[[Tensor], Tensor]) -> Callable[[], None]:
        def run() -> None:
            optimizer.zero_grad()
            loss(network(pairs.queries, pairs.passages)).backward()
            optimizer.step()

        return run

    steps = {
        "ap": step(lambda scores: hinge(scores, labels, group=pairs.sizes)),
        "entropy": step(lambda scores: binary_cross_entropy_with_logits(scores, labels.float())),
    }
    for function in steps.values():
        function()  # warms up
    seconds = measure(steps, 15)
    name = f"a step over {len(batch)} questions with {PASSAGES} passages"
    return [
        Row.at_most(
            f"{name}: AP hinge over cross-entropy", seconds.ratio("ap", "entropy"), "x", 1.2
        ),
        Row(f"{name}, AP hinge", 1e3 * seconds.best("ap"), "ms"),
    ]


def _losses(scale: float) -> list[Row]:
    """The hinge itself, forward and backward, beside common losses in plain PyTorch."""
    rng = np.random.default_rng(1)
    lists = max(4, round(LISTS * scale))
    values = rng.standard_normal(lists * ROWS)
    y = np.tile(np.arange(ROWS) < POSITIVES, lists)
    scores = torch.tensor(values, dtype=torch.float32, requires_grad=True)
    labels, sizes = torch.from_numpy(y), np.full(lists, ROWS)
    hinge = RankingLoss("ap")

    def derive(loss: Callable[[], Tensor]) -> Any:
        return stopwatch(lambda: torch.autograd.grad(loss(), scores), 3)

    square, relevant = (lists, ROWS), labels.reshape(lists, ROWS)
    timers = {
        "ours": derive(lambda: hinge(scores, labels, group=sizes)),
        "smooth": derive(lambda: smooth_ap(scores.reshape(square), relevant)),
        "positives": derive(lambda: smooth_ap(scores.reshape(square), relevant, POSITIVES)),
        "pairs": derive(lambda: pairwise_hinge(scores.reshape(square), relevant)),
    }
    timers["ours"]()  # warms up
    seconds = interleave(timers, 9)
    name = f"loss and gradient, {lists} lists of {ROWS} with {POSITIVES} positives"
    return [
        Row(f"{name}, AP hinge", 1e3 * seconds.best("ours"), "ms"),
        Row.at_least(
            f"{name}: Smooth-AP in PyTorch over ours", seconds.ratio("smooth", "ours"), "x", 1
        ),
        Row.at_least(
            f"{name}: Smooth-AP over positives only, over ours",
            seconds.ratio("positives", "ours"),
            "x",
            1,
        ),
        Row(f"{name}: pairwise hinge in PyTorch over ours", seconds.ratio("pairs", "ours"), "x"),
    ]


def smooth_ap(
    scores: Tensor, relevant: Tensor, first: int | None = None, temperature: float = 0.01
) -> Tensor:
    """1 - AP with ranks by sigmoids of score differences (Brown et al. 2020); lists of one size.

    Ranks are needed of the positives only: those of the ``first`` rows, if all positives are there.
    """
    ranked, counted = scores[:, :first], relevant[:, :first]
    above = torch.sigmoid((scores[:, None, :] - ranked[:, :, None]) / temperature)
    above = above * ~torch.eye(scores.shape[1], dtype=torch.bool)[: ranked.shape[1]]
    rank = 1 + above.sum(2)
    rank_among_relevant = 1 + (above * relevant[:, None, :]).sum(2)
    precision = (rank_among_relevant / rank * counted).sum(1) / relevant.sum(1)
    return 1 - precision.mean()


def pairwise_hinge(scores: Tensor, relevant: Tensor) -> Tensor:
    """Mean of max(0, 1 - (s_positive - s_negative)) over the pairs of each list."""
    margins = 1 - (scores[:, :, None] - scores[:, None, :])
    pairs = relevant[:, :, None] & ~relevant[:, None, :]
    return ((margins.relu() * pairs).sum((1, 2)) / pairs.sum((1, 2))).mean()


def _scoring(scale: float) -> list[Row]:
    """From texts to scores, of a network of the usual size."""
    questions = _questions(max(4, round(100 * scale)))
    ranker = PassageRanker(epochs=1, device="cpu").fit(questions)
    seconds = min(stopwatch(lambda: ranker.predict(questions))() for _ in range(5))
    return [Row("passages scored from their texts, one core", len(questions) / seconds, "/s")]
