"""The application: from an HTTP request to an answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

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
from didyma.serve.answers import JsonResponse, refusal_response
from didyma.serve.connections import ConnectionRoom
from didyma.serve.dialects import Body, Dialect, dialect_of
from didyma.serve.hosts import AllowedHosts, HostCheck
from didyma.serve.indexes import ServedIndexes
from didyma.serve.limits import Limits, values_of
from didyma.serve.logs import log
from didyma.serve.memory import BodyRoom, BodyShare, give_memory_back
from didyma.serve.metrics import ServiceMetrics
from didyma.serve.models import ServedModels
from didyma.serve.openapi import description
from didyma.serve.page import page_routes
from didyma.serve.ranking import rank
from didyma.serve.refusal import Refused
from didyma.serve.searching import CANDIDATES, SEARCH, TOP_N
from didyma.serve.served import Served
from didyma.serve.tokens import BearerTokens
from didyma.serve.work import WorkQueue, on_own_thread

__all__ = ["Service"]

EVERY = 1.0  # seconds between two looks at the files of models


class Service:
    """Rerankers behind HTTP; `app` is the ASGI application.

    Parameters
    ----------
    models : ServedModels
    limits : Limits
    tokens : BearerTokens
        Who may ask; probes of health need none.
    indexes : ServedIndexes, optional
        Passages to search.
    hosts : AllowedHosts, optional
        By which names the server may be asked for; any if not given.
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
        self.bodies = BodyRoom(self.limits.in_flight, self.limits.seconds)
        self.room = ConnectionRoom(self.limits.connections, self.limits.seconds)
        self.metrics = ServiceMetrics(self.queue, self.room, models, self.indexes)
        self._reload_all = asyncio.Event()
        values_of(b"[]", 1)  # so that no request compiles
        self.app = Starlette(
            routes=[
                *page_routes(),
                Route("/health", self.health),
                Route("/ready", self.ready),
                Route("/info", self.info),
                Route("/metrics", self.measured),
                Route("/openapi.json", self.openapi),
                Route("/v1/search", HeldRequests(self.search, self), methods=["POST"]),
                Route("/{base:path}rerank", HeldRequests(self.rerank, self), methods=["POST"]),
            ],
            middleware=[] if hosts is None else [Middleware(HostCheck, hosts=hosts)],
            exception_handlers={Refused: _refused, HTTPException: _refused},
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    async def health(self, request: Request) -> Response:
        """Whether the server lives."""
        return _json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Whether the server has room for a request."""
        if self.queue.full:
            return _json({"status": "busy"}, 503)
        return _json({"status": "ready"})

    async def info(self, request: Request) -> Response:
        """What is served, by which limits."""
        self.tokens.check(request.headers.get("authorization"))
        models = {
            name: {
                "file": model.path.name,
                "loaded": datetime.fromtimestamp(model.loaded, UTC).isoformat(timespec="seconds"),
                "verdict": str(model.reranker.gate_),
                "uses_scores": model.reranker.uses_scores,
                "thresholds": model.thresholds,
            }
            for name, model in self.models.by_name.items()
        }
        indexes = {
            name: {
                "folder": served.path.name,
                "loaded": datetime.fromtimestamp(served.loaded, UTC).isoformat(timespec="seconds"),
                "passages": len(served.index),
                "language": served.index.language,
            }
            for name, served in self.indexes.by_name.items()
        }
        return _json(
            {
                "model_id": self.models.default,
                "version": __version__,
                "max_client_batch_size": self.limits.documents,
                "limits": asdict(self.limits),
                "models": models,
                "indexes": indexes,
            }
        )

    async def measured(self, request: Request) -> Response:
        """Metrics for Prometheus."""
        self.tokens.check(request.headers.get("authorization"))
        return Response(self.metrics.text(), media_type=self.metrics.media_type)

    async def openapi(self, request: Request) -> Response:
        """The description of this server."""
        self.tokens.check(request.headers.get("authorization"))
        document = description(
            self.limits,
            with_tokens=bool(len(self.tokens)),
            uses_scores=[one.reranker.uses_scores for one in self.models.by_name.values()],
            has_indexes=bool(self.indexes.by_name),
        )
        return _json(document)

    async def rerank(self, request: Request, share: BodyShare) -> Response:
        """Rank documents, in the dialect of whoever asks."""
        path = request.scope["path"]
        return await self._respond(
            request, share, lambda body: dialect_of(path, body), dialect_of(path), self._ranked
        )

    async def search(self, request: Request, share: BodyShare) -> Response:
        """Find passages of an index, and rank them if there is a model."""
        return await self._respond(request, share, lambda body: SEARCH, SEARCH, self._found)

    async def _respond(
        self,
        request: Request,
        share: BodyShare,
        dialect_for: Callable[[Body], Dialect[Any, Any]],
        dialect: Dialect[Any, Any],
        answer_to: Callable[[str, Dialect[Any, Any], Body, dict[str, Any]], bytes],
    ) -> Response:
        """Answer or refuse, count and log; ``dialect`` is for those without a whole body."""
        began = time.perf_counter()
        id = secrets.token_hex(8)
        fields: dict[str, Any] = {}
        try:
            token = self.tokens.check(request.headers.get("authorization"))
            client = token or (request.client.host if request.client else None)
            body = await self._body(request, share)
            dialect = dialect_for(body)
            answer = await self.queue.run(
                lambda: answer_to(id, dialect, body, fields), self.limits.seconds, client
            )
            status, headers = 200, {}
        except Refused as error:
            status, headers, answer = error.status, error.headers, dialect.refuse(error)
            if status != dialect.invalid:  # whose reason may quote the request
                fields["reason"] = str(error)
        except ClientDisconnect:
            status, headers, answer = 499, {}, b""
        except Exception as error:
            log(logging.ERROR, "fault", error=error, id=id)
            failed = Refused(500, f"the server failed; its log says more of {id}")
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

    async def _body(self, request: Request, share: BodyShare) -> Body:
        try:
            return await self.limits.read(request, share)
        except TimeoutError:
            raise Refused(408, f"no whole request within {self.limits.seconds:g} s") from None

    def _ranked(
        self, id: str, dialect: Dialect[Any, Any], body: Body, fields: dict[str, Any]
    ) -> bytes:
        """The documents of a body, on a thread; ``fields`` are for the log."""
        self.limits.check_values(body)
        question = dialect.read(body)
        self.limits.check(question)
        name = self.models.resolve(question.model)
        fields |= {"model": name, "documents": len(question.documents)}
        if self.log_queries:
            fields["query"] = question.query
        began = time.perf_counter()
        try:
            items = rank(self.models.by_name[name].reranker, question)
        except DataError as error:
            raise Refused(dialect.invalid, str(error)) from None
        seconds = time.perf_counter() - began
        fields["rank_milliseconds"] = round(1000 * seconds, 3)
        self.metrics.rank_seconds.labels(name).observe(seconds)
        self.metrics.documents.observe(len(question.documents))
        return dialect.answer(id, question, items)

    def _found(
        self, id: str, dialect: Dialect[Any, Any], body: Body, fields: dict[str, Any]
    ) -> bytes:
        """The passages that a body asks for, on a thread."""
        self.limits.check_values(body)
        question = SEARCH.read(body)
        self.limits.check_search(question)
        name = self.indexes.resolve(question.index)
        has_models = question.model is not None or bool(self.models.by_name)
        model = self.models.resolve(question.model) if has_models else None
        if model is None and question.explain:
            raise Refused(SEARCH.invalid, "expected a model for reasons: BM25 has none")
        fields |= {"index": name, "model": model}
        if self.log_queries:
            fields["query"] = question.query
        began = time.perf_counter()
        try:
            found = self.indexes.by_name[name].index.search(
                question.query,
                question.top_n or min(TOP_N, self.limits.documents),
                reranker=None if model is None else self.models.by_name[model].reranker,
                candidates=question.candidates or min(CANDIDATES, self.limits.documents),
                explain=question.explain,
            )
        except DataError as error:
            if error.path is not None:  # a damaged index is no fault of whoever asks
                raise
            raise Refused(SEARCH.invalid, str(error)) from None
        seconds = time.perf_counter() - began
        fields["rank_milliseconds"] = round(1000 * seconds, 3)
        self.metrics.search_seconds.labels(name).observe(seconds)
        return SEARCH.answer(id, replace(question, index=name, model=model), found)

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
    """A route whose requests have a share of the room until their answers are taken."""

    def __init__(
        self, respond: Callable[[Request, BodyShare], Awaitable[Response]], service: Service
    ) -> None:
        self._respond, self._service = respond, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one."""
        with self._service.bodies.share() as share:
            response = await self._respond(Request(scope, receive, send), share)
            share.resize(len(response.body))
            with suppress(TimeoutError):  # uvicorn then ends the connection
                async with share.waiting(self._service.limits.seconds):
                    await response(scope, receive, send)


def _json(value: Any, status: int = 200) -> Response:
    return JsonResponse(msgspec.json.encode(value), status)


def _refused(request: Request, error: Exception) -> Response:
    """A refusal outside of `Service._respond`."""
    if isinstance(error, HTTPException):
        refused = Refused(error.status_code, f"{error.detail}: {request.method} {request.url.path}")
        return refusal_response(refused, error.headers)
    assert isinstance(error, Refused)
    return refusal_response(error)
