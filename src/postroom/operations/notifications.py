"""Operations on notifications: who is notified outside the pages, and of what."""

from datetime import UTC
from typing import Annotated, Literal

from msgspec import Meta, Struct

from postroom import ids
from postroom.accounts import accounts, audit
from postroom.accounts.keys import Caller
from postroom.accounts.people import users
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.events import notifications
from postroom.events.notifications import EMAIL, SUBJECT, WEBHOOK, NotificationTarget
from postroom.external_mailboxes import address_uses
from postroom.fields import Timestamp, show_item
from postroom.operations.calendars.calendars import ZoneName, require_zone
from postroom.operations.people.users import require_elsewhere
from postroom.outward.notices import daily_briefings
from postroom.storage.database import Tx
from postroom_mail.reading.time_zones import known_zone

Kind = Annotated[
    Literal["slack", "teams", "discord", "ntfy", "email", "webhook"], Meta(description="Kind of target.")
]
Occasion = Literal[
    "held", "paused", "webhook_disabled", "domain_broken", "suspicious", "rule_disabled", "briefing"
]


class TargetBody(Struct, rename="camel", frozen=True):
    kind: Kind
    target: Annotated[str, Meta(min_length=1, max_length=2000, description="A URL, or for email an address.")]
    on: Annotated[list[Occasion], Meta(min_length=1, max_length=10, description="What it is notified of.")]
    content: Annotated[
        Literal["subject", "email"],
        Meta(
            description="What it gets of a held or suspicious email: its subject, or also recipients, text,"
            " files and findings. Every target gets a link; deciding there needs a sign-in."
        ),
    ] = "subject"
    briefing_hour: Annotated[int, Meta(ge=0, le=23, description="When `briefing` is sent each day.")] = 8
    time_zone: ZoneName = "UTC"


class NotificationsBody(Struct, frozen=True):
    targets: Annotated[list[TargetBody], Meta(max_length=notifications.TARGETS_LIMIT)]


class ShownTarget(Struct, rename="camel", frozen=True):
    """`lastError` is why the last notification failed; null after one succeeded."""

    kind: str
    target: str
    on: list[str]
    content: str
    briefing_hour: int
    time_zone: str
    last_error: str | None
    failed_at: Timestamp | None
    told_at: Timestamp | None


class Notifications(Struct, frozen=True):
    targets: list[ShownTarget]


def get_notifications(tx: Tx, caller: Caller) -> Notifications:
    """Get the notification targets, and whether they work"""
    found = notifications.list_targets(tx, caller.account_id)
    return Notifications([show_item(ShownTarget, each, on=list(each.wanted)) for each in found])


def put_notifications(
    tx: Tx, caller: Caller, body: NotificationsBody, config: Config, now: int
) -> Notifications:
    """Set the notification targets; they replace the old ones"""
    if any(each.kind == WEBHOOK and each.content != SUBJECT for each in body.targets):
        raise BadRequest(
            "A webhook target gets the subject. For whole emails, use a webhook for message.held.",
            field="content",
        )
    accounts.lock(tx, caller.account_id)
    before = get_notifications(tx, caller)
    targets = [
        NotificationTarget(
            ids.new(ids.NOTIFICATION, now),
            caller.account_id,
            each.kind,
            address_of(tx, caller.account_id, each, config),
            tuple(dict.fromkeys(each.on)),
            content=each.content,
            briefing_hour=each.briefing_hour,
            time_zone=each.time_zone,
            briefing_at=next_briefing(each, now),
        )
        for each in body.targets
    ]
    notifications.put_targets(tx, caller.account_id, targets)
    address_uses.record_targets(tx, caller.account_id)
    after = get_notifications(tx, caller)
    audit.record_by(tx, caller, "notifications.set", caller.account_id, now, before=before, after=after)
    return after


def next_briefing(body: TargetBody, now: int) -> int | None:
    """Return the next moment of its hour, so that saving the targets again sends no second one that day."""
    require_zone(body.time_zone)
    if notifications.BRIEFING not in body.on:
        return None
    return daily_briefings.next_at(now, body.briefing_hour, known_zone(body.time_zone) or UTC)


def address_of(tx: Tx, account_id: str, body: TargetBody, config: Config) -> str:
    if body.kind != EMAIL:
        return body.target
    return require_elsewhere(tx, account_id, users.require_email(body.target), config, "targets")
