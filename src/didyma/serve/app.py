"""The ASGI application: routes, requests and responses."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from typing import Any, TypeAlias

import msgspec
from prometheus_client import Counter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from didyma import __version__
from didyma.errors import DataError
from didyma.execution import present_cores
from didyma.judgements import JudgementStore
from didyma.serve.access import PROBES, AllowedHosts, BearerTokens, HostCheck
from didyma.serve.afterwards import Afterwards, Observer
from didyma.serve.answering import Answering
from didyma.serve.connections import ConnectionLimit
from didyma.serve.dialects import Body, Dialect, Question, dialect_of
from didyma.serve.limits import Limits
from didyma.serve.logs import log
from didyma.serve.memory import MemoryBudget, MemoryShare, give_memory_back
from didyma.serve.metrics import ServiceMetrics
from didyma.serve.native import (
    NATIVE,
    Operation,
    ScoreQuestion,
    SearchBody,
    score_dialect_of,
)
from didyma.serve.openapi import description
from didyma.serve.page import page_routes
from didyma.serve.responses import HTTPError, JsonResponse, error_response
from didyma.serve.samples import SampleFile
from didyma.serve.served import Served, ServedIndexes, ServedModels
from didyma.serve.watch import Watch
from didyma.serve.work import WorkQueue, on_own_thread
from didyma.text.steps import Step

EVERY = 1.0  # seconds between two looks at the files of models
LATER = 4 << 20  # bytes of requests that are looked at after their answers

DialectOf: TypeAlias = Callable[[str, Body], Dialect[Any]]


class Service:
    """Rerankers and indexes behind HTTP; `app` is the ASGI application.

    Parameters
    ----------
    models : ServedModels
    limits : Limits
    tokens : BearerTokens
        One of which a request needs; probes of health need none.
    indexes : ServedIndexes, optional
        Passages to search.
    hosts : AllowedHosts, optional
        Allowed values of the Host header; any if not given.
    threads : int, optional
        That rank at the same time; every core if not given.
    log_queries : bool
        Write queries into the log.
    then : sequence of Step
        Steps after ranking, for requests that ask for none of their own.
    judgements : JudgementStore, optional
        Where judgements that are sent are kept.
    shadows : ServedModels, optional
        Models that rank the requests to those of the same names, and are not answered.
    samples : SampleFile, optional
        Where a sample of requests is kept.
    """

    def __init__(
        self,
        models: ServedModels,
        limits: Limits | None = None,
        tokens: BearerTokens | None = None,
        *,
        indexes: ServedIndexes | None = None,
        hosts: AllowedHosts | None = None,
        threads: int | None = None,
        log_queries: bool = False,
        then: Sequence[Step] = (),
        judgements: JudgementStore | None = None,
        shadows: ServedModels | None = None,
        samples: SampleFile | None = None,
    ) -> None:
        self.models, self.limits = models, limits or Limits()
        self.indexes, self.judgements = indexes or ServedIndexes([]), judgements
        self.tokens = tokens or BearerTokens([])
        self.queue = WorkQueue(threads or present_cores(), self.limits.waiting)
        self.memory = MemoryBudget(self.limits.in_flight, self.limits.seconds)
        self.connections = ConnectionLimit(self.limits.connections, self.limits.seconds)
        self.shadows = shadows or ServedModels([])
        self.afterwards = Afterwards(self.queue, LATER, self.limits.seconds)
        self.watch = Watch(models, self.afterwards.outcomes, samples)
        self.metrics = ServiceMetrics(
            self.queue, self.connections, models, self.indexes, self.watch
        )
        self.answering = Answering(
            models,
            self.indexes,
            self.limits,
            self.metrics,
            log_queries=log_queries,
            then=then,
            observer=Observer(self.watch, self.shadows, samples),
        )
        self._reload_all = asyncio.Event()
        self.app = Starlette(
            routes=[
                *page_routes(),
                self._get("/health", lambda: _json({"status": "ok"})),
                self._get("/ready", self._ready),
                self._get("/info", lambda: _json(self.info())),
                self._get("/v1/models", lambda: _json(self.models.listed())),
                self._get("/metrics", self.metrics.response),
                self._get("/watch", lambda: _json(self.watch.to_dict())),
                self._get("/openapi.json", lambda: _json(self.openapi())),
                *(self._post(path, partial(_always, dialect)) for path, dialect in NATIVE.items()),
                self._post("/{base:path}rerank", dialect_of),
                self._post("/{base:path}score", score_dialect_of),
            ],
            middleware=[] if hosts is None else [Middleware(HostCheck, hosts=hosts)],
            exception_handlers={HTTPError: _error, HTTPException: _error},
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    def _get(self, path: str, respond: Callable[[], Response]) -> Route:
        async def endpoint(request: Request) -> Response:  # on the event loop, which is never full
            if path not in PROBES:
                self.tokens.check(request.headers.get("authorization"))
            return respond()

        return Route(path, endpoint)

    def _post(self, path: str, dialect_of: DialectOf) -> Route:
        return Route(path, HeldRequests(self, dialect_of), methods=["POST"])

    def _ready(self) -> Response:
        """Whether the queue has room for a request."""
        is_full = self.queue.full
        return _json({"status": "busy" if is_full else "ready"}, 503 if is_full else 200)

    def info(self) -> dict[str, Any]:
        """Models, indexes and limits."""
        return {
            "model_id": self.models.default,
            "version": __version__,
            "max_client_batch_size": self.limits.documents,
            "limits": asdict(self.limits),
            "judgements": self.judgements is not None and bool(len(self.tokens)),
            "models": {
                name: {**model.info, "kept": [old.version for old in self.models.versions(name)]}
                for name, model in self.models.by_name.items()
            },
            "indexes": {name: index.info for name, index in self.indexes.by_name.items()},
        }

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of this server."""
        return description(
            self.limits,
            with_tokens=bool(len(self.tokens)),
            rerankers=[one.reranker for one in self.models.by_name.values()],
            has_indexes=bool(self.indexes.by_name),
        )

    async def respond(
        self, request: Request, share: MemoryShare, dialect_for: Callable[[Body], Dialect[Any]]
    ) -> Response:
        """Answer a request, or send an error; count it and log it."""
        began = time.perf_counter()
        id = secrets.token_hex(8)
        fields: dict[str, Any] = {}
        dialect = dialect_for(b"{}")  # for errors before the body is whole
        try:
            token = self.tokens.check(request.headers.get("authorization"))
            client = token or (request.client.host if request.client else None)
            body = await self._body(request, share)
            dialect = dialect_for(body)
            answer, headers = await self.queue.run(
                lambda: self._answer(id, dialect, body, fields), self.limits.seconds, client
            )
            status = 200
        except HTTPError as error:
            status, headers, answer = error.status, error.headers, dialect.refuse(error)
            if status != dialect.invalid:  # whose reason may quote the request
                fields["reason"] = str(error)
        except ClientDisconnect:
            status, headers, answer = 499, {}, b""
        except Exception as error:
            log(logging.ERROR, "fault", error=error, id=id)
            failed = HTTPError(500, f"the server failed; its log says more of {id}")
            status, headers, answer = failed.status, {}, dialect.refuse(failed)
        if works := fields.pop("afterwards", []):
            request.state.afterwards = len(body), works
        seconds = time.perf_counter() - began
        self.metrics.requests.labels(dialect.name, status).inc()
        self.metrics.seconds.labels(dialect.name).observe(seconds)
        log(
            logging.INFO if status < 500 else logging.ERROR,
            "request",
            id=id,
            dialect=dialect.name,
            status=status,
            milliseconds=round(1000 * seconds, 3),
            **fields,
        )
        if "version" in fields:
            headers["x-model-version"] = fields["version"]
        if "rank_milliseconds" in fields:
            headers["server-timing"] = f"rank;dur={fields['rank_milliseconds']}"
        headers["x-request-id"] = id
        return JsonResponse(answer, status, headers)

    async def _body(self, request: Request, share: MemoryShare) -> Body:
        try:
            return await self.limits.read(request, share)
        except TimeoutError:
            raise HTTPError(408, f"no whole request within {self.limits.seconds:g} s") from None

    def _answer(
        self, id: str, dialect: Dialect[Any], body: Body, fields: dict[str, Any]
    ) -> tuple[bytes, dict[str, str]]:
        """Decode, rank and encode, on a thread; ``fields`` are for the log."""
        self.limits.check_values(body, self.models.dimension)
        question = dialect.read(body)
        ranked: Any
        try:
            if isinstance(question, SearchBody):
                question, ranked = self.answering.search(question, fields)
            elif isinstance(question, ScoreQuestion):
                ranked = self.answering.score(question, fields)
            elif isinstance(question, Question):
                ranked = self.answering.rank(question, fields)
            elif isinstance(question, Operation):
                ranked = question.run(self, fields)
            else:
                ranked = self.answering.rank_all(question, fields, "request")
        except DataError as error:
            if error.path is not None:  # a damaged file is no fault of the client's
                raise
            raise HTTPError(dialect.invalid, str(error)) from None
        return dialect.answer(id, question, ranked), dialect.headers(ranked)

    def reload(self) -> None:
        """Load all models and indexes anew, soon and one after the other."""
        self._reload_all.set()

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        yield
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        self.queue.close()
        self.afterwards.close()

    async def _watch(self) -> None:
        """Load models and indexes anew when that is asked for, or their files have changed.

        A file that is read for ever keeps only itself from being loaded anew.
        """
        kinds: list[tuple[str, Served[Any], Counter]] = [
            ("model", self.models, self.metrics.reloads),
            ("index", self.indexes, self.metrics.index_reloads),
            ("shadow", self.shadows, self.metrics.shadow_reloads),
        ]
        reading: dict[tuple[str, str], asyncio.Task[None]] = {}
        while True:
            reading = {key: task for key, task in reading.items() if not task.done()}
            # What has changed may still be written: it is loaded a moment later.
            wanted = await on_own_thread(lambda: [served.changed() for _, served, _ in kinds])
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._reload_all.wait()
                wanted = [list(served.by_name) for _, served, _ in kinds]
                self._reload_all.clear()
            if self.memory.had_large:
                self.memory.had_large = False
                give_memory_back()
            for (kind, served, counter), names in zip(kinds, wanted):
                for name in names:
                    if (kind, name) not in reading:
                        task = self._reload(kind, served, name, counter)
                        reading[kind, name] = asyncio.create_task(task)

    async def _reload(self, kind: str, served: Served[Any], name: str, counter: Counter) -> None:
        fields: dict[str, Any] = {kind: name}
        try:
            await on_own_thread(lambda: served.reload(name))
        except Exception as error:  # whatever the file holds, the old one goes on
            counter.labels(name, "failed").inc()
            log(logging.ERROR, "reload failed", error=error, **fields)
        else:
            counter.labels(name, "done").inc()
            if (version := getattr(served.by_name[name], "version", None)) is not None:
                fields["version"] = version  # which an index has not
            log(logging.INFO, "reload", **fields)


class HeldRequests:
    """Requests in the dialect of their path and body, which hold memory until they are answered."""

    def __init__(self, service: Service, dialect_of: DialectOf) -> None:
        self._service, self._dialect_of = service, dialect_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond."""
        with self._service.memory.share() as share:
            request = Request(scope, receive, send)
            dialect_for = partial(self._dialect_of, scope["path"])
            response = await self._service.respond(request, share, dialect_for)
            share.resize(len(response.body))
            with suppress(TimeoutError):  # uvicorn then ends the connection
                async with share.waiting(self._service.limits.seconds):
                    await response(scope, receive, send)
        if (works := getattr(request.state, "afterwards", None)) is not None:
            self._service.afterwards.add(*works)


def _always(dialect: Dialect[Any], path: str, body: Body) -> Dialect[Any]:
    return dialect


def _json(value: Any, status: int = 200) -> Response:
    return JsonResponse(msgspec.json.encode(value), status)


def _error(request: Request, error: Exception) -> Response:
    """The response to an error outside of `Service.respond`."""
    if isinstance(error, HTTPException):
        reason = f"{error.detail}: {request.method} {request.url.path}"
        return error_response(HTTPError(error.status_code, reason), error.headers)
    assert isinstance(error, HTTPError)
    return error_response(error)
