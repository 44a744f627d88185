"""Operations on webhooks: the account's own, and the log of what was posted."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postroom import limits
from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.clock import to_iso
from postroom.errors import NotFound, NoWebhookUrl
from postroom.events import event_log, kinds, webhook_log, webhooks
from postroom.fields import Limit, Offset, Timestamp, show_item
from postroom.mailbox.inboxes import Inbox
from postroom.queue import deliveries
from postroom.storage.database import Tx

EventType = Annotated[str, Meta(extra_json_schema={"enum": list(kinds.KINDS)})]


class NewWebhook(Struct, rename="camel", frozen=True):
    url: Annotated[
        str, Meta(description="Where to post events.", examples=["https://example.com/hooks/mail"])
    ]
    event_types: (
        Annotated[
            list[EventType],
            Meta(
                max_length=limits.WEBHOOK_KINDS,
                description="Kinds of events to post; message.received by default.",
            ),
        ]
        | None
    ) = None
    secret: (
        Annotated[
            str,
            Meta(
                min_length=16,
                max_length=200,
                pattern="^[\\x21-\\x7e]+$",
                description="The secret that signs; a new one by default.",
            ),
        ]
        | None
    ) = None


class DeliveryQuery(Struct, rename="camel", frozen=True):
    state: (
        Annotated[Literal["pending", "delivered", "failed"], Meta(description="Only these; all by default.")]
        | None
    ) = None
    limit: Limit = limits.PAGE
    offset: Offset = 0


class RetryFailed(Struct, frozen=True):
    since: Annotated[datetime, Meta(tz=True, description="Deliveries since this time.")]


class Webhook(Struct, rename="camel", frozen=True):
    """`secret` is shown only when it was just created."""

    url: str
    event_types: list[str]
    enabled: bool
    created_at: Timestamp
    disabled_reason: str | None
    secret: str | UnsetType = UNSET

    @classmethod
    def of(cls, webhook: webhooks.Webhook, secret: str | UnsetType = UNSET) -> "Webhook":
        return show_item(cls, webhook, secret=secret)


class WebhookSecret(Struct, frozen=True):
    secret: str


class InboxWebhookSecret(Struct, rename="camel", frozen=True):
    webhook_secret: str


class WebhookTest(Struct, frozen=True):
    ok: bool
    status: int
    milliseconds: int


class ShownAttempt(Struct, rename="camel", frozen=True):
    at: Timestamp
    status: int | None
    milliseconds: int | None
    answer: str | None

    @classmethod
    def of(cls, attempt: webhook_log.Attempt) -> "ShownAttempt":
        return cls(to_iso(attempt.started_at), attempt.code, attempt.milliseconds, attempt.answer)


class WebhookDelivery(Struct, rename="camel", frozen=True):
    id: str
    event_id: str
    inbox_id: str
    url: str
    state: str
    created_at: Timestamp
    next_attempt_at: Timestamp | None
    attempts: list[ShownAttempt]

    @classmethod
    def of(cls, item: deliveries.Delivery, attempts: list[webhook_log.Attempt]) -> "WebhookDelivery":
        return show_item(
            cls,
            item,
            event_id=item.event_id or "",
            url=item.target,
            next_attempt_at=to_iso(item.due_at) if item.state == deliveries.PENDING else None,
            attempts=[ShownAttempt.of(attempt) for attempt in attempts],
        )


class WebhookDeliveryPage(Struct, rename="camel", frozen=True):
    data: list[WebhookDelivery]
    total: int


class Retried(Struct, frozen=True):
    retried: int


def get_webhook(tx: Tx, caller: Caller) -> Webhook:
    """Get the account's webhook"""
    return Webhook.of(webhooks.get(tx, caller.account_id))


def put_webhook(tx: Tx, caller: Caller, body: NewWebhook, now: int) -> Webhook:
    """Set the account's webhook; a disabled one is enabled again"""
    owner = caller.account_id
    types = None if body.event_types is None else tuple(body.event_types)
    before = webhooks.find(tx, owner)
    webhook, is_new = webhooks.put(tx, owner, owner, body.url, types, body.secret, now)
    was = None if before is None else Webhook.of(before)
    audit.record_by(tx, caller, "webhook.set", owner, now, before=was, after=Webhook.of(webhook))
    return Webhook.of(webhook, webhook.secret if is_new else UNSET)


def delete_webhook(tx: Tx, caller: Caller, now: int) -> None:
    """Remove the account's webhook"""
    before = Webhook.of(webhooks.get(tx, caller.account_id))
    webhooks.remove(tx, caller.account_id)
    audit.record_by(tx, caller, "webhook.removed", caller.account_id, now, before=before)


def rotate_webhook_secret(tx: Tx, caller: Caller, now: int) -> WebhookSecret:
    """Create a new secret; the old one stays valid for 24 hours"""
    audit.record_by(tx, caller, "webhook.secret_rotated", caller.account_id, now)
    return WebhookSecret(webhooks.rotate_secret(tx, caller.account_id, now).secret)


def rotate_inbox_secret(tx: Tx, caller: Caller, inbox: Inbox, now: int) -> InboxWebhookSecret:
    """Create a new secret for an inbox's own webhook; the old one stays valid for 24 hours"""
    require_set(webhooks.find(tx, inbox.id))
    audit.record_by(tx, caller, "webhook.secret_rotated", inbox.id, now, within=inbox.scope)
    return InboxWebhookSecret(webhooks.rotate_secret(tx, inbox.id, now).secret)


def require_set(webhook: webhooks.Webhook | None) -> webhooks.Webhook:
    if webhook is None:
        raise NoWebhookUrl(
            "No webhook is set. PUT /v1/webhook sets the account's, PATCH /v1/inboxes/{id} an inbox's."
        )
    return webhook


def list_webhook_deliveries(tx: Tx, caller: Caller, query: DeliveryQuery) -> WebhookDeliveryPage:
    """List webhook deliveries with every attempt, newest first"""
    found, total = webhook_log.list_of_account(tx, caller.account_id, query.state, query.limit, query.offset)
    shown = [WebhookDelivery.of(item, webhook_log.list_attempts(tx, item.id)) for item in found]
    return WebhookDeliveryPage(shown, total)


def show_delivery(tx: Tx, caller: Caller, delivery_id: str) -> WebhookDelivery:
    item = webhook_log.get(tx, caller.account_id, delivery_id)
    return WebhookDelivery.of(item, webhook_log.list_attempts(tx, item.id))


def retry_webhook_delivery(tx: Tx, caller: Caller, delivery_id: str, now: int) -> WebhookDelivery:
    """Send a delivery again, whatever its state"""
    webhook_log.send_again(tx, caller.account_id, delivery_id, now)
    audit.record_by(tx, caller, "webhook.sent_again", delivery_id, now)
    tx.ring(deliveries.WEBHOOK_BELL)
    return show_delivery(tx, caller, delivery_id)


def retry_some_failed(tx: Tx, caller: Caller, since: int, now: int) -> int:
    """Retry some failed deliveries. Return how many, 0 when none is left: a long log takes several calls."""
    count = webhook_log.send_failed_again(tx, caller.account_id, since, now)
    if count:
        audit.record_by(tx, caller, "webhook.sent_again", caller.account_id, now, after={"deliveries": count})
        tx.ring(deliveries.WEBHOOK_BELL)
    return count


def replay_event(tx: Tx, caller: Caller, event: event_log.Event, owner: str, now: int) -> str:
    """Post an event to a webhook, also to one that is disabled or for other events. Return its URL."""
    webhook = webhooks.get(tx, owner)
    if webhook.account_id != caller.account_id:
        raise NotFound("No webhook is set. PUT /v1/webhook sets one.")
    delivery_id = webhooks.replay(tx, event, webhook, now)
    audit.record_by(tx, caller, "webhook.sent_again", delivery_id, now)
    tx.ring(deliveries.WEBHOOK_BELL)
    return webhook.url
