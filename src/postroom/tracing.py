"""Send spans to an OpenTelemetry collector. Its packages (the extra `otel`) are loaded only if it is set up.

A span is recorded when it is over: its times are known then, and nothing is carried through the code before.
"""

import logging
from typing import TYPE_CHECKING, Any

from postroom import __version__, log, traces
from postroom.config import Config, ConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

SERVER, CLIENT, PRODUCER, CONSUMER, INTERNAL = "SERVER", "CLIENT", "PRODUCER", "CONSUMER", "INTERNAL"
Attributes = dict[str, str | int | bool]
NANOSECONDS = 1_000_000  # of a millisecond
EXPORT_SECONDS = 3
STOP_MILLISECONDS = 5_000
REASON_CHARACTERS = 200
TRACES_PATH = "/v1/traces"
SYSTEM: Attributes = {"messaging.system": "postroom"}


class Tracing:
    """Gives finished spans to the exporter, which sends them in batches from a separate thread."""

    def __init__(self, provider: "TracerProvider", processor: Any) -> None:
        self._provider, self._processor = provider, processor

    def record(
        self,
        name: str,
        kind: str,
        trace_id: str,
        started_at: int,
        ended_at: int,
        attributes: Attributes,
        *,
        span_id: str = "",
        parent_id: str = "",
        error: str = "",
    ) -> str:
        """Return the id of the span. `error` is a short kind, never a text of others."""
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanKind, Status, StatusCode

        span_id = span_id or traces.new_span()
        more = {"error.type": error} if error else {}
        span = ReadableSpan(
            name,
            context=to_context(trace_id, span_id),
            parent=to_context(trace_id, parent_id) if parent_id else None,
            resource=self._provider.resource,
            attributes={**SYSTEM, **attributes, **more},
            kind=SpanKind[kind],
            status=Status(StatusCode.ERROR if error else StatusCode.UNSET),
            start_time=started_at * NANOSECONDS,
            end_time=max(started_at, ended_at) * NANOSECONDS,
        )
        self._processor.on_end(span)
        return span_id

    def close(self) -> None:
        """Send what is left, and no longer than some seconds."""
        self._processor.force_flush(STOP_MILLISECONDS)
        self._provider.shutdown()


class _InOurLog(logging.Handler):
    """A collector that is away costs a line now and then, and the spans."""

    def emit(self, record: logging.LogRecord) -> None:
        reason = record.getMessage()[:REASON_CHARACTERS]
        log.get().seldom("spans could not be sent", reason=reason)


def to_context(trace_id: str, span_id: str) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    sampled = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=sampled)


def start(config: Config) -> Tracing:
    """Return the tracing to the collector; raise ConfigError without its packages.

    Called in a thread, since loading takes a while. Spans of the MCP library go the same way.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

    except ImportError:
        raise ConfigError(
            "POSTROOM_OTEL",
            "two packages are missing. Run `make setup` in a checkout, elsewhere"
            " `pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http`.",
        ) from None
    resource = Resource.create({"service.name": "postroom", "service.version": __version__})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    endpoint = f"{config.otel_url.rstrip('/')}{TRACES_PATH}"
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)
    processor = BatchSpanProcessor(exporter)
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)  # the first one of a process stays
    logger = logging.getLogger("opentelemetry")
    logger.handlers, logger.propagate = [_InOurLog(logging.ERROR)], False
    return Tracing(provider, processor)
