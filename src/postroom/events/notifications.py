"""Notifications: short messages to people outside that something waits, grouped when many come at once."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from postroom import ids
from postroom.clock import SECOND
from postroom.events import push_subscriptions
from postroom.events.payload import NewEvent
from postroom.events.push_subscriptions import PushSubscription
from postroom.queue import deliveries
from postroom.queue.deliveries import NewDelivery
from postroom.storage.database import Row, Tx, count, insert, item_from_row

HELD, PAUSED, WEBHOOK_DISABLED, SUSPICIOUS = "held", "paused", "webhook_disabled", "suspicious"
DOMAIN_BROKEN, RULE_DISABLED, BRIEFING = "domain_broken", "rule_disabled", "briefing"
OCCASIONS = (HELD, PAUSED, WEBHOOK_DISABLED, DOMAIN_BROKEN, SUSPICIOUS, RULE_DISABLED, BRIEFING)
SLACK, TEAMS, DISCORD, NTFY, EMAIL, WEBHOOK = "slack", "teams", "discord", "ntfy", "email", "webhook"
KINDS = (SLACK, TEAMS, DISCORD, NTFY, EMAIL, WEBHOOK)
SUBJECT, WHOLE = "subject", "email"  # what a target gets of the email it gets
WHOLE_TOGETHER = 10  # whole emails that wait for a target; more are counted
TARGETS_LIMIT = 20
GATHERED = 5 * SECOND  # events within this time share one notification
SUBJECT_CHARACTERS = 200
FLAGGED = ("suspicious", "malicious")
_WAITING = "target_id = :target_id and kind = :kind and state = 'waiting' and created_at > :since"


class NotificationTarget(Struct, frozen=True):
    id: str
    account_id: str
    kind: str
    target: str
    wanted: tuple[str, ...]
    last_error: str | None = None
    failed_at: int | None = None
    told_at: int | None = None
    content: str = SUBJECT
    briefing_hour: int = 8
    time_zone: str = "UTC"
    briefing_at: int | None = None  # when the next one is due

    @classmethod
    def from_row(cls, row: Row) -> "NotificationTarget":
        return item_from_row(cls, row, wanted=tuple(row["wanted"].split()))


class Notification(Struct, frozen=True):
    id: str
    account_id: str
    target_id: str
    kind: str
    subject: str
    link: str
    count: int
    created_at: int
    message_id: str = ""  # the email that it is about, if it is about one


class News(NamedTuple):
    """What happened, and of which message."""

    occasion: str
    subject: str
    link: str
    message_id: str = ""


Recipient = NotificationTarget | PushSubscription


def list_targets(tx: Tx, account_id: str) -> list[NotificationTarget]:
    rows = tx.all(
        "select * from notification_targets where account_id = :id order by position", id=account_id
    )
    return [NotificationTarget.from_row(row) for row in rows]


def put_targets(tx: Tx, account_id: str, targets: Sequence[NotificationTarget]) -> None:
    """Replaces the targets. One that stays keeps its failures and its pending notifications."""
    before = {(each.kind, each.target): each for each in list_targets(tx, account_id)}
    tx.run("delete from notification_targets where account_id = :id", id=account_id)
    for position, asked in enumerate(targets):
        known = before.pop((asked.kind, asked.target), asked)  # named twice, the second is new
        insert(
            tx,
            "notification_targets",
            id=known.id,
            account_id=account_id,
            position=position,
            kind=asked.kind,
            target=asked.target,
            wanted=" ".join(asked.wanted),
            last_error=known.last_error,
            failed_at=known.failed_at,
            told_at=known.told_at,
            content=asked.content,
            briefing_hour=asked.briefing_hour,
            time_zone=asked.time_zone,
            briefing_at=asked.briefing_at,
        )


def list_due_briefings(tx: Tx, now: int) -> list[NotificationTarget]:
    rows = tx.all(
        "select * from notification_targets where briefing_at <= :now order by briefing_at limit :most",
        now=now,
        most=TARGETS_LIMIT,
    )
    return [NotificationTarget.from_row(row) for row in rows]


def take_briefing(tx: Tx, target: NotificationTarget, following: int) -> bool:
    """Return whether this one is to be sent: of several nodes and runs, one gets True for each day."""
    changed = tx.run(
        "update notification_targets set briefing_at = :following where id = :id and briefing_at = :due",
        following=following,
        id=target.id,
        due=target.briefing_at,
    )
    return changed == 1


def add_briefing(tx: Tx, target: NotificationTarget, facts: str, link: str, now: int) -> None:
    _add(tx, target, target.target, News(BRIEFING, facts, link), now)


def record_events(tx: Tx, announced: Sequence[NewEvent], base_url: str) -> None:
    """Notifies about held email and suspicious mail; other events are ignored."""
    for news in announced:
        document = news.document
        link = f"{base_url}/app/messages/{document.id}"
        if news.kind == "message.held":
            decision = f"{base_url}/app/approvals?message={document.id}"
            held = News(HELD, document.subject, decision, document.id)
            _notify_targets(tx, news.account_id, held, news.occurred_at)
            for device in push_subscriptions.list_ringing(tx, news.account_id, news.pod_id):
                _emit(tx, device, device.endpoint, held, news.occurred_at)
        elif news.kind == "message.received" and document.verdict in FLAGGED:
            flagged = News(SUSPICIOUS, document.subject, link, document.id)
            _notify_targets(tx, news.account_id, flagged, news.occurred_at)


def notify(tx: Tx, account_id: str, occasion: str, subject: str, link: str, now: int) -> None:
    """Notifies each target that wants it, or adds to the notification that already waits."""
    _notify_targets(tx, account_id, News(occasion, subject, link), now)


def _notify_targets(tx: Tx, account_id: str, news: News, now: int) -> None:
    for target in list_targets(tx, account_id):
        if news.occasion in target.wanted:
            _emit(tx, target, target.target, news, now)


def _emit(tx: Tx, recipient: Recipient, address: str, news: News, now: int) -> None:
    is_whole = isinstance(recipient, NotificationTarget) and recipient.content == WHOLE and news.message_id
    is_alone = is_whole and _count_waiting(tx, recipient, news.occasion, now) < WHOLE_TOGETHER
    if is_alone or not _join(tx, recipient, news.occasion, now):
        _add(tx, recipient, address, news, now)


def _count_waiting(tx: Tx, target: Recipient, occasion: str, now: int) -> int:
    return count(
        tx,
        f"select count(*) as number from notifications where {_WAITING}",
        target_id=target.id,
        kind=occasion,
        since=now - GATHERED,
    )


def _join(tx: Tx, target: Recipient, occasion: str, now: int) -> bool:
    """Adds to the newest one that waits."""
    joined = tx.run(
        "update notifications set count = count + 1 where id ="
        f" (select max(id) from notifications where {_WAITING})",
        target_id=target.id,
        kind=occasion,
        since=now - GATHERED,
    )
    return joined > 0


def _add(tx: Tx, target: Recipient, address: str, news: News, now: int) -> None:
    new_id = ids.new(ids.NOTIFICATION, now)
    insert(
        tx,
        "notifications",
        id=new_id,
        account_id=target.account_id,
        target_id=target.id,
        kind=news.occasion,
        subject=news.subject[:SUBJECT_CHARACTERS],
        link=news.link,
        message_id=news.message_id,
        count=1,
        state="waiting",
        created_at=now,
    )
    new = NewDelivery(
        id=ids.new(ids.NOTICE_DELIVERY, now),
        account_id=target.account_id,
        inbox_id="",
        kind=deliveries.NOTICE,
        message_id=new_id,
        target=address,
        lane=f"{target.account_id} {target.id}",
        due_at=now + GATHERED,
        created_at=now,
    )
    deliveries.add_all(tx, [new])


class TakenNotification(NamedTuple):
    notification: Notification
    target: Recipient


def take(tx: Tx, notification_id: str) -> TakenNotification | None:
    """Takes a notification to send it: nothing more is added to it. None if it or its target is gone."""
    row = tx.one("select * from notifications where id = :id", id=notification_id)
    recipient = None if row is None else _find_recipient(tx, row["target_id"])
    if row is None or recipient is None:
        return None
    tx.run("update notifications set state = 'leaving' where id = :id", id=notification_id)
    return TakenNotification(item_from_row(Notification, row), recipient)


def _find_recipient(tx: Tx, target_id: str) -> Recipient | None:
    if ids.is_id(ids.PUSH, target_id):
        return push_subscriptions.find(tx, target_id)
    row = tx.one("select * from notification_targets where id = :id", id=target_id)
    return None if row is None else NotificationTarget.from_row(row)


def record_outcome(tx: Tx, target_id: str, error: str | None, now: int) -> None:
    """Record the outcome. A failure is shown next to its target until a notification succeeds."""
    tx.run(
        "update notification_targets set last_error = :error, failed_at = :failed_at,"
        " told_at = coalesce(:told_at, told_at) where id = :id",
        error=error,
        failed_at=None if error is None else now,
        told_at=now if error is None else None,
        id=target_id,
    )
