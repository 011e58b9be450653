"""The rerankers that are served, by name, each as its file says at the moment."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from didyma.errors import DataError
from didyma.service.logs import log
from didyma.service.refusal import Refused

if TYPE_CHECKING:
    from didyma.rerank.text import TextReranker

__all__ = ["ModelSource", "ServedModel", "ServedModels"]


NEEDS_SCORES = (
    "it was trained with the first stage's scores: requests without scores, which most clients "
    "cannot send, will be refused; train on data without scores to answer them"
)

Stamp: TypeAlias = tuple[int, int, int]

PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # that thresholds are told for


class ModelSource(NamedTuple):
    """A model file, and the name that it is asked for by.

    >>> ModelSource.of("news=models/news.didyma.safetensors").name
    'news'
    >>> ModelSource.of("models/news.didyma.safetensors").name is None
    True
    """

    path: Path
    name: str | None

    @classmethod
    def of(cls, text: str) -> ModelSource:
        """Read ``NAME=FILE`` or ``FILE``."""
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            return cls(Path(text), None)
        if not name or not path:
            raise DataError(f"expected NAME=FILE, found {text!r:.80}")
        return cls(Path(path), name)


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


class ServedModels:
    """Several rerankers by name; one without a name answers to every name that no other has.

    A model is replaced as a whole: a request keeps the one that it has begun with.
    """

    def __init__(
        self,
        sources: Sequence[ModelSource],
        load: Callable[[Path], TextReranker] | None = None,
    ) -> None:
        names = [_name(source) for source in sources]
        nameless = [name for name, source in zip(names, sources) if source.name is None]
        if len(nameless) > 1:
            raise DataError(f"expected names (NAME=FILE) for all models but one, found {nameless}")
        if len(set(names)) < len(names):
            raise DataError(f"expected different names, found {', '.join(names)}")
        if load is None:
            from didyma.rerank.text import TextReranker

            load = TextReranker.load
        self._load = load
        self._any = nameless[0] if nameless else None
        self._seen: dict[str, Stamp | None] = {}
        self.models = {
            name: self._loaded(name, source.path) for name, source in zip(names, sources)
        }

    @property
    def default(self) -> str:
        """The model for requests that name none."""
        return self._any or next(iter(self.models))

    def resolve(self, asked: str | None) -> str:
        """The name of the model that answers to a name."""
        if asked is None:
            return self.default
        if asked in self.models:
            return asked
        if self._any is None:
            raise Refused(404, f"expected one of the models {', '.join(self.models)}")
        return self._any

    def changed(self) -> list[str]:
        """Names of those whose files are not what they were at the last try to load them."""
        return [
            name
            for name, model in self.models.items()
            if _stamp(model.path) not in (None, self._seen[name])
        ]

    def reload(self, name: str) -> None:
        """Load a model anew; if that fails, the old one goes on answering."""
        self.models[name] = self._loaded(name, self.models[name].path)

    def _loaded(self, name: str, path: Path) -> ServedModel:
        self._seen[name] = _stamp(path)  # before it is read: it may change meanwhile
        reranker = self._load(path)
        if reranker.uses_scores:
            log(logging.WARNING, "needs scores", model=name, reason=NEEDS_SCORES)
        scores = [1.0, 0.0] if reranker.uses_scores else None
        reranker.rank("which", ["this", "that"], scores=scores)  # so that no request compiles
        return ServedModel(path, reranker, time.time())


def _name(source: ModelSource) -> str:
    return source.name or source.path.name.partition(".")[0] or source.path.name


def _stamp(path: Path) -> Stamp | None:
    """What tells a file from the one that was there before; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
