"""Events of /v0, for its stream and its webhooks."""

from typing import Any

import msgspec
from msgspec import Struct

from postroom.clock import to_iso
from postroom.errors import BadRequest, NotFound
from postroom.events import kinds
from postroom.events.event_log import Event
from postroom.mailbox import inboxes, messages, threads
from postroom.resources import Tx
from postroom.web.agentmail import shapes, showing
from postroom.web.streams.hub import TranslatedEvent

UNAUTHENTICATED = "message.received.unauthenticated"  # only of email that failed DMARC
# Kinds of /v0 by ours; the second one is sent with its own id.
KINDS_OF_V0 = {
    kinds.MESSAGE_RECEIVED: ("message.received", UNAUTHENTICATED),
    kinds.MESSAGE_BLOCKED: ("message.received.blocked",),
    kinds.MESSAGE_JUNK: ("message.received.spam",),
    kinds.MESSAGE_SENT: ("message.sent", "message.delivered"),
    kinds.MESSAGE_BOUNCED: ("message.bounced",),
    kinds.MESSAGE_FAILED: ("message.bounced",),
    kinds.MESSAGE_COMPLAINED: ("message.complained",),
    kinds.MESSAGE_REJECTED: ("message.rejected",),
    kinds.MESSAGE_EXPIRED: ("message.rejected",),
    kinds.MESSAGE_CANCELLED: ("message.rejected",),
}
KINDS = tuple(dict.fromkeys(kind for names in KINDS_OF_V0.values() for kind in names))
# Kinds that exist there and never happen here; waiting for one is no error.
NEVER = (
    "message.opened",
    "domain.verified",
    "message.delayed",
)
NOT_BY_DEFAULT = frozenset(("message.received.blocked", "message.received.spam", UNAUTHENTICATED))
FIELDS = {
    "message.sent": "send",
    "message.delivered": "delivery",
    "message.bounced": "bounce",
    "message.complained": "complaint",
    "message.rejected": "reject",
}


class HappenedTo(Struct, frozen=True):
    """Fields of an event's payload besides its message."""

    recipient: str | None = None
    reason: str | None = None


def require_known(asked: list[str], field: str) -> None:
    for kind in asked:
        if kind not in KINDS and kind not in NEVER:
            raise BadRequest(f"'{kind[:50]}' is not an event type: {', '.join(KINDS)}.", field=field)


def ours(asked: list[str]) -> list[str]:
    """Return our kinds of event that correspond to these."""
    return [kind for kind, names in KINDS_OF_V0.items() if set(names) & set(asked)]


def render(tx: Tx, event: Event) -> list[TranslatedEvent]:
    """Return one event for each of its kinds in /v0; none if its message is deleted."""
    message = messages.find(tx, event.message_id)
    if message is None:
        return []
    (shown,) = showing.show_messages(tx, [message], is_whole=True)
    translated = []
    for number, kind in enumerate(KINDS_OF_V0.get(event.kind, ())):
        if kind == UNAUTHENTICATED and showing.UNAUTHENTICATED not in shown.labels:
            continue
        event_id = event.id if number == 0 else f"{event.id}-{number}"
        head = {"type": "event", "event_type": kind, "event_id": event_id}
        body = msgspec.json.encode(head | about(tx, event, kind, message, shown))
        translated.append(TranslatedEvent(event_id, kind, shown.labels, body))
    return translated


def render_for_webhook(
    tx: Tx, event: Event, vocabulary: tuple[str, ...], base_url: str, now: int
) -> list[tuple[str, bytes]]:
    return [(each.event_id, each.body) for each in render(tx, event) if each.kind in vocabulary]


def about(
    tx: Tx, event: Event, kind: str, message: messages.Message, shown: shapes.Message
) -> dict[str, Any]:
    if kind not in FIELDS:
        return {"message": shown, "thread": thread_of(tx, message)}
    happened = msgspec.json.decode(event.payload, type=HappenedTo)
    to = [happened.recipient] if happened.recipient else shown.to
    failure: dict[str, Any] = {
        "inbox_id": shown.inbox_id,
        "thread_id": message.thread_id,
        "message_id": shown.message_id,
        "timestamp": to_iso(event.created_at),
        "recipients": to,
    }
    if kind == "message.bounced":
        failure["recipients"] = [
            {"address": address, "status": happened.reason or "failed"} for address in to
        ]
    if kind in ("message.bounced", "message.complained"):
        failure |= {"type": "Permanent" if kind == "message.bounced" else "abuse", "sub_type": "General"}
    if kind == "message.rejected":
        failure["reason"] = happened.reason or event.kind.removeprefix("message.")
    return {FIELDS[kind]: failure}


def thread_of(tx: Tx, message: messages.Message) -> shapes.Thread | None:
    """Return the thread. None for an email that was not let in, which is in no thread."""
    inbox = inboxes.find(tx, message.inbox_id)
    try:
        thread = None if inbox is None else threads.get(tx, inbox.scope, message.thread_id)
    except NotFound:
        return None
    return None if thread is None else showing.show_threads(tx, [thread])[0]
