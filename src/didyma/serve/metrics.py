"""Prometheus metrics of the server, and of what `Watch` counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.responses import Response

from didyma.serve.connections import ConnectionLimit
from didyma.serve.served import Served, ServedIndexes, ServedModels
from didyma.serve.watch import Watch
from didyma.serve.work import WorkQueue

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
DOCUMENTS = (1, 10, 20, 50, 100, 200, 500, 1000, 10_000)

# Of each model: name, attribute of its `ModelWatch`, and help.
COUNTERS = (
    ("answers", "answers", "Rankings that were answered."),
    ("empty_answers", "empty", "Of these, without a document."),
    ("query_words", "words", "Words of queries looked at."),
    ("unseen_words", "unseen", "Of these, not seen in training."),
    ("teacher_documents", "teacher_documents", "Documents that they scored."),
    ("shadow_answers", "shadow.requests", "Rankings by a shadow model."),
    ("shadow_displaced_tops", "shadow.displaced", "Of these, first another."),
)
# The same, with a label between name and attribute.
LABELLED_COUNTERS = (
    (
        *("documents_above_threshold", "precision", "documents_above"),
        "Documents whose probability reaches the threshold of a precision.",
    ),
    (
        *("answers_above_threshold", "precision", "answers_above"),
        "Rankings that have such a document.",
    ),
    ("imputed_signals", "signal", "imputed", "Documents without a signal."),
    ("teacher_calls", "outcome", "teacher", "Rankings by what teachers did."),
)
HISTOGRAMS = (
    ("probability", "chances", "Probabilities of documents."),
    (
        *("shadow_overlap", "shadow.overlap"),
        "Share of the first ten that a shadow model has there, too.",
    ),
    ("shadow_correlation", "shadow.correlation", "Correlation of a shadow model's ranks."),
)
DRIFT = (
    "Distance of the day's queries from training: what of the order is untried, how far it departs "
    "from the old one, and the distances of features and of what probabilities rest on."
)


class ServiceMetrics:
    """Counts and durations of requests, and the state of queue, connections and models."""

    def __init__(
        self,
        queue: WorkQueue,
        connections: ConnectionLimit,
        models: ServedModels,
        indexes: ServedIndexes,
        watch: Watch,
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
        gauge("didyma_connections", "Open connections.").set_function(lambda: len(connections))
        kinds: list[tuple[str, Served[Any]]] = [("model", models), ("index", indexes)]
        for kind, served in kinds:
            loaded = gauge(f"didyma_{kind}_loaded_timestamp", "When, in Unix time.", [kind])
            for name in served.by_name:
                loaded.labels(name).set_function(partial(_loaded, served, name))
        self._registry.register(ModelVersions(models))
        self._registry.register(WatchMetrics(watch))

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
            version = model.model_version
            created, parent = (version.created, version.parent) if version else (None, None)
            family.add_metric([name, model.version, created or "", parent or ""], 1.0)
        yield family


class WatchMetrics(Collector):
    """What `Watch` has counted, by model."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[Metric]:
        """Counters, histograms, and the drift of each model."""
        models = self._watch.by_name
        for watch in models.values():
            watch.sum_up()
        for name, attribute, help in COUNTERS:
            values = [([model], attrgetter(attribute)(watch)) for model, watch in models.items()]
            yield _counter(name, help, ["model"], values)
        for name, label, attribute, help in LABELLED_COUNTERS:
            counts = [
                ([model, value], count)
                for model, watch in models.items()
                for value, count in list(attrgetter(attribute)(watch).items())
            ]
            yield _counter(name, help, ["model", label], counts)
        works = [([*work], count) for work, count in list(self._watch.works.items())]
        yield _counter("afterwards", "Work after answers, by outcome.", ["work", "outcome"], works)
        samples = [
            ([outcome], count) for outcome, count in list((self._watch.samples or {}).items())
        ]
        yield _counter("samples", "Sampled requests.", ["outcome"], samples)
        for name, attribute, help in HISTOGRAMS:
            histogram = HistogramMetricFamily(f"didyma_{name}", help, labels=["model"])
            for model, watch in models.items():
                buckets = attrgetter(attribute)(watch)
                histogram.add_metric([model], buckets.cumulative, buckets.sum)
            yield histogram
        yield from self._drifts()

    def _drifts(self) -> Iterator[Metric]:
        """Of the last day that has queries."""
        gauge = GaugeMetricFamily
        parts = gauge("didyma_drift", DRIFT, labels=["model", "of"])
        warns = gauge("didyma_drift_warning", "Whether it warns.", labels=["model"])
        queries = gauge("didyma_drift_queries", "Queries of it.", labels=["model"])
        features = gauge(
            "didyma_feature_drift", "Distance of each feature.", labels=["model", "feature"]
        )
        for model, watch in self._watch.by_name.items():
            if not watch.days:
                continue
            drift = watch.days[-1].drift
            parts.add_metric([model, "untried"], drift.untried)
            parts.add_metric([model, "departure"], drift.departure)
            parts.add_metric([model, "features"], drift.distance)
            parts.add_metric([model, "probabilities"], drift.inputs_distance)
            warns.add_metric([model], drift.warns)
            queries.add_metric([model], drift.n_queries)
            for feature in drift.features:
                features.add_metric([model, feature.name], feature.distance)
        yield from (parts, warns, queries, features)


def _counter(
    name: str, help: str, labels: list[str], values: Iterable[tuple[list[str], int]]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"didyma_{name}", help, labels=labels)
    for value_labels, value in values:
        family.add_metric(value_labels, value)
    return family


def _loaded(served: Served[Any], name: str) -> float:
    return float(served.by_name[name].loaded)
