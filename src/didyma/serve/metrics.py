"""Prometheus metrics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.responses import Response

from didyma.serve.connections import ConnectionLimit
from didyma.serve.served import Served, ServedIndexes, ServedModels
from didyma.serve.work import WorkQueue

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
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry, buckets=SECONDS)
        gauge = partial(Gauge, registry=self._registry)
        self.requests = counter(
            "didyma_requests", "Requests to rank or to search.", ["dialect", "status"]
        )
        self.seconds = histogram(
            "didyma_request_seconds", "From the head of a request to its answer.", ["dialect"]
        )
        self.rank_seconds = histogram("didyma_rank_seconds", "Of that, ranking.", ["model"])
        self.search_seconds = histogram(
            "didyma_search_seconds", "Of a search, all but HTTP and JSON.", ["index"]
        )
        self.documents = histogram("didyma_request_documents", "Documents.", buckets=DOCUMENTS)
        self.reloads = counter(
            "didyma_reloads", "Models that were loaded anew.", ["model", "outcome"]
        )
        self.shadow_reloads = counter(
            "didyma_shadow_reloads", "Shadow models that were loaded anew.", ["shadow", "outcome"]
        )
        self.index_reloads = counter(
            "didyma_index_reloads", "Indexes that were opened anew.", ["index", "outcome"]
        )
        pending = gauge("didyma_pending", "Requests at work or waiting.")
        pending.set_function(lambda: queue.pending)
        gauge("didyma_connections", "Open connections.").set_function(lambda: len(room))
        kinds: list[tuple[str, Served[Any]]] = [("model", models), ("index", indexes)]
        for kind, served in kinds:
            loaded = gauge(f"didyma_{kind}_loaded_timestamp", "When, in Unix time.", [kind])
            for name in served.by_name:
                loaded.labels(name).set_function(partial(_loaded, served, name))

        self._registry.register(ModelVersions(models))

    def register(self, collector: Collector) -> None:
        """Tell what else is counted."""
        self._registry.register(collector)

    def response(self) -> Response:
        """All of them, in Prometheus' text format."""
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


class ModelVersions(Collector):
    """The version of each model that is served now, as labels of a gauge that is 1."""

    def __init__(self, models: ServedModels) -> None:
        self._models = models

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One sample for each model."""
        labels = ["model", "version", "created", "parent"]
        family = GaugeMetricFamily("didyma_model_info", "The version served.", labels=labels)
        for name, model in self._models.by_name.items():
            told = model.told
            created, parent = (None, None) if told is None else (told.created, told.parent)
            family.add_metric([name, model.version, created or "", parent or ""], 1.0)
        yield family


def _loaded(served: Served[Any], name: str) -> float:
    return float(served.by_name[name].loaded)
