"""Data that stand in many places, as futures of `Lists` on the workers of a cluster.

Whatever the data are, Dask arrays, data frames or files, a shard has whole queries. A query that
stands in several partitions moves to the first of them, and nothing else moves. Dask knows how each
future was made, and makes those of a lost worker again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.matrix import Columns, is_sparse
from didyma.data.row_blocks import concatenate, slice_rows
from didyma.errors import DataError, placed
from didyma.execution import Remote
from didyma.files import PathName


@dataclass(frozen=True)
class Shards(Remote):
    """Judged results in files that the workers of a Dask cluster read, to fit a ranker on.

    ``path`` is a folder whose files, in any format that `didyma.read` knows, are the shards; a
    folder of lists (`didyma convert train.txt train.lists`), of which each worker reads a range; or
    one file. Those of a `didyma.Reranker` hold texts, in any format that `didyma.data.texts.reader`
    knows. Workers must see it under the same name.

    >>> from dask.distributed import Client                        # doctest: +SKIP
    >>> with Client("tcp://scheduler:8786"):                       # doctest: +SKIP
    ...     ranker = SVMRanker().fit(Shards("/data/train"))
    """

    path: PathName

    def sources(self, n_parts: int) -> list[tuple[Path, int, int]]:
        """Files to read, each with the part that is wanted and the number of its parts."""
        from didyma.data import lists_folder

        folder = Path(self.path).absolute()
        if not folder.exists():
            raise DataError("no such file or folder", path=self.path)
        if not folder.is_dir():
            return [(folder, 0, 1)]
        if lists_folder.is_lists_folder(folder):
            return [(folder, part, n_parts) for part in range(n_parts)]
        files = sorted(file for file in folder.iterdir() if not file.name.startswith("."))
        if not files:
            raise DataError("expected files of judged results, found none", path=self.path)
        return [(file, 0, 1) for file in files]


@dataclass(frozen=True)
class RemoteRows(Remote):
    """Rows that are on workers already: futures of `Lists`."""

    futures: tuple[Any, ...]


def shards_of(client: Any, X: Any, y: Any = None, qid: Any = None) -> list[Any]:
    """Futures of lists of whole queries with the same columns: at most one for each thread.

    More would make learners slower, as each shard is solved on its own.
    """
    with _Tasks(client) as tasks:
        if isinstance(X, Shards | RemoteRows) and (y is not None or qid is not None):
            raise DataError("shards have a y and a qid already: give no others")
        n_threads = _n_threads(client)
        if isinstance(X, RemoteRows):
            places, shards = ["a shard"] * len(X.futures), [*X.futures]
        elif isinstance(X, Shards):
            sources = X.sources(n_threads)
            places = [str(path) for path, *_ in sources]
            shards = tasks.map(_read, sources)
        else:
            parts = _partitions(X, y, qid)
            places = [f"partition {k}" for k in range(len(parts))]
            shards = tasks.compute(parts)
        summaries = tasks.ask(_summary, shards)
        features = _merged([summary.features for summary in summaries])
        shards = [
            shard
            if summary.features == features
            else tasks.submit(_conformed, shard, features, place)
            for shard, summary, place in zip(shards, summaries, places)
        ]
        return _few(tasks, *_whole(tasks, shards, summaries), n_threads)


def text_shards_of(client: Any, data: Any) -> list[Any]:
    """The same of lists of texts: `Shards`, or a data frame with columns query, passage, label.

    A query is known by its text, as files have ids of their own, or none.
    """
    with _Tasks(client) as tasks:
        if isinstance(data, Shards):
            shards = tasks.map(_read_texts, [path for path, *_ in data.sources(1)])
        elif hasattr(data, "columns"):
            from dask.delayed import delayed

            as_texts = delayed(_as_texts)
            parts = np.ravel(data.to_delayed())
            shards = tasks.compute([as_texts(k, part) for k, part in enumerate(parts)])
        else:
            raise DataError("expected texts: Shards, or a data frame of Dask", field="lists")
        summaries = tasks.ask(_summary, shards)
        return _few(tasks, *_whole(tasks, shards, summaries), _n_threads(client))


class _Tasks:
    """Tasks of a client, which are all cancelled if the block ends by an error."""

    def __init__(self, client: Any) -> None:
        self.client, self._futures = client, list[Any]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.client.cancel(self._futures, force=True)

    def submit(self, function: Any, *arguments: Any) -> Any:
        """The future of a call on a worker."""
        self._futures.append(self.client.submit(function, *arguments, pure=False))
        return self._futures[-1]

    def map(self, function: Any, values: Sequence[Any]) -> list[Any]:
        """The future of a call for each value."""
        return [self.submit(function, value) for value in values]

    def compute(self, parts: list[Any]) -> list[Any]:
        """Futures of delayed values."""
        self._futures += (futures := self.client.compute(parts))
        return list(futures)

    def ask(self, function: Any, values: Sequence[Any]) -> list[Any]:
        """Results of a call for each value."""
        return list(self.client.gather(self.map(function, values)))


def _n_threads(client: Any) -> int:
    return max(1, sum(client.nthreads().values()))


@dataclass(frozen=True)
class _Summary:
    """Summary of a shard; texts have no features yet."""

    features: Any
    n_rows: int
    n_queries: int
    lowest: Any
    highest: Any


def _summary(lists: Lists) -> _Summary:
    names = lists.groups.names.tolist()
    least, most = (min(names), max(names)) if names else (None, None)
    features = lists.features if lists.queries is None else None
    return _Summary(features, len(lists), len(names), least, most)


def _read(source: tuple[Path, int, int]) -> Lists:
    from didyma.data import formats

    path, part, n_parts = source
    lists = formats.read(path)
    if lists.labels is None:
        raise DataError("expected judged results, found no labels", path=path)
    return lists if n_parts == 1 else _range(lists, part, n_parts)


def _range(lists: Lists, part: int, n_parts: int) -> Lists:
    """A range of the lists, about as long as others; of a memory map only that is read."""
    starts = lists.groups.starts
    cuts = np.searchsorted(starts, np.linspace(0, len(lists), n_parts + 1))
    first, last = cuts[part], cuts[part + 1]
    if not np.array_equal(lists.groups.rows, np.arange(len(lists))):
        return lists.select_lists(np.arange(first, last))
    return slice_rows(lists, int(starts[first]), int(starts[last]))


def _read_texts(path: Path) -> Lists:
    from didyma.data.texts import reader as texts

    return _by_text(texts.read(path), path)


def _as_texts(number: int, frame: Any) -> Lists:
    from didyma.data.texts import reader as texts

    place = f"partition {number}"
    with placed(place):
        return _by_text(texts.from_frame(frame), place)


def _by_text(lists: Lists, place: PathName) -> Lists:
    """Lists whose queries are called by what their texts are; those of the same text are one."""
    if lists.labels is None:
        raise DataError("expected judged texts, found no labels", path=place)
    names = np.array([sha256(text.encode()).hexdigest()[:32] for text in lists.query_texts])
    qid = names[lists.groups.codes]
    texts = dict(zip(names.tolist(), lists.query_texts))
    queries = [texts[name] for name in Groups.from_qid(qid).names.tolist()]
    return replace(lists, qid=qid, queries=queries, grouping=None)


def _partitions(X: Any, y: Any, qid: Any) -> list[Any]:
    """Delayed lists, one for each partition of a Dask array or data frame."""
    from dask.delayed import delayed

    if y is None:
        raise DataError("expected the grade of each row", field="y")
    if qid is None:
        raise DataError("expected the query of each row, for none to be split", field="qid")
    sizes = None
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise DataError(f"expected a matrix, found shape {X.shape}", field="X")
        X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        sizes = X.chunks[0]
    blocks = np.ravel(X.to_delayed())
    columns = {"y": _blocks(y, sizes), "qid": _blocks(qid, sizes)}
    for name, parts in columns.items():
        if len(parts) != len(blocks):
            problem = f"expected {len(blocks)} partitions as X has, found {len(parts)}"
            raise DataError(problem, field=name)
    as_lists = delayed(_as_lists)
    return [as_lists(k, *block) for k, block in enumerate(zip(blocks, *columns.values()))]


def _blocks(column: Any, sizes: Sequence[int] | None) -> Any:
    """The parts of a column that belong to partitions of these sizes."""
    if hasattr(column, "to_delayed"):
        if sizes is not None and hasattr(column, "chunks") and column.chunks[0] != sizes:
            column = column.rechunk((sizes,))
        return np.ravel(column.to_delayed())
    if sizes is None:
        return []  # which is of no use: a data frame does not tell how long its partitions are
    return np.split(np.asarray(column), np.cumsum(sizes)[:-1])


def _as_lists(number: int, X: Any, y: Any, qid: Any) -> Lists:
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    labels, queries = np.asarray(y), np.asarray(qid)
    with placed(f"partition {number}"):
        if labels.dtype.kind not in "biuf":
            raise DataError(f"expected numbers, found {labels.dtype}", field="y")
        if queries.dtype == object:
            queries = queries.astype(str)
        matrix = X if is_sparse(X) else np.asarray(X)
        for name, column in zip(names or (), matrix.T if matrix.dtype == object else ()):
            if any(isinstance(value, str) for value in column):
                problem = "expected numbers, found texts, which are no categories on a cluster"
                raise DataError(problem, field=f"column {name!r}")
        return Lists(matrix, labels.astype(np.float64), queries, feature_names=names)


def _merged(columns: Sequence[Columns]) -> Columns:
    """The columns of all shards: files with indices may lack the last ones, or index 0."""
    first = columns[0]
    if first.zero_based is None or first.names is not None:
        return first
    zero_based = any(one.zero_based for one in columns)
    widths = [one.count + int(zero_based and not one.zero_based) for one in columns]
    return Columns(max(widths), None, zero_based)


def _conformed(lists: Lists, features: Columns, place: str) -> Lists:
    if lists.zero_based is not None and lists.zero_based != features.zero_based:
        from didyma.data import formats

        return formats.read(place, like=features)
    return features.arrange(lists, place)


def _whole(
    tasks: _Tasks, shards: Sequence[Any], summaries: Sequence[_Summary]
) -> tuple[list[Any], list[int]]:
    """Shards of whole queries, and how many rows each has."""
    homes = _split(tasks, shards, summaries)
    leaving: list[list[Any]] = [[] for _ in shards]
    pieces: list[list[Any]] = [[] for _ in shards]
    for home, other, names in _moves(homes):
        leaving[other] += names
        pieces[home].append(tasks.submit(_chosen, shards[other], names, True))
    whole, sizes = [], []
    for k, (shard, summary) in enumerate(zip(shards, summaries)):
        if len(leaving[k]) == summary.n_queries:
            continue  # nothing is left
        if leaving[k]:
            shard = tasks.submit(_chosen, shard, leaving[k], False)
        if pieces[k]:
            shard = tasks.submit(concatenate, [shard, *pieces[k]])
        whole.append(shard)
        sizes.append(summary.n_rows)
    return whole, sizes


def _split(
    tasks: _Tasks, shards: Sequence[Any], summaries: Sequence[_Summary]
) -> dict[Any, list[int]]:
    """Queries that stand in several shards, and in which.

    Where the shards are ranges of ascending queries, only those at their ends can. Else the names
    of all queries must be compared.
    """
    full = [k for k, summary in enumerate(summaries) if summary.n_queries]
    ends = [{summaries[k].lowest, summaries[k].highest} for k in full]
    if not all(
        type(summaries[a].highest) is type(summaries[b].lowest)
        and summaries[a].highest <= summaries[b].lowest
        for a, b in pairwise(full)
    ):
        ends = tasks.ask(_names, [shards[k] for k in full])
    places: dict[Any, list[int]] = {}
    for k, names in zip(full, ends):
        for name in names:
            places.setdefault(name, []).append(k)
    return {name: numbers for name, numbers in places.items() if len(numbers) > 1}


def _moves(homes: dict[Any, list[int]]) -> Iterable[tuple[int, int, list[Any]]]:
    """Home, other shard, and the queries that move from there to their home."""
    moves: dict[tuple[int, int], list[Any]] = {}
    for name, (home, *others) in homes.items():
        for other in others:
            moves.setdefault((home, other), []).append(name)
    return [(home, other, names) for (home, other), names in moves.items()]


def _names(lists: Lists) -> list[Any]:
    names: list[Any] = lists.groups.names.tolist()
    return names


def _chosen(lists: Lists, names: list[Any], inside: bool) -> Lists:
    """The queries of these names, or all others."""
    is_named = np.isin(lists.groups.names, np.array(names))
    return lists.select(is_named[lists.groups.codes] == inside)


def _few(tasks: _Tasks, shards: list[Any], sizes: Sequence[int], most: int) -> list[Any]:
    """Neighbours joined until there are few enough shards, of about the same number of rows."""
    if len(shards) <= most:
        return shards
    middle = np.cumsum(sizes) - np.array(sizes) / 2
    groups = np.minimum((middle * most / np.sum(sizes)).astype(int), most - 1)
    return [
        tasks.submit(concatenate, [shards[k] for k in np.flatnonzero(groups == group)])
        for group in np.unique(groups)
    ]
