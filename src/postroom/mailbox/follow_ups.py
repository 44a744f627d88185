"""Whose answer a thread waits for, and the nudges that are prepared if it does not come.

An answer ends both in the transaction that puts it into the inbox. A nudge is taken in the transaction that
accepts it: one of the two is first, on however many nodes.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.clock import DAY, to_iso
from postroom.errors import NothingToDo, no_such
from postroom.fields import Timestamp
from postroom.mailbox.threads import Thread
from postroom.storage.database import SKIP_LOCKED, Row, Tx, all_of, count, insert_item, item_from_row

State = Literal["scheduled", "sent", "cancelled", "failed"]
SCHEDULED: State = "scheduled"
SENT: State = "sent"
BELL = "follow-ups"
APART = DAY  # between two nudges in one thread, from all askers
TOGETHER = 50
ADDRESSES_SHOWN = 500  # characters
# Why what was prepared is not sent.
ANSWERED, BOUNCED, UNSUBSCRIBED = "answered", "bounced", "unsubscribed"
BY_HAND, PAUSED, NOT_SENT, REPLACED = "by hand", "paused", "not sent", "replaced"


class FollowUpEnded(NothingToDo):
    """The follow-up was answered, cancelled or sent, or comes too soon after another."""


class Awaiting(Struct, frozen=True):
    """Whose answer a thread waits for: the recipients of the email that asked."""

    since: Timestamp
    until: Timestamp
    from_: str = field(name="from")
    overdue: bool = False


class ExpectedAnswers(Struct, frozen=True):
    """How many threads wait for an answer, and how many of these are overdue."""

    awaiting: int
    overdue: int


class Expected(Struct, frozen=True):
    """Until when an answer is expected to a message, and from whom."""

    until: int
    since: int
    sender: str
    message_id: str


class FollowUp(Struct, frozen=True):
    id: str
    account_id: str
    inbox_id: str
    thread_id: str
    message_id: str
    key_id: str
    body: str | None
    template_id: str | None
    due_at: int
    state: State
    reason: str | None
    sent_id: str | None
    sent_at: int | None
    created_at: int

    @classmethod
    def from_row(cls, row: Row) -> "FollowUp":
        return item_from_row(cls, row)


def show_awaiting(thread: Thread) -> Awaiting | None:
    if thread.awaiting_since is None or thread.awaiting_until is None:
        return None
    since, until = to_iso(thread.awaiting_since), to_iso(thread.awaiting_until)
    return Awaiting(since, until, thread.awaiting_from or "", thread.is_overdue)


def list_awaiting(tx: Tx, message_ids: Sequence[str]) -> dict[str, Awaiting]:
    """Return what is expected as an answer to these messages, by their ids."""
    wanted = "select * from threads where :wanted and awaiting_message is not null"
    found = map(Thread.from_row, all_of(tx, wanted, "awaiting_message", message_ids))
    shown = {thread.awaiting_message or "": show_awaiting(thread) for thread in found}
    return {message_id: each for message_id, each in shown.items() if each is not None}


def count_within(tx: Tx, scope: Scope) -> ExpectedAnswers:
    owner, owner_id = scope.owner
    row = tx.one(
        "select count(*) as awaiting, coalesce(sum(is_overdue), 0) as overdue from threads"
        f" where {owner} = :owner_id and awaiting_until is not null and last_message_at > 0",
        owner_id=owner_id,
    )
    return (
        ExpectedAnswers(0, 0) if row is None else ExpectedAnswers(int(row["awaiting"]), int(row["overdue"]))
    )


def new_id(now: int) -> str:
    return ids.new(ids.FOLLOW_UP, now)


def expect(tx: Tx, thread: Thread, expected: Expected) -> Thread:
    """Replaces what was expected before."""
    tx.run(
        "update threads set awaiting_since = :since, awaiting_until = :until, awaiting_from = :sender,"
        " awaiting_message = :message_id, is_overdue = 0 where id = :id",
        since=expected.since,
        until=expected.until,
        sender=expected.sender[:ADDRESSES_SHOWN],
        message_id=expected.message_id,
        id=thread.id,
    )
    tx.ring(BELL)
    return replace(
        thread,
        awaiting_since=expected.since,
        awaiting_until=expected.until,
        awaiting_from=expected.sender[:ADDRESSES_SHOWN],
        awaiting_message=expected.message_id,
        is_overdue=False,
    )


def end(tx: Tx, thread: Thread, reason: str) -> Thread:
    """Stop expecting a reply and send no nudge, not even one that is accepted but has not left."""
    tx.run(
        "update threads set awaiting_since = null, awaiting_until = null, awaiting_from = null,"
        " awaiting_message = null, is_overdue = 0 where id = :id",
        id=thread.id,
    )
    cancel_all(tx, thread.id, reason)
    tx.run(
        "update follow_ups set state = 'cancelled', reason = :reason where thread_id = :id and state = 'sent'"
        " and sent_id in (select id from messages where thread_id = :id and status = 'pending')",
        reason=reason,
        id=thread.id,
    )
    return without_expectation(thread)


def without_expectation(thread: Thread) -> Thread:
    return replace(
        thread,
        awaiting_since=None,
        awaiting_until=None,
        awaiting_from=None,
        awaiting_message=None,
        is_overdue=False,
    )


def cancel_all(tx: Tx, thread_id: str, reason: str) -> int:
    """Cancel those that are not sent yet; return how many."""
    return tx.run(
        "update follow_ups set state = 'cancelled', reason = :reason"
        " where thread_id = :id and state = 'scheduled'",
        reason=reason,
        id=thread_id,
    )


def cancel(tx: Tx, follow_up: FollowUp, reason: str, state: State = "cancelled") -> bool:
    """Return False if it is sent, or was cancelled before."""
    changed = tx.run(
        "update follow_ups set state = :state, reason = :reason where id = :id and state = 'scheduled'",
        state=state,
        reason=reason,
        id=follow_up.id,
    )
    return changed == 1


def add_all(tx: Tx, new: Sequence[FollowUp]) -> None:
    for each in new:
        insert_item(tx, "follow_ups", each)
    if new:
        tx.ring(BELL)


def take(tx: Tx, follow_up_id: str, message_id: str, now: int) -> None:
    """Called in the transaction that accepts the nudge. Raises FollowUpEnded if it must not be sent."""
    row = tx.one(
        "update follow_ups set state = 'sent', sent_id = :message_id, sent_at = :now"
        " where id = :id and state = 'scheduled' returning thread_id",
        message_id=message_id,
        now=now,
        id=follow_up_id,
    )
    if row is None:
        raise FollowUpEnded("This follow-up was sent or cancelled.")
    earlier = last_sent_at(tx, row["thread_id"], besides=follow_up_id)
    if earlier is not None and now < earlier + APART:
        raise FollowUpEnded("A follow-up in this thread was sent within the last 24 hours.")


def last_sent_at(tx: Tx, thread_id: str, besides: str = "") -> int | None:
    row = tx.one(
        "select max(sent_at) as sent_at from follow_ups where thread_id = :thread_id and id <> :besides"
        " and sent_at is not null",
        thread_id=thread_id,
        besides=besides,
    )
    return None if row is None or row["sent_at"] is None else int(row["sent_at"])


def put_off(tx: Tx, follow_up: FollowUp, until: int) -> None:
    tx.run(
        "update follow_ups set due_at = :until where id = :id and state = 'scheduled'",
        until=until,
        id=follow_up.id,
    )


def list_due(tx: Tx, now: int) -> list[FollowUp]:
    rows = tx.all(
        "select * from follow_ups where state = 'scheduled' and due_at <= :now order by due_at limit :most",
        now=now,
        most=TOGETHER,
    )
    return [FollowUp.from_row(row) for row in rows]


def find(tx: Tx, follow_up_id: str) -> FollowUp | None:
    row = tx.one("select * from follow_ups where id = :id", id=follow_up_id)
    return None if row is None else FollowUp.from_row(row)


def list_of_thread(tx: Tx, thread_id: str, limit: int, offset: int) -> list[FollowUp]:
    """List the follow-ups of a thread in the order of their times."""
    rows = tx.all(
        "select * from follow_ups where thread_id = :id order by due_at, id limit :limit offset :offset",
        id=thread_id,
        limit=limit,
        offset=offset,
    )
    return [FollowUp.from_row(row) for row in rows]


def count_of_thread(tx: Tx, thread_id: str) -> int:
    return count(tx, "select count(*) as number from follow_ups where thread_id = :id", id=thread_id)


def get_of_thread(tx: Tx, thread: Thread, follow_up_id: str) -> FollowUp:
    found = find(tx, follow_up_id) if ids.is_id(ids.FOLLOW_UP, follow_up_id) else None
    if found is None or found.thread_id != thread.id:
        raise no_such("follow-up")
    return found


def is_any_due(tx: Tx, now: int) -> bool:
    due = tx.one(
        "select 1 as found from threads where awaiting_until <= :now and is_overdue = 0 limit 1", now=now
    )
    return due is not None


def mark_overdue(tx: Tx, now: int) -> list[Thread]:
    """Marks threads whose answer did not come in time. Of several nodes, one marks each."""
    rows = tx.all(
        "update threads set is_overdue = 1 where id in (select id from threads where awaiting_until <= :now"
        f" and is_overdue = 0 order by awaiting_until limit :most {SKIP_LOCKED})"
        " and awaiting_until <= :now and is_overdue = 0 returning *",
        now=now,
        most=TOGETHER,
    )
    return [Thread.from_row(row) for row in rows]
