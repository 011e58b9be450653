"""Watches answers: counts them at once, and looks at them closely when they are sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from didyma.serve.samples import SampleFile, record_of
from didyma.serve.served import ServedModel, ServedModels
from didyma.serve.watch import Watch
from didyma.text.observation import Scored, observing

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranking


class Observer:
    """What is done with each answer: counts, drift, the shadow model, the sample.

    Parameters
    ----------
    watch : Watch
        Counts of each model.
    shadows : ServedModels, optional
        Shadow models, each by the name of the model whose requests it ranks.
    samples : SampleFile, optional
        Where a sample of requests is kept.
    """

    def __init__(
        self,
        watch: Watch,
        shadows: ServedModels | None = None,
        samples: SampleFile | None = None,
    ) -> None:
        self.watch, self.shadows, self.samples = watch, shadows, samples

    def note(
        self,
        name: str,
        model: ServedModel,
        query: str,
        ranking: Ranking,
        scored: list[Scored],
        ask: Callable[[Any], object],
    ) -> list[tuple[str, Callable[[], object]]]:
        """Count an answer, and return the works that are to be done afterwards, with their kinds.

        ``ask`` asks any reranker the same.
        """
        watch, works = self.watch.by_name[name], list[tuple[str, Callable[[], object]]]()
        last = scored[-1] if scored else None
        watch.count(model, ranking, last)
        if last is not None and watch.is_due():
            works.append(("drift", partial(watch.look, last, model.version)))
        if last is not None and self.shadows is not None and name in self.shadows.by_name:
            works.append(("shadow", partial(self._shadow, name, last, ask)))
        if self.samples is not None and self.samples.chooses():
            record = partial(record_of, name, model.version, query, ranking)
            works.append(("sample", partial(_write, self.samples, record)))
        return works

    def _shadow(self, name: str, scored: Scored, ask: Callable[[Any], object]) -> None:
        assert self.shadows is not None
        shadow = self.shadows.by_name[name].reranker
        others: list[Scored] = []
        with observing(others.append):
            ask(getattr(shadow, "reranker", shadow))  # no teacher is asked for a shadow's sake
        if others:
            self.watch.by_name[name].shadow.add(scored.raw, others[-1].raw)


def _write(samples: SampleFile, record: Callable[[], dict[str, Any]]) -> None:
    samples.write(record())
