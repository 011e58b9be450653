"""A reranker that counts common words, in the place of a trained one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from didyma.data.groups import Groups
from didyma.data.passage import passages_of
from didyma.data.schema import Schema
from didyma.errors import DataError
from didyma.ranking.explanation import FeatureContribution, MatchedSpan, PassageExplanation
from didyma.ranking.ranked import Ranked, Ranking
from didyma.text.calibration import Calibration
from didyma.text.steps import Step, take_steps

# Of scores .1, .2, …, 1 all above .5 are relevant.
STEPS = np.arange(1, 11) / 10
CALIBRATION = Calibration.fit(
    np.tile(STEPS, 4), np.tile(STEPS > 0.5, 4), Groups.from_sizes([10] * 4, 40)
)

PLAIN = Schema()


@dataclass
class CommonWords:
    """Scores are shares of the query's words; raw scores are ten times that."""

    bonus: float = 0.0
    gate_: str = "kept"
    uses_scores: bool = False
    tells_chances: bool = False
    vector_dimension: int = 0
    calibration_: Calibration = CALIBRATION
    schema_: Schema = PLAIN
    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    gate: threading.Event = field(default_factory=threading.Event)

    def rank(
        self,
        query: Any,
        documents: Sequence[Any],
        top_k: int | None = None,
        scores: Sequence[float] | None = None,
        *,
        explain: bool = False,
        then: Sequence[Step] = (),
    ) -> Ranking:
        query = query["text"] if isinstance(query, dict) else query
        passages = passages_of(documents)
        documents = [passage.text for passage in passages]
        if query == "fault":
            raise RuntimeError("a fault of the server")
        if query == "wait":
            self.entered.release()
            assert self.gate.wait(20)
        if scores is not None and len(scores) != len(documents):
            raise DataError(f"expected {len(documents)} scores, found {len(scores)}")
        found = [self._score(query, text) for text in documents]
        order = sorted(range(len(found)), key=lambda n: -found[n])
        reasons = [self._explanation(query, text) if explain else None for text in documents]
        ranking = Ranking(
            Ranked(
                n,
                found[n],
                text=documents[n],
                metadata=passages[n].metadata,
                raw=10 * found[n],
                explanation=reasons[n],
                probability=found[n] if self.tells_chances else None,
            )
            for n in order
        )
        return take_steps(ranking, then, top_k)

    def _score(self, query: str, text: str) -> float:
        words = set(query.split())
        return self.bonus + len(words & set(text.split())) / max(len(words), 1)

    def _explanation(self, query: str, text: str) -> PassageExplanation:
        score = self._score(query, text)
        spans, at = [], 0
        for word in text.split(" "):
            if word in query.split():
                spans.append(MatchedSpan(at, at + len(word), (word,), "word"))
            at += len(word) + 1
        part = FeatureContribution("common", 10 * score, score)
        return PassageExplanation(10 * score, score, 0.0, (part,), tuple(spans), text)


def load(path: Path) -> CommonWords:
    """A file of it holds its bonus, as a number or by name."""
    text = path.read_text()
    return CommonWords({"half": 0.5}[text] if text.isalpha() else float(text))
