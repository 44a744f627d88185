"""Counters for Prometheus. No label names an account, an inbox or an address."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import generate_latest

from postroom.resources import Workforce
from postroom.supervision import Supervision


class Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._requests = Counter(
            "postroom_http_requests_total", "Requests answered.", ("route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "postroom_http_request_seconds", "Time to answer a request.", ("route",), registry=self._registry
        )

        self._meters: dict[tuple[str, int], tuple[Counter, Histogram]] = {}  # looking one up takes a while
        self._disk_free = Gauge(
            "postroom_disk_free_bytes", "Free space for the data folder.", registry=self._registry
        )
        self._queue_oldest = Gauge(
            "postroom_queue_oldest_seconds",
            "How long the oldest delivery waits.",
            registry=self._registry,
        )
        self._loops_down = Gauge(
            "postroom_loops_down",
            "Loops of this process that do not work now.",
            ("loop",),
            registry=self._registry,
        )
        self._loop_failures = Gauge(
            "postroom_loop_failures",
            "How often loops of this process have failed since its start.",
            ("loop",),
            registry=self._registry,
        )

        self._workers = Gauge(
            "postroom_workers", "Processes that take mail in.", ("state",), registry=self._registry
        )
        self._worker_restarts = Gauge(
            "postroom_worker_restarts", "Workers replaced since the start.", registry=self._registry
        )

    def count_request(self, route: str, status: int, seconds: float) -> None:
        meters = self._meters.get((route, status))
        if meters is None:
            meters = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._meters[route, status] = meters
        counter, histogram = meters
        counter.inc()
        histogram.observe(seconds)

    def note_state(self, disk_free_bytes: int, queue_oldest_seconds: float) -> None:
        self._disk_free.set(disk_free_bytes)
        self._queue_oldest.set(queue_oldest_seconds)

    def note_loops(self, loops: Supervision) -> None:
        self._loops_down.clear()
        for name, count in loops.troubles().items():
            self._loops_down.labels(name).set(count)
        for name, count in loops.failures.items():
            self._loop_failures.labels(name).set(count)

    def note_workers(self, workforce: Workforce) -> None:
        self._workers.labels("expected").set(workforce.expected)
        self._workers.labels("running").set(workforce.running)
        self._worker_restarts.set(workforce.restarts)

    def render(self) -> bytes:
        return generate_latest(self._registry)
