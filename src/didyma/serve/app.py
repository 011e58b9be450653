"""The ASGI application: routes, requests and responses."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client import Counter, Histogram
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
from didyma.serve.connections import ConnectionLimit
from didyma.serve.dialects import SEARCH, Body, Dialect, Question, SearchQuestion, dialect_of
from didyma.serve.errors import HTTPError
from didyma.serve.hosts import AllowedHosts, HostCheck
from didyma.serve.limits import Limits, values_of
from didyma.serve.logs import log
from didyma.serve.memory import MemoryBudget, MemoryShare, give_memory_back
from didyma.serve.metrics import ServiceMetrics
from didyma.serve.openapi import description
from didyma.serve.page import page_routes
from didyma.serve.responses import JsonResponse, error_response
from didyma.serve.served import Served, ServedIndexes, ServedModels
from didyma.serve.tokens import BearerTokens
from didyma.serve.work import WorkQueue, on_own_thread

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranked

__all__ = ["Service"]

EVERY = 1.0  # seconds between two looks at the files of models
TOP_N, CANDIDATES = 10, 100  # of a search, unless a request or the limits say otherwise


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
    ) -> None:
        self.models, self.limits = models, limits or Limits()
        self.indexes = indexes or ServedIndexes([])
        self.tokens, self.log_queries = tokens or BearerTokens([]), log_queries
        self.queue = WorkQueue(threads or present_cores(), self.limits.waiting)
        self.bodies = MemoryBudget(self.limits.in_flight, self.limits.seconds)
        self.room = ConnectionLimit(self.limits.connections, self.limits.seconds)
        self.metrics = ServiceMetrics(self.queue, self.room, models, self.indexes)
        self._reload_all = asyncio.Event()
        values_of(b"[]", 1)  # so that no request compiles
        self.app = Starlette(
            routes=[
                *page_routes(),
                self._get("/health", lambda: _json({"status": "ok"}), needs_token=False),
                self._get("/ready", self._ready, needs_token=False),
                self._get("/info", lambda: _json(self.info())),
                self._get("/metrics", self.metrics.response),
                self._get("/openapi.json", lambda: _json(self.openapi())),
                Route("/v1/search", HeldRequests(self.search, self), methods=["POST"]),
                Route("/{base:path}rerank", HeldRequests(self.rerank, self), methods=["POST"]),
            ],
            middleware=[] if hosts is None else [Middleware(HostCheck, hosts=hosts)],
            exception_handlers={HTTPError: _error, HTTPException: _error},
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    def _get(
        self, path: str, respond: Callable[[], Response], *, needs_token: bool = True
    ) -> Route:
        async def endpoint(request: Request) -> Response:  # on the event loop, which is never full
            if needs_token:
                self.tokens.check(request.headers.get("authorization"))
            return respond()

        return Route(path, endpoint)

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
            "models": {name: model.info for name, model in self.models.by_name.items()},
            "indexes": {name: index.info for name, index in self.indexes.by_name.items()},
        }

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of this server."""
        return description(
            self.limits,
            with_tokens=bool(len(self.tokens)),
            uses_scores=[one.reranker.uses_scores for one in self.models.by_name.values()],
            has_indexes=bool(self.indexes.by_name),
        )

    async def rerank(self, request: Request, share: MemoryShare) -> Response:
        """Rank documents, in the dialect of the client."""
        path = request.scope["path"]
        return await self._respond(request, share, lambda body: dialect_of(path, body))

    async def search(self, request: Request, share: MemoryShare) -> Response:
        """Find passages of an index, and rank them if there is a model."""
        return await self._respond(request, share, lambda body: SEARCH)

    async def _respond(
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
            answer = await self.queue.run(
                lambda: self._answer(id, dialect, body, fields), self.limits.seconds, client
            )
            status, headers = 200, {}
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
        if "rank_milliseconds" in fields:
            headers["server-timing"] = f"rank;dur={fields['rank_milliseconds']}"
        headers["x-request-id"] = id
        return JsonResponse(answer, status, headers)

    async def _body(self, request: Request, share: MemoryShare) -> Body:
        try:
            return await self.limits.read(request, share)
        except TimeoutError:
            raise HTTPError(408, f"no whole request within {self.limits.seconds:g} s") from None

    def _answer(self, id: str, dialect: Dialect[Any], body: Body, fields: dict[str, Any]) -> bytes:
        """Decode, rank and encode, on a thread; ``fields`` are for the log."""
        self.limits.check_values(body)
        question = dialect.read(body)
        try:
            if isinstance(question, SearchQuestion):
                question, ranked = self._search(question, fields)
            else:
                ranked = self._rank(question, fields)
        except DataError as error:
            if error.path is not None:  # a damaged file is no fault of the client's
                raise
            raise HTTPError(dialect.invalid, str(error)) from None
        return dialect.answer(id, question, ranked)

    def _rank(self, question: Question, fields: dict[str, Any]) -> list[Ranked]:
        """The documents of a request, the best first."""
        self.limits.check(question)
        name = self.models.resolve(question.model)
        fields |= {"model": name, "documents": len(question.documents)}
        with self._measured(question.query, fields, self.metrics.rank_seconds, name):
            reranker = self.models.by_name[name].reranker
            _check_scores(question, uses_scores=reranker.uses_scores)
            ranked = reranker.rank(
                question.query,
                [document.text for document in question.documents],
                question.top_n,
                question.scores,
                explain=question.explain or question.spans is not None,
            )
        self.metrics.documents.observe(len(question.documents))
        return ranked

    def _search(
        self, question: SearchQuestion, fields: dict[str, Any]
    ) -> tuple[SearchQuestion, list[Ranked]]:
        """The request with the names of index and model, and the passages that it asks for."""
        self.limits.check_search(question)
        name = self.indexes.resolve(question.index)
        has_models = question.model is not None or bool(self.models.by_name)
        model = self.models.resolve(question.model) if has_models else None
        if model is None and question.explain:
            raise HTTPError(SEARCH.invalid, "expected a model for reasons: BM25 has none")
        fields |= {"index": name, "model": model}
        with self._measured(question.query, fields, self.metrics.search_seconds, name):
            ranked = self.indexes.by_name[name].index.search(
                question.query,
                question.top_n or min(TOP_N, self.limits.documents),
                reranker=None if model is None else self.models.by_name[model].reranker,
                candidates=question.candidates or min(CANDIDATES, self.limits.documents),
                explain=question.explain,
            )
        return replace(question, index=name, model=model), ranked

    @contextmanager
    def _measured(
        self, query: str, fields: dict[str, Any], histogram: Histogram, label: str
    ) -> Iterator[None]:
        """Note how long it takes, for log and metrics."""
        if self.log_queries:
            fields["query"] = query
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        fields["rank_milliseconds"] = round(1000 * seconds, 3)
        histogram.labels(label).observe(seconds)

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

    async def _watch(self) -> None:
        """Load models and indexes anew when that is asked for, or their files have changed.

        A file that is read for ever keeps only itself from being loaded anew.
        """
        kinds: list[tuple[str, Served[Any], Counter]] = [
            ("model", self.models, self.metrics.reloads),
            ("index", self.indexes, self.metrics.index_reloads),
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
            if self.bodies.had_large:
                self.bodies.had_large = False
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
            log(logging.INFO, "reload", **fields)


class HeldRequests:
    """A route whose requests hold memory (`MemoryShare`) until their responses are sent."""

    def __init__(
        self, respond: Callable[[Request, MemoryShare], Awaitable[Response]], service: Service
    ) -> None:
        self._respond, self._service = respond, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond."""
        with self._service.bodies.share() as share:
            response = await self._respond(Request(scope, receive, send), share)
            share.resize(len(response.body))
            with suppress(TimeoutError):  # uvicorn then ends the connection
                async with share.waiting(self._service.limits.seconds):
                    await response(scope, receive, send)


def _json(value: Any, status: int = 200) -> Response:
    return JsonResponse(msgspec.json.encode(value), status)


def _check_scores(question: Question, *, uses_scores: bool) -> None:
    """Raise unless a request has the first stage's scores exactly if the model was trained so."""
    scores, n_documents = question.scores, len(question.documents)
    if scores is None and uses_scores:
        raise DataError("expected the first stage's scores, found none", field="scores")
    if scores is not None and not uses_scores:
        raise DataError(
            "the model was trained without a first stage's: leave them out", field="scores"
        )
    if scores is not None and len(scores) != n_documents:
        raise DataError(f"expected {n_documents}, found {len(scores)}", field="scores")


def _error(request: Request, error: Exception) -> Response:
    """The response to an error outside of `Service._respond`."""
    if isinstance(error, HTTPException):
        reason = f"{error.detail}: {request.method} {request.url.path}"
        return error_response(HTTPError(error.status_code, reason), error.headers)
    assert isinstance(error, HTTPError)
    return error_response(error)
