"""Events in the form of MCP Events: occurrences, signed like any webhook, and the question to an endpoint."""

import hmac
import secrets

import msgspec
from msgspec import Struct, field

from postroom.events.webhooks import Webhook
from postroom.mailbox.thread_digests import preview

SUBSCRIPTION = "X-MCP-Subscription-Id"
MOST_ANSWER = 1000


class _Message(Struct):
    id: str = ""
    sender: str = field(name="from", default="")
    to: str = ""
    subject: str = ""
    body_text: str = ""
    reply_text: str = ""
    received_at: str = ""
    category: str | None = None
    verdict: str | None = None


class _Event(Struct):
    event: str
    event_id: str
    inbox_id: str
    thread_id: str
    message: _Message
    occurred_at: str
    recipient: str = ""
    reason: str = ""


class PostedMessage(Struct, rename="camel", omit_defaults=True):
    """What the receiver of an event gets to know of its message: enough to decide whether to read it."""

    message_id: str
    thread_id: str
    inbox_id: str
    sender: str = field(name="from")
    to: str
    subject: str
    preview: str
    received_at: str
    category: str | None = None
    verdict: str | None = None
    recipient: str = ""
    reason: str = ""


class PostedEvent(Struct, rename="camel"):
    event_id: str
    name: str
    timestamp: str
    data: PostedMessage
    cursor: None = None  # nothing is replayed


def write(payload: bytes) -> bytes:
    """Return the body to post, from the bytes of an event."""
    event = msgspec.json.decode(payload, type=_Event)
    message = event.message
    data = PostedMessage(
        message_id=message.id,
        thread_id=event.thread_id,
        inbox_id=event.inbox_id,
        sender=message.sender,
        to=message.to,
        subject=message.subject,
        preview=preview(message.reply_text or message.body_text),
        received_at=message.received_at,
        category=message.category,
        verdict=message.verdict,
        recipient=event.recipient,
        reason=event.reason,
    )
    return msgspec.json.encode(PostedEvent(event.event_id, event.event, event.occurred_at, data))


def headers(webhook: Webhook) -> dict[str, str]:
    return {SUBSCRIPTION: webhook.client_id or webhook.owner}


def new_challenge() -> tuple[str, str, bytes]:
    """Return the id of a verification, its challenge, and the body to post."""
    challenge = secrets.token_urlsafe(24)
    body = msgspec.json.encode({"type": "verification", "challenge": challenge})
    return f"msg_verification_{secrets.token_hex(8)}", challenge, body


def agrees(answer: str, challenge: str) -> bool:
    """Return whether the endpoint echoed the challenge: only then does it want events."""
    try:
        content = msgspec.json.decode(answer[:MOST_ANSWER], type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return False
    return hmac.compare_digest(str(content.get("challenge", "")).encode(), challenge.encode())
