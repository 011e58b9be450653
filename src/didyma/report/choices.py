"""What choices from n-best lists are worth: a decoder's, the best possible, those of models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.nbest.formats import inputs_of, outputs_of
from didyma.nbest.loss import hamming, loss_measure, losses
from didyma.report.table import Row

Choices: TypeAlias = NDArray[np.int64]


def first_choices(lists: Lists) -> Choices:
    """What the decoder chooses: its highest score, or the first without scores; -1 if empty."""
    return lists.groups.choose(np.zeros(len(lists)) if lists.scores is None else lists.scores)


class Judge:
    """Judges choices over the lists that have candidates.

    ``loss`` says how losses come from references, as in `didyma.nbest.losses`.
    """

    def __init__(self, lists: Lists, loss: str = "auto") -> None:
        self.measure = loss_measure(lists, loss)
        full = np.flatnonzero(lists.groups.sizes)
        if not len(full):
            raise DataError("expected a list with candidates, found none")
        self.lists = replace(lists, losses=losses(lists, loss)).select_lists(full)
        self.first = first_choices(self.lists)
        self.n_empty = len(lists.groups) - len(full)
        self.references = [(input.reference or "").split() for input in inputs_of(self.lists)]
        lengths = np.array(list(map(len, self.references)))[self.lists.groups.codes]
        n_tokens = [len(output.text.split()) for output in outputs_of(self.lists)]
        self.aligned = any(self.references) and bool((lengths == n_tokens).all())

    def of(self, choices: Choices) -> NDArray[np.float64]:
        """The loss of each choice."""
        return self.lists.loss_of(choices)

    def summary(self, choices: Choices) -> dict[str, float]:
        """Mean loss, share of choices without any and, if tokens are aligned, of right tokens."""
        values = self.of(choices)
        means = {"loss": float(values.mean()), "exact": float((values == 0).mean())}
        if self.aligned:
            outputs = outputs_of(self.lists)
            rows = self.lists.groups.starts[:-1] + choices
            texts = [outputs[row].text.split() for row in rows.tolist()]
            wrong = sum(map(hamming, self.references, texts))
            means["accuracy"] = 1 - wrong / sum(map(len, self.references))
        return means

    def compare(self, choices: Mapping[str, Choices], test: str, *, correct: bool) -> list[Row]:
        """The decoder, the oracle and the choices of systems, with gains against the decoder."""
        from didyma.metrics.significance import TESTS, compare

        results = compare(
            -self.of(self.first),
            {name: -self.of(chosen) for name, chosen in choices.items()},
            test=TESTS[test.removesuffix("-test")],
            correct=correct,
        )
        best = self.lists.groups.choose(-self._losses)
        rows = [Row("decoder", self.summary(self.first)), Row("oracle", self.summary(best))]
        systems = [
            Row.compared(name, self.summary(choices[name]), result)
            for name, result in results.items()
        ]
        return [*rows, *systems]

    def oracles(self) -> Iterator[dict[str, Any]]:
        """The best choice among the first n, for n = 1, 2, … 10, 20, 50, 100, … and all."""
        groups, scores = self.lists.groups, self.lists.scores
        place = np.arange(len(self.lists)) - groups.starts[groups.codes]
        order = np.lexsort((place if scores is None else -scores, groups.codes))
        rank = np.empty_like(order)
        rank[order] = place
        longest = int(groups.sizes.max())
        steps = {*range(1, 11), *(k * 10**e for e in range(1, 7) for k in (1, 2, 5)), longest}
        for n in sorted(step for step in steps if step <= longest):
            best = groups.choose(np.where(rank < n, -self._losses, -np.inf))
            n_long = int(np.count_nonzero(groups.sizes >= n))
            yield {"n": n, "lists": n_long, **self.summary(best)}

    @property
    def _losses(self) -> NDArray[np.float64]:
        assert self.lists.losses is not None
        return self.lists.losses
