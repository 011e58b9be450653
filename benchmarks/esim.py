"""Entailment with latent alignment: an epoch of ESIM with each alignment, on one core."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from benchmarks.row import Row
from benchmarks.timing import Timer, blas_threads, interleave, stopwatch
from didyma.applications.alignment.esim import ESIM
from didyma.applications.alignment.layers import ALIGNMENTS
from didyma.applications.networks.words import pad

PAIRS, BATCH, WORDS, SIZE = 640, 32, 2_000, 100
EPOCHS = 5

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def run(scale: float = 1.0) -> list[Row]:
    batches = _batches(max(2, round(PAIRS * scale / BATCH)))
    with blas_threads(1):
        timers = {name: _epoch(name, batches) for name in ALIGNMENTS}
        interleave(timers, 1)  # warms up, and leaves the first steps, which are the slowest
        seconds = interleave(timers, EPOCHS if scale >= 1.0 else 1)
    name = f"{len(batches) * BATCH} pairs of about 10 words, {SIZE} hidden units"
    matching, sequential = (
        seconds.ratio(alignment, "softmax") for alignment in ("matching", "sequential")
    )
    return [
        Row(f"{name}: epoch with softmax", seconds.best("softmax"), "s"),
        Row.at_most(f"{name}: epoch with matching over softmax", matching, "x", 1.5),
        Row(f"{name}: epoch with sequential over softmax", sequential, "x"),
    ]


def _batches(count: int) -> list[Batch]:
    """Hypotheses share about half of their words with the premise, in the same order."""
    rng = np.random.default_rng(0)
    batches = []
    for _ in range(count):
        premises = [rng.integers(2, WORDS, size=n) for n in rng.integers(6, 15, size=BATCH)]
        hypotheses = [words[rng.random(len(words)) < 0.8] for words in premises]
        hypotheses = [words if len(words) else np.array([1]) for words in hypotheses]
        for words in hypotheses:
            other = rng.random(len(words)) < 0.4
            words[other] = rng.integers(2, WORDS, size=other.sum())
        labels = torch.from_numpy(rng.integers(0, 3, size=BATCH))
        batches.append((pad(premises), pad(hypotheses), labels))
    return batches


def _epoch(alignment: str, batches: list[Batch]) -> Timer:
    """Seconds of a pass over the batches, which goes on where the last one ended."""
    torch.manual_seed(0)
    network = ESIM(WORDS, 3, SIZE, SIZE, alignment, n_jobs=1)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)

    def epoch() -> None:
        for premises, hypotheses, labels in batches:
            optimizer.zero_grad()
            cross_entropy(network(premises, hypotheses), labels).backward()
            optimizer.step()

    return stopwatch(epoch)
