"""The briefing: what came, what waits for a decision or an answer, what failed, and what is on today."""

from typing import Annotated

from msgspec import Meta, Struct

from postroom.accounts.scope import Scope
from postroom.fields import Timestamp, iso
from postroom.mailbox import inbox_calendars
from postroom.mailbox.calendars import free_time
from postroom.storage.database import Tx
from postroom_mail.reading.recurrence import StepBudget

SHOWN = 20
CALENDARS = 100


class Brief(Struct, frozen=True):
    """How many there are, and the ids of the newest 20."""

    count: int
    ids: list[str]


class Briefing(Struct, frozen=True):
    """`awaiting` and `overdue` are threads, `agenda` calendar events, all others messages."""

    since: Timestamp
    received: Brief
    held: Brief
    awaiting: Brief
    overdue: Brief
    failed: Brief
    agenda: Annotated[Brief, Meta(description="What is left of today, in UTC.")]


def read(tx: Tx, within: Scope, since: int, now: int, today_ends: int) -> Briefing:
    column, owner = within.owner_of_inboxes
    messages = (
        f"from inboxes cross join messages where messages.inbox_id = inboxes.id and inboxes.{column} = :owner"
        " and messages.is_trashed = 0"
    )
    came = f"{messages} and messages.direction = 'inbound' and messages.created_at >= :since"
    failed = f"{messages} and messages.status = 'failed' and messages.created_at >= :since"
    place, whose = within.owner
    held = f"from holds where {place} = :owner and state = 'held'"
    threads = f"from threads where {place} = :owner and awaiting_until is not null and last_message_at > 0"
    newest, last = "messages.created_at desc, messages.id desc", "last_message_at desc, id desc"
    return Briefing(
        since=iso(since) or "",
        received=_brief(tx, "messages.id", came, newest, owner=owner, since=since),
        held=_brief(tx, "message_id", held, "created_at desc, message_id desc", owner=whose),
        awaiting=_brief(tx, "id", threads, last, owner=whose),
        overdue=_brief(tx, "id", f"{threads} and is_overdue = 1", last, owner=whose),
        failed=_brief(tx, "messages.id", failed, newest, owner=owner, since=since),
        agenda=_agenda(tx, within, now, today_ends),
    )


def _brief(tx: Tx, column: str, rest: str, order: str, **params: object) -> Brief:
    row = tx.one(f"select count(*) as number {rest}", **params)
    rows = tx.all(f"select {column} as id {rest} order by {order} limit {SHOWN}", **params)
    return Brief(0 if row is None else int(row["number"]), [each["id"] for each in rows])


def _agenda(tx: Tx, within: Scope, now: int, ends: int) -> Brief:
    steps = StepBudget()
    calendars, _ = inbox_calendars.list_within(tx, within, CALENDARS, 0)
    spans = [span for each in calendars for span in free_time.list_spans(tx, each, now, ends, steps)]
    spans.sort(key=lambda span: (span.starts_at, span.event_id))
    return Brief(len(spans), [span.event_id for span in spans[:SHOWN]])
