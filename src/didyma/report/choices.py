"""What choices from n-best lists are worth: a decoder's, the best possible, those of models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.formats.nbest import NBest, hamming, loss_measure, losses, scores
from didyma.report.table import Row

if TYPE_CHECKING:
    pass

__all__ = ["Judge", "first_choices"]


def first_choices(lists: Sequence[NBest]) -> list[int]:
    """What the decoder chooses: its highest score, or the first without scores; -1 if empty."""
    found = scores(lists)
    if found is None:
        return [0 if len(nbest) else -1 for nbest in lists]
    return [int(values.argmax()) if len(values) else -1 for values in found]


class Judge:
    """Judges choices over the lists that have candidates.

    ``loss`` says how losses come from references, as in `didyma.formats.nbest.losses`.
    """

    def __init__(self, lists: Sequence[NBest], loss: str = "auto") -> None:
        self.measure = loss_measure(lists, loss)
        full = [i for i, nbest in enumerate(lists) if len(nbest)]
        if not full:
            raise DataError("expected a list with candidates, found none")
        measured = losses(lists, loss)
        self.lists = [lists[i] for i in full]
        self.losses = [measured[i] for i in full]
        self.first = first_choices(self.lists)
        self.n_empty = len(lists) - len(full)
        self.references = [(nbest.reference or "").split() for nbest in self.lists]
        self.aligned = any(self.references) and all(
            len(candidate.text.split()) == len(reference)
            for nbest, reference in zip(self.lists, self.references)
            for candidate in nbest.candidates
        )

    def of(self, choices: Sequence[int]) -> NDArray[np.float64]:
        """The loss of each choice."""
        return np.array([loss[k] for loss, k in zip(self.losses, choices)])

    def summary(self, choices: Sequence[int]) -> dict[str, float]:
        """Mean loss, share of choices without any and, if tokens are aligned, of right tokens."""
        values = self.of(choices)
        found = {"loss": float(values.mean()), "exact": float((values == 0).mean())}
        if self.aligned:
            texts = [nbest.candidates[k].text for nbest, k in zip(self.lists, choices)]
            wrong = sum(hamming(r, text.split()) for r, text in zip(self.references, texts))
            found["accuracy"] = 1 - wrong / sum(map(len, self.references))
        return found

    def compare(
        self, choices: Mapping[str, Sequence[int]], test: str, *, correct: bool
    ) -> list[Row]:
        """The decoder, the oracle and the choices of systems, with gains against the decoder."""
        from didyma.metrics.significance import TESTS, compare

        found = compare(
            -self.of(self.first),
            {name: -self.of(chosen) for name, chosen in choices.items()},
            test=TESTS[test.removesuffix("-test")],
            correct=correct,
        )
        best = [int(values.argmin()) for values in self.losses]
        rows = [Row("decoder", self.summary(self.first)), Row("oracle", self.summary(best))]
        for name, chosen in choices.items():
            c = found[name]
            against = (c.difference, c.wins, c.losses, c.ties, c.p_value)
            rows.append(Row(name, self.summary(chosen), *against))
        return rows

    def oracles(self) -> Iterator[dict[str, Any]]:
        """The best choice among the first n, for n = 1, 2, … 10, 20, 50, 100, … and all."""
        given = scores(self.lists) or [-np.arange(float(len(nbest))) for nbest in self.lists]
        ranked = [np.argsort(-values, kind="stable") for values in given]
        longest = max(map(len, ranked))
        steps = {*range(1, 11), *(k * 10**e for e in range(1, 7) for k in (1, 2, 5)), longest}
        for n in sorted(step for step in steps if step <= longest):
            best = [int(order[own[order[:n]].argmin()]) for order, own in zip(ranked, self.losses)]
            n_long = sum(len(order) >= n for order in ranked)
            yield {"n": n, "lists": n_long, **self.summary(best)}
