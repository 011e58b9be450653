"""The rerankers that are served, by name, each as its file says at the moment."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from didyma.errors import DataError
from didyma.serve.logs import log
from didyma.serve.served import NamedSource, Served

if TYPE_CHECKING:
    from didyma.text.text_reranker import TextReranker

__all__ = ["ServedModel", "ServedModels"]

NEEDS_SCORES = (
    "it was trained with the first stage's scores: requests without scores, which most clients "
    "cannot send, will be refused; train on data without scores to answer them"
)

PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # that thresholds are told for


@dataclass(frozen=True)
class ServedModel:
    """A reranker, the file that it came from, and when."""

    path: Path
    reranker: TextReranker
    loaded: float

    @property
    def thresholds(self) -> list[dict[str, float]]:
        """Scores to cut at, one for each precision that is ``asked`` for and reached."""
        found = []
        for asked in PRECISIONS:
            with suppress(DataError):
                threshold = self.reranker.calibration_.threshold(asked)
                found.append({"asked": asked, **threshold._asdict()})
        return found


class ServedModels(Served[ServedModel]):
    """Several rerankers by name."""

    kind = "models"

    def __init__(
        self,
        sources: Sequence[NamedSource],
        load: Callable[[Path], TextReranker] | None = None,
    ) -> None:
        if load is None:
            from didyma.text.text_reranker import TextReranker

            load = TextReranker.load
        self._read = load
        super().__init__(sources)

    def _load(self, name: str, path: Path) -> ServedModel:
        reranker = self._read(path)
        if reranker.uses_scores:
            log(logging.WARNING, "needs scores", model=name, reason=NEEDS_SCORES)
        scores = [1.0, 0.0] if reranker.uses_scores else None
        reranker.rank("which", ["this", "that"], scores=scores)  # so that no request compiles
        return ServedModel(path, reranker, time.time())
