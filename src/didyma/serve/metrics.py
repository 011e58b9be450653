"""Prometheus metrics."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response

from didyma.serve.connections import ConnectionLimit
from didyma.serve.served import ServedIndexes, ServedModels
from didyma.serve.work import WorkQueue

__all__ = ["ServiceMetrics"]

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
DOCUMENTS = (1, 10, 20, 50, 100, 200, 500, 1000, 10_000)


class ServiceMetrics:
    """Counts and durations of requests, and the state of queue, connections and models."""

    def __init__(
        self,
        queue: WorkQueue,
        room: ConnectionLimit,
        models: ServedModels,
        indexes: ServedIndexes,
    ) -> None:
        own = self._registry = CollectorRegistry()
        self.requests = Counter(
            "didyma_requests", "Requests to rank or to search.", ["dialect", "status"], registry=own
        )
        self.seconds = Histogram(
            "didyma_request_seconds",
            "From the head of a request to its answer.",
            ["dialect"],
            buckets=SECONDS,
            registry=own,
        )
        self.rank_seconds = Histogram(
            "didyma_rank_seconds", "Of that, ranking.", ["model"], buckets=SECONDS, registry=own
        )
        self.search_seconds = Histogram(
            "didyma_search_seconds",
            "Of a search, all but HTTP and JSON.",
            ["index"],
            buckets=SECONDS,
            registry=own,
        )
        self.documents = Histogram(
            "didyma_request_documents", "Documents.", buckets=DOCUMENTS, registry=own
        )
        self.reloads = Counter(
            "didyma_reloads", "Models that were loaded anew.", ["model", "outcome"], registry=own
        )
        self.index_reloads = Counter(
            "didyma_index_reloads",
            "Indexes that were opened anew.",
            ["index", "outcome"],
            registry=own,
        )
        pending = Gauge("didyma_pending", "Requests at work or waiting.", registry=own)
        pending.set_function(lambda: queue.pending)
        connections = Gauge("didyma_connections", "Open connections.", registry=own)
        connections.set_function(lambda: len(room))
        loaded = Gauge(
            "didyma_model_loaded_timestamp", "When, in Unix time.", ["model"], registry=own
        )
        for name in models.by_name:
            loaded.labels(name).set_function(partial(_loaded, models, name))
        opened = Gauge(
            "didyma_index_loaded_timestamp", "When, in Unix time.", ["index"], registry=own
        )
        for name in indexes.by_name:
            opened.labels(name).set_function(partial(_loaded, indexes, name))

    def response(self) -> Response:
        """All of them, in Prometheus' text format."""
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


def _loaded(served: ServedModels | ServedIndexes, name: str) -> float:
    return served.by_name[name].loaded
