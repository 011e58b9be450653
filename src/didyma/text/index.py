"""Indexes of passages: folders that answer queries, made by hand or kept in the user's cache."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.array_folder import (
    ArrayFolder,
    check_replaceable,
    is_folder,
    open_folder,
    replace_folder,
)
from didyma.data.json_lines import parse_json
from didyma.data.lists import Lists
from didyma.data.passage import Passage, passages_of
from didyma.data.texts import chunking, corpus
from didyma.errors import DataError, placed
from didyma.files import PathName
from didyma.ranking.featuriser import check_array
from didyma.text.dense import GRAPH, DenseVectors, largest, write_graph
from didyma.text.encoders.encoder import Encoder, Fingerprint
from didyma.text.encoders.resolution import EncoderLike, resolve
from didyma.text.features.bm25 import BM25
from didyma.text.features.reading import Reading
from didyma.text.retrieval.search_engine import Retrieved, SearchEngine, fuse
from didyma.text.vector_store import VectorStore

KIND, VERSION = "an index of passages", 3  # 1 had hashes of words, 2 no vectors
OTHERS = ("offsets", "vectors", "fingerprint")  # arrays beside those of BM25
TEXTS = "passages.jsonl"
EVERY = 10_000  # passages between two reports


class Candidates(NamedTuple):
    """Passages that a query finds: places and scores, best first, and scores of each first stage.

    ``stages`` has ``bm25`` and, if the index has vectors, ``dense``, the cosine.
    """

    places: NDArray[np.int64]
    scores: NDArray[np.float64]
    stages: dict[str, NDArray[np.float64]]


class PassageIndex(SearchEngine):
    """Passages on disk, found by BM25 and, if wanted, ranked by a reranker.

    >>> import tempfile
    >>> from didyma import PassageIndex
    >>> folder = tempfile.mkdtemp()
    >>> texts = ["Jane Austen wrote Emma.", "It is late.", {"id": "faust", "text": "A play."}]
    >>> index = PassageIndex.build(texts, f"{folder}/index")
    >>> for found in index.search("who wrote Emma?"):
    ...     print(found.id, found.text)
    1 Jane Austen wrote Emma.
    >>> [found.id for found in PassageIndex.open(f"{folder}/index").search("plays")]
    ['faust']

    `search` ranks by BM25, or with vectors by BM25 and cosine fused (`candidates`); a reranker
    knows these scores as ``bm25`` and ``dense``.

    The folder holds the passages as JSON lines, the lists of `didyma.text.BM25` as arrays,
    which are mapped into memory, and a manifest with checksums.
    """

    stages = ("bm25",)

    def __init__(self, folder: ArrayFolder) -> None:
        self.path, self.record = folder.path, folder.record
        self._folder, arrays = folder, folder.arrays
        try:
            lists = {name: array for name, array in arrays.items() if name not in OTHERS}
            self._bm25 = BM25.from_state(lists, folder.record["bm25"])
            self._offsets = arrays["offsets"]
            check_array("offsets", self._offsets, np.int64, (len(arrays["lengths"]) + 1,))
            self._texts = np.memmap(folder.path / TEXTS, np.uint8, "r")
            if (np.diff(self._offsets) < 0).any() or self._offsets[-1] != len(self._texts):
                raise ValueError("expected passages one after the other")
            self.dense: DenseVectors | None = None
            if "vectors" in arrays:
                name, fingerprint = str(self.record["encoder"]), Fingerprint(arrays["fingerprint"])
                self.dense = DenseVectors(arrays["vectors"], name, fingerprint, self.path)
                if len(self.dense.vectors) != len(self):
                    raise ValueError("expected a vector for each passage")
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"is damaged ({error})", path=folder.path) from None

    @classmethod
    def build(
        cls,
        passages: PathName | Iterable[Any],
        path: PathName,
        *,
        language: str | None = "auto",
        callback: Callable[[int], object] | None = None,
        record: dict[str, Any] | None = None,
        encoder: EncoderLike = None,
        store: VectorStore | PathName | None = None,
        on_encoded: Callable[[int], object] | None = None,
    ) -> Self:
        """Make an index, which replaces the one that is there when it is complete.

        Parameters
        ----------
        passages : path, or texts and mappings with a text
            A file or a folder (`didyma.data.texts.corpus`), or the passages themselves, as
            `didyma.TextReranker.rank` takes them. Without ids they are called 1, 2, …
        path : path
            The folder of the index.
        language : str or None
            Of stop words and stems; "auto" finds out.
        callback : callable, optional
            Called with the number of passages now and then.
        record : dict, optional
            Anything else that the manifest should hold.
        encoder : Encoder, str, object or callable, optional
            What makes vectors of the passages, so that `search` finds by meaning as well as by
            words (`didyma.text.encoders.resolve`).
        store : VectorStore or path, optional
            Where vectors are kept as they are made, so that an interrupted run goes on where it
            was, and passages that stay as they were are not encoded again; without one, below
            ``vectors`` in the folder of this user's caches.
        on_encoded : callable, optional
            Called with the number of passages that have a vector, after each batch.
        """
        encoder = None if encoder is None else resolve(encoder)
        check_replaceable(path, KIND)
        if isinstance(passages, str | PathLike):
            origin, source = passages, corpus.read(passages)
        else:
            origin, source = None, iter(passages_of(passages))
        with replace_folder(path, KIND, VERSION) as writer:
            offsets, texts = [0], list[str]()
            with writer.file(TEXTS) as file:

                def stored() -> Iterator[str]:
                    for text, line in _lines(source, origin):
                        file.write(line)
                        offsets.append(offsets[-1] + len(line))
                        if callback is not None and len(offsets) % EVERY == 0:
                            callback(len(offsets) - 1)
                        if encoder is not None:
                            texts.append(text)
                        yield text

                bm25 = BM25(language).fit(stored())
            arrays, values = bm25.state()
            for name, array in {**arrays, "offsets": np.array(offsets, np.int64)}.items():
                writer.array(name, array)
            writer.record = {**(record or {}), "n_passages": len(offsets) - 1, "bm25": values}
            if encoder is not None:
                place = VectorStore.at(cache_home() / "vectors" if store is None else store)
                place.fill(encoder, texts, callback=on_encoded)
                vectors = place.get(encoder, texts)
                writer.array("vectors", vectors.astype(np.float16))
                if write_graph(vectors, writer.folder / GRAPH):
                    writer.adopt(GRAPH)
                writer.array("fingerprint", encoder.fingerprint.vectors)
                writer.record["encoder"] = encoder.name
        return cls.open(path)

    @classmethod
    def open(cls, path: PathName) -> Self:
        """The index in a folder; little of it is read before it is asked for."""
        return cls(open_folder(path, KIND, VERSION))

    def verify(self) -> None:
        """Read all of it, and refuse files that are not what was written."""
        self._folder.verify()

    def __reduce__(self) -> Any:
        """A copy maps the same folder, wherever it is opened."""
        return type(self).open, (self.path,)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def title(self) -> str:
        """What its order is called."""
        return "BM25" if self.dense is None else "BM25 and meaning"

    def __repr__(self) -> str:
        return f"PassageIndex({len(self)} passages in {str(self.path)!r})"

    @property
    def n_bytes(self) -> int:
        """Size of its files."""
        return sum(file["bytes"] for file in self._folder.files.values())

    @property
    def language(self) -> str | None:
        """Language of the passages."""
        return self._bm25.reader_.language

    def passage(self, place: int) -> Passage:
        """The passage at a place."""
        line = self._texts[self._offsets[place] : self._offsets[place + 1]].tobytes()
        try:
            record = parse_json(line.decode())
            rest = record.get("metadata", {}), record.get("fields", {})
            return Passage(record["text"], record["id"], *rest)
        except (ValueError, TypeError, KeyError, RecursionError):
            problem = "is damaged: expected a passage"
            raise DataError(problem, path=self.path / TEXTS, line=place + 1) from None

    def attach(self, encoder: EncoderLike) -> Self:
        """Give an index with vectors the encoder they were made with; another is refused.

        One that is an installed package with its weights is found by itself.
        """
        if self.dense is None:
            raise DataError("has no vectors of its passages", path=self.path, field="encoder")
        with placed(self.path):
            self.dense.attach(encoder)
        return self

    def candidates(self, query: str, k: int) -> Candidates:
        """The k best passages by each first stage, with the scores of all stages.

        With BM25 and vectors the order is that of reciprocal rank fusion, Σ 1 / (60 + rank), and
        there may be 2 k.
        """
        if self.dense is None:
            [(places, scores)] = self.top([query], k)
            return Candidates(places, scores, {"bm25": scores})
        [(matching, weights)] = self.top([query], max(len(self), 1))
        bm25 = np.zeros(len(self))
        bm25[matching] = weights
        vector = self.dense.encode(query)
        fused = fuse((matching[:k], self.dense.nearest(vector, k)), len(self))
        places = largest(fused, int(np.count_nonzero(fused)))
        dense = self.dense.cosines(vector, places).astype(np.float64)
        return Candidates(places, fused[places], {"bm25": bm25[places], "dense": dense})

    def top(
        self, queries: Sequence[str], k: int
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """For each query places and scores of the k best passages by BM25, best first."""
        return self._bm25.top(queries, k)

    def retrieve(self, query: str, k: int) -> Retrieved:
        """The k best passages by each first stage, with the scores of all stages."""
        with placed(self.path):
            places, scores, stages = self.candidates(query, k)
        return Retrieved([self.passage(place) for place in places.tolist()], scores, stages, places)

    def _read(self, lists: Lists) -> Reading:
        return self._bm25.reader_.read(lists)


def _lines(passages: Iterable[Passage], path: PathName | None) -> Iterator[tuple[str, bytes]]:
    """The text of each passage, and the line that it is kept as."""
    seen: set[str] = set()
    for number, passage in enumerate(passages, 1):
        name = str(number) if passage.id is None else str(passage.id)
        if name in seen:
            problem = f"expected each id once, found {name!r:.40} again"
            raise DataError(problem, path=path, field="id")
        seen.add(name)
        record: dict[str, Any] = {"id": name, "text": passage.text}
        if passage.metadata:
            record["metadata"] = passage.metadata
        if len(passage.fields) > 1:
            record["fields"] = passage.fields
        try:
            line = json.dumps(record, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            problem = f"half of a surrogate pair cannot be written as UTF-8, in {name!r:.40}"
            raise DataError(problem, path=path) from None
        yield passage.text, line + b"\n"


def cache_home() -> Path:
    """The folder of this user's caches; it may not exist yet."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home()), "didyma")
    if configured := os.environ.get("XDG_CACHE_HOME"):
        return Path(configured, "didyma")
    try:
        return Path.home() / ".cache" / "didyma"
    except RuntimeError:  # no home folder
        return Path(tempfile.gettempdir(), f"didyma-{os.getuid()}")


def index_of(
    path: PathName,
    *,
    language: str | None = "auto",
    encoder: EncoderLike = None,
    **options: Any,
) -> PassageIndex:
    """The index at a path, or one of the texts there, which is made if they have changed.

    It is kept below ``indexes`` in the folder of this user's caches, not beside the texts, which
    may be somebody else's. Other ``options`` are those of `PassageIndex.build`.
    """
    encoder = None if encoder is None else resolve(encoder)
    if is_folder(path, KIND):
        return _opened(path, encoder)
    source = corpus.source(path).resolve()
    folder = cache_home() / "indexes"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = [str(source), str(language), *([] if encoder is None else [encoder.name])]
    cached = folder / f"{source.name}-{_digest(*names)[:16]}"
    stamp = _stamp(source)
    if is_folder(cached, KIND):
        with suppress(DataError):  # damaged, or of another version or encoder: it is made anew
            index = _opened(cached, encoder)
            if index.record.get("stamp") == stamp:
                return index
    record = {"source": str(source), "stamp": stamp}
    settings = {"language": language, "record": record, "encoder": encoder, **options}
    PassageIndex.build(path, cached, **settings)
    return _opened(cached, encoder)


def _opened(path: PathName, encoder: Encoder | None) -> PassageIndex:
    index = PassageIndex.open(path)
    return index if encoder is None else index.attach(encoder)


def _stamp(source: Path) -> str:
    """What tells the texts from those that were there before: names, sizes and times."""
    files = chunking.files(source)[0] if source.is_dir() else [source]
    stats = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return _digest(*map(str, stats))


def _digest(*texts: str) -> str:
    return sha256("\n".join(texts).encode("utf-8", "surrogateescape")).hexdigest()
