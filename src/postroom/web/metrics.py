"""Counters for Prometheus. No label names an account, an inbox or an address."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate

from prometheus_client import CollectorRegistry, Gauge, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.utils import floatToGoString

from postroom.clock import SECOND
from postroom.processes import interpreter, process_metrics
from postroom.processes.loop_supervisor import LoopSupervisor
from postroom.processes.pools import Pool
from postroom.resources import ServiceFaults, WorkerCounts

# Gauges, read on request.
GAUGES = {
    "postroom_disk_free_bytes": "Free space for the data folder.",
    "postroom_queue_oldest_seconds": "How long the first email or webhook has been due.",
    "postroom_worker_restarts": "Workers that ended or hung and were replaced, since the start.",
    "postroom_streams": "Event streams that are open.",
    "postroom_smtp_sessions": "SMTP clients that are connected.",
    "postroom_imap_sessions": "Mail clients that are connected to read.",
    "postroom_submission_sessions": "Mail clients that are connected to send.",
    "postroom_journal_bytes": "Bytes of the journal: some email in it waits, some is already stored.",
    "postroom_journal_set_aside": "Emails set aside, as they could not be stored: more than none needs you.",
    "postroom_journal_damaged": (
        "Damaged pieces in journal/damaged and outcomes.damaged. Check the disk, then remove them."
    ),
    "postroom_certificate_expiry_timestamp_seconds": "When the certificate expires, in Unix time.",
}
# And those with a label.
LABELLED = {
    "postroom_loops_down": ("Background loops that fail now; they start again after growing pauses.", "loop"),
    "postroom_loop_failures": (
        "Failures of background loops since the start; the log has each traceback.",
        "loop",
    ),
    "postroom_workers": ("Processes that receive email: expected and running.", "state"),
    "postroom_queue_depth": (
        "What waits: mail, webhook, notice or examination; counted up to 10,000.",
        "kind",
    ),
    "postroom_queue_age_seconds": (
        "How long the first of each kind has been due: seconds are normal, minutes are not.",
        "kind",
    ),
    "postroom_service_down": ("1 for clamd, a spam filter or a DNS list that does not answer.", "service"),
    "postroom_pool_jobs": ("Work for a pool of threads, also what waits.", "pool"),
    "postroom_pool_threads": ("Threads that a pool may have.", "pool"),
    "postroom_python": (
        "1 for how Python was built: optimized, packaged by a distribution (also optimized), or plain, which "
        "takes 15 to 50 % longer.",
        "build",
    ),
}
REQUESTS = ("postroom_http_requests", "Requests that were answered.")
REQUEST_TIMES = ("postroom_http_request_seconds", "Time to answer a request.")


class OwnCollector:
    """Shows what the process counts in `process_metrics`."""

    def collect(self) -> Iterator[Metric]:
        for counter in process_metrics.COUNTERS:
            counted = CounterMetricFamily(counter.name, counter.help, labels=(counter.label,))
            for value, count in sorted(counter.counts().items()):
                counted.add_metric((value,), count)
            yield counted
        for histogram in process_metrics.HISTOGRAMS:
            observed = HistogramMetricFamily(histogram.name, histogram.help)
            _add_histogram(observed, (), histogram)
            yield observed


class RequestCollector:
    """Shows the counts of requests."""

    def __init__(self, counts: process_metrics.RequestCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        answered = CounterMetricFamily(*REQUESTS, labels=("route", "status"))
        for (route, status), count in self._counts.answered.items():
            answered.add_metric((route, str(status)), count)
        yield answered
        took = HistogramMetricFamily(*REQUEST_TIMES, labels=("route",))
        for route, histogram in self._counts.seconds.items():
            _add_histogram(took, (route,), histogram)
        yield took


def _add_histogram(
    family: HistogramMetricFamily, labels: Sequence[str], histogram: process_metrics.Histogram
) -> None:
    counts, total = histogram.read()
    bounds = [*map(floatToGoString, histogram.bounds), "+Inf"]
    family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)


class Metrics:
    def __init__(self, requests: process_metrics.RequestCounts) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._registry.register(RequestCollector(requests))
        gauge = partial(Gauge, registry=self._registry)
        self._gauges = {name: gauge(name, help) for name, help in GAUGES.items()}
        self._gauges |= {name: gauge(name, help, (label,)) for name, (help, label) in LABELLED.items()}
        self._registry.register(OwnCollector())
        self._set("postroom_python", 1, interpreter.build())

    def _set(self, name: str, value: float, label: str) -> None:
        self._gauges[name].labels(label).set(value)

    def record_state(self, disk_free_bytes: int, queue_oldest_seconds: float) -> None:
        self._gauges["postroom_disk_free_bytes"].set(disk_free_bytes)
        self._gauges["postroom_queue_oldest_seconds"].set(queue_oldest_seconds)

    def record_loops(self, loops: LoopSupervisor) -> None:
        self._gauges["postroom_loops_down"].clear()
        for name, count in loops.failing().items():
            self._set("postroom_loops_down", count, name)
        for name, count in loops.failures.items():
            self._set("postroom_loop_failures", count, name)

    def record_services(self, faults: ServiceFaults) -> None:
        self._gauges["postroom_service_down"].clear()
        for name in faults.found:
            self._set("postroom_service_down", 1, name)

    def record_depths(self, depths: dict[str, tuple[int, int]], now: int) -> None:
        for kind, (waiting, due_at) in depths.items():
            self._set("postroom_queue_depth", waiting, kind)
            self._set("postroom_queue_age_seconds", (now - due_at) / SECOND, kind)

    def record_gauges(self, gauges: Mapping[str, Callable[[], float]]) -> None:
        """Record the gauges. One that cannot be read keeps its value."""
        for name, read in gauges.items():
            with contextlib.suppress(OSError, ValueError):
                self._gauges[name].set(read())

    def record_pools(self, used: Iterable[Pool]) -> None:
        for pool in used:
            self._set("postroom_pool_jobs", pool.jobs, pool.name)
            self._set("postroom_pool_threads", pool.threads, pool.name)

    def record_workers(self, workers: WorkerCounts) -> None:
        self._set("postroom_workers", workers.expected, "expected")
        self._set("postroom_workers", workers.running, "running")
        self._gauges["postroom_worker_restarts"].set(workers.restarts)

    def render(self) -> bytes:
        return generate_latest(self._registry)
