"""The first span of the trace of a received email, from which its events go on."""

from collections.abc import Iterable

from postroom import traces
from postroom.inward.mails import AcceptedMail
from postroom.resources import Resources
from postroom.tracing import CONSUMER


def record_received(resources: Resources, accepted: Iterable[AcceptedMail]) -> None:
    """Record each stored email as the first span of its trace."""
    tracing = resources.tracing
    for mail in () if tracing is None else accepted:
        assert tracing is not None
        tracing.record(
            "receive mail",
            CONSUMER,
            mail.trace_id,
            mail.now,
            resources.now(),
            {"messaging.operation.name": "receive", "messaging.operation.type": "receive"},
            span_id=traces.span_of_message(mail.trace_id, "", is_inbound=True),
        )
