"""The models and indexes that are served, by name, reloaded when their files change."""

from __future__ import annotations

import logging
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from didyma.data.array_folder import MANIFEST
from didyma.errors import DataError
from didyma.serve.logs import log
from didyma.serve.responses import HTTPError

if TYPE_CHECKING:
    from didyma.data.schema import SchemaField
    from didyma.model import ModelVersion
    from didyma.text.cascade import Cascade
    from didyma.text.reranker import Reranker
    from didyma.text.retrieval import SearchEngine

NEEDS_SCORES = (
    "it was trained with the first stage's scores: requests without scores, which most clients "
    "cannot send, will be refused unless each document has a score; train on data without scores "
    "to answer them"
)

UNGATED = "The ranker was fitted without a gate: it was compared with no other order."
UNKNOWN = "unknown"  # the version of what is no model file of ours
PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # that thresholds are told for

Stamp: TypeAlias = tuple[int, int, int]
T = TypeVar("T")


class NamedSource(NamedTuple):
    """A file or a folder, and the name that it is asked for by.

    >>> NamedSource.of("news=models/news.didyma.safetensors").name
    'news'
    >>> NamedSource.of("models/news.didyma.safetensors").name is None
    True
    """

    path: Path
    name: str | None
    address: str | None = None

    @classmethod
    def of(cls, text: str) -> NamedSource:
        """Read ``NAME=FILE`` or ``FILE``, or a search engine's address in the place of a file."""
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            return cls(Path(text), None)
        if not name or not path:
            raise DataError(f"expected NAME=FILE, found {text!r:.80}")
        return cls(Path(path), name, path if "://" in path else None)


class Served(ABC, Generic[T]):
    """Several things by name; one without a name stands for every name that no other has.

    A thing is replaced as a whole: a request keeps the one that it has begun with.
    """

    kind: ClassVar[str]  # of which there are several

    def __init__(self, sources: Sequence[NamedSource]) -> None:
        names = [_name(source) for source in sources]
        nameless = [name for name, source in zip(names, sources) if source.name is None]
        if len(nameless) > 1:
            raise DataError(
                f"expected names (NAME=FILE) for all {self.kind} but one, found {nameless}"
            )
        if len(set(names)) < len(names):
            raise DataError(f"expected different names, found {', '.join(names)}")
        self._any = nameless[0] if nameless else None
        self._sources = dict(zip(names, sources))
        self._seen: dict[str, Stamp | None] = {}
        self.by_name: dict[str, T] = {}
        for name in names:
            self.reload(name)

    @abstractmethod
    def _load(self, name: str, source: NamedSource) -> T:
        """Load a source, and warm it up; ``name`` is for messages."""

    @property
    def default(self) -> str | None:
        """The name for requests that give none, if anything is served."""
        return self._any or next(iter(self.by_name), None)

    def resolve(self, asked: str | None) -> str:
        """The name under which a requested one is served; status 404 if there is none."""
        if asked is not None and asked in self.by_name:
            return asked
        name = self.default if asked is None else self._any
        if name is None:
            names = ", ".join(self.by_name)
            expected = f"expected one of the {self.kind} {names}"
            raise HTTPError(404, expected if names else f"no {self.kind} are served")
        return name

    def changed(self) -> list[str]:
        """Names whose files have changed since the last try to load them."""
        return [
            name
            for name, source in self._sources.items()
            if _stamp(source.path) not in (None, self._seen[name])
        ]

    def reload(self, name: str) -> None:
        """Load one anew; if that fails, the old one stays."""
        source = self._sources[name]
        self._seen[name] = _stamp(source.path)  # before it is read: it may change meanwhile
        self._replace(name, self._load(name, source))

    def _replace(self, name: str, served: T) -> None:
        self.by_name[name] = served


@dataclass(frozen=True)
class ServedModel:
    """A reranker, its file, and when it was loaded."""

    path: Path
    reranker: Reranker | Cascade
    loaded: float

    @property
    def info(self) -> dict[str, Any]:
        """What ``/info`` says of it."""
        return {
            "file": self.path.name,
            "loaded": _date(self.loaded),
            "version": None if self.model_version is None else self.model_version.to_dict(),
            "verdict": UNGATED if self.reranker.gate_ is None else str(self.reranker.gate_),
            "uses_scores": self.reranker.uses_scores,
            "fields": [{"field": field.name, "role": field.role} for field in self.fields],
            "thresholds": self.thresholds,
        }

    @property
    def model_version(self) -> ModelVersion | None:
        """The version in its file."""
        version: ModelVersion | None = getattr(self.reranker, "version_", None)
        return version

    @property
    def version(self) -> str:
        """The id of its version, for headers, log and metrics."""
        return UNKNOWN if self.model_version is None else self.model_version.id

    @property
    def fields(self) -> list[SchemaField]:
        """Fields of documents that the model looks at."""
        return self.reranker.schema_.of_role("text", "signal", "category", "vector")

    @property
    def thresholds(self) -> list[dict[str, float]]:
        """Probabilities to cut at, one for each precision that is ``asked`` for and reached."""
        thresholds: list[dict[str, float]] = []
        if self.reranker.calibration_ is None:
            return thresholds
        for asked in PRECISIONS:
            with suppress(DataError):
                threshold = self.reranker.calibration_.threshold(asked)
                thresholds.append({"asked": asked, **threshold._asdict()})
        return thresholds


class ServedModels(Served[ServedModel]):
    """Several rerankers by name."""

    kind = "models"

    def __init__(
        self,
        sources: Sequence[NamedSource],
        load: Callable[[Path], Reranker | Cascade] | None = None,
        *,
        keep: int = 3,
    ) -> None:
        if load is None:
            from didyma.text.reranker import load_reranker

            load = load_reranker
        self._read, self._keep = load, keep
        self._history: dict[str, list[ServedModel]] = {}  # as they were loaded
        self._changing = threading.Lock()
        super().__init__(sources)

    def _replace(self, name: str, served: ServedModel) -> None:
        with self._changing:
            super()._replace(name, served)
            earlier = [model for model in self.versions(name) if model.version != served.version]
            self._history[name] = [*earlier[max(0, len(earlier) - self._keep) :], served]

    def versions(self, name: str) -> list[ServedModel]:
        """The models of a name that are kept, in the order of their loading; one is served."""
        return self._history.get(name, [])

    def roll_back(self, name: str, version: str | None = None) -> ServedModel:
        """Serve an earlier model again, until its file changes: a version, or the one before.

        Those after it are forgotten.
        """
        with self._changing:
            *earlier, _ = history = self.versions(name)
            places = [n for n, model in enumerate(earlier) if version in (None, model.version)]
            if not places:
                kept = ", ".join(model.version for model in earlier) or "there is none"
                raise HTTPError(404, f"expected an earlier version that is kept: {kept}")
            self._history[name] = history[: places[-1] + 1]
            self.by_name[name] = history[places[-1]]
            return self.by_name[name]

    @property
    def dimension(self) -> int:
        """The longest vector that documents of a model have; 0 if none have any."""
        return max((model.reranker.vector_dimension for model in self.by_name.values()), default=0)

    def listed(self) -> dict[str, Any]:
        """The models as OpenAI's clients list them."""
        data = [
            {"id": name, "object": "model", "created": int(model.loaded), "owned_by": "didyma"}
            for name, model in self.by_name.items()
        ]
        return {"object": "list", "data": data}

    def _load(self, name: str, source: NamedSource) -> ServedModel:
        reranker = self._read(source.path)
        if reranker.uses_scores:
            log(logging.WARNING, "needs scores", model=name, reason=NEEDS_SCORES)
        scores = [1.0, 0.0] if reranker.uses_scores else None
        reranker.rank("which", ["this", "that"], scores=scores)  # imports what is imported late
        return ServedModel(source.path, reranker, time.time())


@dataclass(frozen=True)
class ServedIndex:
    """An index or another search engine, and when it was opened."""

    path: Path
    index: SearchEngine
    loaded: float

    @property
    def info(self) -> dict[str, Any]:
        """What ``/info`` says of it; not where an engine is, as addresses have passwords."""
        from didyma.text.index import PassageIndex

        loaded = {"loaded": _date(self.loaded)}
        if not isinstance(self.index, PassageIndex):
            return {"engine": type(self.index).__name__, **loaded}
        counts = {"passages": len(self.index), "language": self.index.language}
        return {"folder": self.path.name, **loaded, **counts}


class ServedIndexes(Served[ServedIndex]):
    """Several indexes by name."""

    kind = "indexes"

    def _load(self, name: str, source: NamedSource) -> ServedIndex:
        from didyma.text.index import PassageIndex
        from didyma.text.retrieval.resolution import resolve

        engine = None if source.address is None else resolve(source.address)
        index = PassageIndex.open(source.path) if engine is None else engine
        index.search("which")  # imports what is imported late
        return ServedIndex(source.path, index, time.time())


def _name(source: NamedSource) -> str:
    return source.name or source.path.name.partition(".")[0] or source.path.name


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _stamp(path: Path) -> Stamp | None:
    """The identity of a file, or of a folder's manifest; None if there is none."""
    try:
        status = os.stat(path / MANIFEST if path.is_dir() else path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
