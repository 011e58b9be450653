"""State of shards on workers, and calls to them.

A shard is a Dask future of `Lists`, and where that is, its state is: rows that were checked, a
problem with its compiled kernels, planes. State is made by a *recipe*, step after step, and never
moves. A worker that is asked about a shard it does not know, as another one was lost, follows the
recipe first. So no question may need more than the recipe tells, except to be fast.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self, TypeVar

from didyma.errors import DataError, MissingExtraError

T = TypeVar("T")
RecipeStep = Callable[[Any], Any]


class Workers:
    """Whoever keeps the shards of some data and answers questions about them: here, this process.

    >>> workers = Workers([1.0, 2.0])
    >>> workers.follow(lambda shard: 10 * shard, 0)
    >>> workers.ask(lambda state, w: state + w, 1.0)
    [11.0, 21.0]
    """

    def __init__(self, shards: Sequence[Any]) -> None:
        self._shards = list(shards)
        self._steps: list[Any] = []  # of the recipe, each with a name
        self._caches = [_ShardCache() for _ in shards]

    @property
    def n_shards(self) -> int:
        """How many there are."""
        return len(self._shards)

    def follow(self, step: RecipeStep, place: int) -> None:
        """Let this be a step of the recipe, instead of those that stood from its place on."""
        self._steps[place:] = [(uuid.uuid4().hex, step)]

    def keep(self, shards: Sequence[int]) -> None:
        """Ask only these from now on."""
        self._shards = [self._shards[k] for k in shards]
        self._caches = [self._caches[k] for k in shards]

    def branch(self) -> Workers:
        """The same shards with states of their own, made by the first step of the same recipe."""
        other = Workers(self._shards)
        other._steps = self._steps[:1]
        return other

    def ask(self, question: Callable[..., T], *common: Any, each: Sequence[Any] = ()) -> list[T]:
        """Answers ``question(state, *common)`` of all shards, in their order.

        Where there is an argument for each, it comes last.
        """
        return [
            question(cache.state(shard, self._steps), *common, *([each[k]] if len(each) else []))
            for k, (cache, shard) in enumerate(zip(self._caches, self._shards))
        ]


class Cluster(Workers):
    """Shards on the workers of a Dask cluster; leaving the context releases all they keep."""

    def __init__(self, client: Any, shards: Sequence[Any]) -> None:
        super().__init__(shards)  # steps are futures: a step travels to each worker but once
        self._client, self._run = client, uuid.uuid4().hex
        self._owners: list[str | None] = [None] * len(shards)
        self._asked: list[Any] = []
        self._branches: list[Cluster] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for branch in self._branches:
            branch.__exit__()
        self._client.cancel([*self._asked, *self._steps, *self._shards], force=True)
        self._asked, self._steps, self._shards, self._branches = [], [], [], []
        self._client.run(_forget, self._run, on_error="ignore")

    def follow(self, step: RecipeStep, place: int) -> None:
        """A step of the recipe."""
        self._steps[place:] = [self._send("step", (uuid.uuid4().hex, _packed(step)))]

    def keep(self, shards: Sequence[int]) -> None:
        """Ask only these from now on."""
        super().keep(shards)
        self._owners = [self._owners[k] for k in shards]

    def branch(self) -> Cluster:
        """The same shards with states of their own."""
        other = Cluster(self._client, self._shards)
        other._steps, other._owners = self._steps[:1], list(self._owners)
        self._branches.append(other)
        return other

    def ask(self, question: Callable[..., T], *common: Any, each: Sequence[Any] = ()) -> list[T]:
        """Answers of all shards; what they have in common leaves this process once."""
        self._asked = [asked := self._send("question", _packed((question, common)))]
        for k, (shard, owner) in enumerate(zip(self._shards, self._owners)):
            last = [_packed(each[k])] if len(each) else []
            where = {} if owner is None else {"workers": [owner], "allow_other_workers": True}
            about = (self._run, shard.key, shard, self._steps, asked, last)
            self._asked.append(
                self._client.submit(_answer, *about, key=_key("answer"), pure=False, **where)
            )
        answers = self._client.gather(self._asked[1:])
        self._owners = [owner for owner, _ in answers]
        self._asked = []
        return [answer for _, answer in answers]

    def _send(self, what: str, value: Any) -> Any:
        return self._client.submit(_identity, value, key=_key(what), pure=False)


def _key(what: str) -> str:
    return f"didyma-{what}-{uuid.uuid4().hex}"


class _ShardCache:
    """The state of a shard, and the steps that made it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._state: Any = None
        self._done: list[str] = []

    def state(self, shard: Any, steps: Sequence[tuple[str, RecipeStep]]) -> Any:
        """The state, by those steps of the recipe that were not followed yet."""
        for place, (name, step) in enumerate(steps):
            if self._done[place : place + 1] == [name]:
                continue
            del self._done[place:]
            self._state = step(self._state if place else shard)
            self._done.append(name)
        return self._state


_CACHES: dict[tuple[str, str], _ShardCache] = {}  # on a worker: what it keeps, by run and shard
_OVER: set[str] = set()  # runs that have ended, of which a question may still be under way


def _identity(value: T) -> T:
    return value


def _answer(
    run: str,
    name: str,
    shard: Any,
    steps: Sequence[tuple[str, bytes]],
    asked: bytes,
    last: list[bytes],
) -> tuple[str, Any]:
    from distributed import get_worker

    question, common = _unpacked(asked)
    follow = [(made_by, partial(_follow, step)) for made_by, step in steps]
    cache = _ShardCache() if run in _OVER else _CACHES.setdefault((run, name), _ShardCache())
    with cache.lock:
        state = cache.state(shard, follow)
        return get_worker().address, question(state, *common, *map(_unpacked, last))


def _packed(value: Any) -> bytes:
    """In one piece: arrays that travel on their own begin anywhere in a message, unaligned."""
    from distributed.protocol.pickle import dumps

    return bytes(dumps(value))


def _unpacked(value: bytes) -> Any:
    from distributed.protocol.pickle import loads

    return loads(value)


def _follow(step: bytes, state: Any) -> Any:
    return _unpacked(step)(state)


def _forget(run: str) -> None:
    _OVER.add(run)
    for key in [key for key in _CACHES if key[0] == run]:
        del _CACHES[key]


def active_client() -> Any:
    """The Dask client that is in use."""
    try:
        from distributed import default_client
    except ImportError:
        raise MissingExtraError("learning on a cluster", "dask") from None
    try:
        return default_client()
    except ValueError:
        raise DataError(
            "expected a cluster to work on: make a dask.distributed.Client first"
        ) from None


def refuse_on_cluster(**given: Any) -> None:
    """Refuse arguments that have no meaning there, or whose meaning is not written."""
    for name, value in given.items():
        if value is not None:
            raise DataError("is not for data on a cluster: leave it out", field=name)
