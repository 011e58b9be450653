"""The application: from an HTTP request to an answer."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from didyma import __version__
from didyma.errors import DataError
from didyma.execution import n_cores
from didyma.service.dialects import JINA, Dialect, dialect_of
from didyma.service.limits import Limits
from didyma.service.logs import log
from didyma.service.metrics import ServiceMetrics
from didyma.service.models import ServedModels
from didyma.service.openapi import description
from didyma.service.page import page_routes
from didyma.service.ranking import rank
from didyma.service.refusal import Refused
from didyma.service.tokens import BearerTokens
from didyma.service.work import WorkQueue

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
        threads: int | None = None,
        log_queries: bool = False,
    ) -> None:
        self.models, self.limits = models, limits or Limits()
        self.tokens, self.log_queries = tokens or BearerTokens([]), log_queries
        self.queue = WorkQueue(threads or n_cores(), self.limits.waiting)
        self.metrics = ServiceMetrics(self.queue, models)
        self._reload_all = asyncio.Event()
        self.app = Starlette(
            routes=[
                *page_routes(),
                Route("/health", self.health),
                Route("/ready", self.ready),
                Route("/info", self.info),
                Route("/metrics", self.measured),
                Route("/openapi.json", self.openapi),
                Route("/{base:path}rerank", self.rerank, methods=["POST"]),
            ],
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
            for name, model in self.models.models.items()
        }
        return _json(
            {
                "model_id": self.models.default,
                "version": __version__,
                "max_client_batch_size": self.limits.documents,
                "limits": asdict(self.limits),
                "models": models,
            }
        )

    async def measured(self, request: Request) -> Response:
        """Metrics for Prometheus."""
        self.tokens.check(request.headers.get("authorization"))
        return Response(self.metrics.text(), media_type=self.metrics.media_type)

    async def openapi(self, request: Request) -> Response:
        """The description of this server."""
        self.tokens.check(request.headers.get("authorization"))
        return _json(description(self.limits, with_tokens=bool(len(self.tokens))))

    async def rerank(self, request: Request) -> Response:
        """Rank documents, in the dialect of whoever asks."""
        began = time.perf_counter()
        id, path = secrets.token_hex(8), request.scope["path"]
        dialect = dialect_of(path)
        fields: dict[str, Any] = {}
        try:
            self.tokens.check(request.headers.get("authorization"))
            body = await self._body(request)
            dialect = dialect_of(path, body)
            answer = await self.queue.run(
                lambda: self._answer(id, dialect, body, fields), self.limits.seconds
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
        return Response(answer, status, headers, media_type="application/json")

    async def _body(self, request: Request) -> bytes:
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self.limits.read(request)
        except TimeoutError:
            raise Refused(408, f"no whole request within {self.limits.seconds:g} s") from None

    def _answer(self, id: str, dialect: Dialect, body: bytes, fields: dict[str, Any]) -> bytes:
        """The answer to a body, on a thread; ``fields`` are for the log."""
        question = dialect.read(body)
        self.limits.check(question)
        name = self.models.resolve(question.model)
        fields |= {"model": name, "documents": len(question.documents)}
        if self.log_queries:
            fields["query"] = question.query
        began = time.perf_counter()
        try:
            items = rank(self.models.models[name].reranker, question)
        except DataError as error:
            raise Refused(dialect.invalid, str(error)) from None
        seconds = time.perf_counter() - began
        fields["rank_milliseconds"] = round(1000 * seconds, 3)
        self.metrics.rank_seconds.labels(name).observe(seconds)
        self.metrics.documents.observe(len(question.documents))
        return dialect.answer(id, question, items)

    def reload(self) -> None:
        """Load all models anew, soon and one after the other."""
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
        """Load models anew when that is asked for, or their files have changed."""
        while True:
            names = self.models.changed()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._reload_all.wait(), EVERY)
                names = list(self.models.models)
                self._reload_all.clear()
            for name in names:
                await self._reload(name)

    async def _reload(self, name: str) -> None:
        try:
            await asyncio.to_thread(self.models.reload, name)
        except Exception as error:  # whatever the file holds, the old model goes on
            self.metrics.reloads.labels(name, "failed").inc()
            log(logging.ERROR, "reload failed", error=error, model=name)
        else:
            self.metrics.reloads.labels(name, "done").inc()
            log(logging.INFO, "reload", model=name)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _refused(request: Request, error: Exception) -> Response:
    """A refusal outside of `Service.rerank`, in the shape that most clients know."""
    if isinstance(error, HTTPException):
        refused = Refused(error.status_code, f"{error.detail}: {request.method} {request.url.path}")
        headers = dict(error.headers or {})
    else:
        assert isinstance(error, Refused)
        refused, headers = error, error.headers
    return Response(JINA.refuse(refused), refused.status, headers, media_type="application/json")
