"""The counters of /metrics, in the form of Prometheus."""

from __future__ import annotations

from typing import Any

import prometheus_client as prometheus
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from .models import Models


class Metrics:
    """The counters of requests, and those that workers have of themselves."""

    def __init__(self, models: Models):
        self.registry = prometheus.CollectorRegistry()
        registry: Any = {"registry": self.registry}
        self.requests = prometheus.Counter("zoo_requests", "Requests", ["path", "status"], **registry)
        self.seconds = prometheus.Histogram("zoo_request_seconds", "Time of whole answers", ["path"], **registry)
        self.running = prometheus.Gauge("zoo_requests_running", "Requests that are being answered", **registry)
        self._models, self._series = models, dict[tuple[str, int], tuple[Any, Any]]()
        self.registry.register(self)  # type: ignore[arg-type]

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        if (path, status) not in self._series:
            self._series[path, status] = self.requests.labels(path, status), self.seconds.labels(path)
        requests, took = self._series[path, status]
        requests.inc()
        took.observe(seconds)

    def collect(self) -> list[Any]:
        families: dict[str, Any] = {
            "queue": GaugeMetricFamily("zoo_queue", "Requests that wait", labels=["model"]),
            "rows": GaugeMetricFamily("zoo_rows", "Generations in the batch", labels=["model"]),
            "tokens": CounterMetricFamily("zoo_tokens", "Tokens read or written", labels=["model"]),
            "prompt_tokens": CounterMetricFamily("zoo_prompt_tokens", "Tokens of prompts", labels=["model"]),
            "reused": CounterMetricFamily("zoo_reused", "Those of them that were known already", labels=["model"]),
            "prefix_bytes": GaugeMetricFamily("zoo_prefix_bytes", "Memory of earlier prompts in use", labels=["model"]),
            "restarts": CounterMetricFamily("zoo_restarts", "Processes that were replaced", labels=["model"]),
        }
        for one in self._models.all.values():
            for name, value in (one.worker.counters() if one.worker is not None else {}).items():
                if name in families:  # a model's process may say anything
                    families[name].add_metric([one.id], value)
        return [*families.values()]
