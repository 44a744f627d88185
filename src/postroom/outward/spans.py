"""The spans of a sent message: accepted, held, queued, and each attempt until a server has taken it."""

import secrets

import msgspec
from msgspec import structs

from postroom import traces
from postroom.mailbox import documents
from postroom.outward.delivering.mail_job import MailJob
from postroom.outward.send_stages import Order, SendReceipt
from postroom.queue.outcomes import Outcome
from postroom.tracing import CLIENT, INTERNAL, PRODUCER, Attributes, Tracing


def in_trace(tracing: Tracing | None, order: Order) -> Order:
    """Begin a trace for an order that came without one, if spans are recorded."""
    if traces.read(order.traceparent) is not None:
        return order
    begun = "" if tracing is None else traces.write(traces.new_trace(), secrets.token_hex(8))
    return structs.replace(order, traceparent=begun)


def record_accepted(tracing: Tracing, order: Order, content: bytes, started_at: int, now: int) -> None:
    receipt = msgspec.json.decode(content, type=SendReceipt)
    trace_id, parent_id = traces.read(order.traceparent) or ("", "")
    tracing.record(
        "create mail",
        PRODUCER,
        trace_id,
        started_at,
        now,
        {**named("create", receipt.id), "postroom.inbox.id": receipt.inbox_id},
        span_id=traces.span_of_message(trace_id, receipt.id, is_inbound=False),
        parent_id=parent_id,
    )


def record_attempt(tracing: Tracing, job: MailJob, outcome: Outcome, started_at: int) -> None:
    """Record an attempt. The first one also records how long the message was held, and queued."""
    delivery, trace_id = job.delivery, documents.trace_of(job.message.document)
    if not trace_id:
        return
    parent_id = traces.span_of_message(trace_id, job.message.id, is_inbound=False)
    queued_at = max(delivery.created_at, record_hold(tracing, job, trace_id, parent_id))
    if delivery.attempts == 1:
        attributes = named("queue", job.message.id)
        tracing.record(
            f"queue {job.domain}", INTERNAL, trace_id, queued_at, started_at, attributes, parent_id=parent_id
        )
    attributes = {
        **named("send", job.message.id),
        "messaging.destination.name": job.domain,
        "server.address": job.domain,
        "postroom.attempt": delivery.attempts,
    }
    if outcome.code is not None:
        attributes["smtp.response.status_code"] = outcome.code
    error = "" if outcome.is_success else "permanent" if outcome.is_permanent else "temporary"
    tracing.record(
        f"send {job.domain}",
        CLIENT,
        trace_id,
        started_at,
        outcome.ended_at,
        attributes,
        parent_id=parent_id,
        error=error,
    )


def record_post(
    tracing: Tracing, kind: str, parent: tuple[str, str], span_id: str, started_at: int, outcome: Outcome
) -> None:
    """Record an attempt at a webhook, whose request named this span."""
    trace_id, parent_id = parent
    attributes: Attributes = {"messaging.operation.name": "webhook", "messaging.operation.type": "send"}
    attributes |= {"http.request.method": "POST", "postroom.event": kind}
    if outcome.code is not None:
        attributes["http.response.status_code"] = outcome.code
    error = "" if outcome.is_success else str(outcome.code or "connection")
    tracing.record(
        "POST webhook",
        CLIENT,
        trace_id,
        started_at,
        outcome.ended_at,
        attributes,
        span_id=span_id,
        parent_id=parent_id,
        error=error,
    )


def record_hold(tracing: Tracing, job: MailJob, trace_id: str, parent_id: str) -> int:
    """Return when the hold ended; 0 without one. The first attempt at the first recipient records it."""
    hold = job.outgoing.hold
    if hold is None:
        return 0
    ended_at = hold.decided_at or hold.let_go_at or hold.send_at or hold.created_at
    if job.delivery.attempts == 1 and job.delivery.position == 0:
        attributes = {**named("hold", job.message.id), "postroom.hold.state": hold.state}
        if hold.reasons:
            attributes["postroom.hold.reasons"] = " ".join(hold.reasons)
        tracing.record("hold", INTERNAL, trace_id, hold.created_at, ended_at, attributes, parent_id=parent_id)
    return ended_at


def named(operation: str, message_id: str) -> Attributes:
    kind = operation if operation in ("create", "send") else "process"
    return {
        "messaging.operation.name": operation,
        "messaging.operation.type": kind,
        "messaging.message.id": message_id,
    }
