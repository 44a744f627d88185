"""What answers about webhooks and their deliveries carry."""

from msgspec import UNSET, Struct, UnsetType

from postroom.clock import to_iso
from postroom.events import webhook_log, webhooks
from postroom.fields import Timestamp
from postroom.queue import deliveries


class Webhook(Struct, rename="camel", frozen=True):
    """`secret` is there only when it was made just then."""

    url: str
    event_types: list[str]
    enabled: bool
    created_at: Timestamp
    disabled_reason: str | None
    secret: str | UnsetType = UNSET

    @classmethod
    def of(cls, webhook: webhooks.Webhook, secret: str | UnsetType = UNSET) -> "Webhook":
        return cls(
            url=webhook.url,
            event_types=list(webhook.event_types),
            enabled=webhook.enabled,
            created_at=to_iso(webhook.created_at),
            disabled_reason=webhook.disabled_reason,
            secret=secret,
        )


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
        return cls(
            id=item.id,
            event_id=item.event_id or "",
            inbox_id=item.inbox_id,
            url=item.target,
            state=item.state,
            created_at=to_iso(item.created_at),
            next_attempt_at=to_iso(item.due_at) if item.state == deliveries.PENDING else None,
            attempts=[ShownAttempt.of(attempt) for attempt in attempts],
        )


class WebhookDeliveryPage(Struct, rename="camel", frozen=True):
    data: list[WebhookDelivery]
    total: int


class Retried(Struct, frozen=True):
    retried: int
