"""Trash: messages that a mail program deleted, which are in no list, count or search until they come back."""

from collections import Counter
from collections.abc import Sequence

from postroom.mailbox import inboxes, threads
from postroom.mailbox.messages import BLOCKED, INBOUND, OUTBOUND
from postroom.storage.database import Row, Tx, one_of


def put_in(tx: Tx, inbox_id: str, message_ids: Sequence[str]) -> None:
    _count(tx, inbox_id, _mark(tx, message_ids, is_trashed=True), -1)


def take_out(tx: Tx, inbox_id: str, message_ids: Sequence[str]) -> None:
    _count(tx, inbox_id, _mark(tx, message_ids, is_trashed=False), 1)


def _mark(tx: Tx, message_ids: Sequence[str], is_trashed: bool) -> list[Row]:
    if not message_ids:
        return []
    is_asked, asked = one_of("id", message_ids)
    return tx.all(
        f"update messages set is_trashed = :is_trashed where {is_asked} and is_trashed <> :is_trashed"
        " returning thread_id, direction",
        is_trashed=int(is_trashed),
        **asked,
    )


def _count(tx: Tx, inbox_id: str, moved: Sequence[Row], by: int) -> None:
    if not moved:
        return
    counts = Counter(row["direction"] for row in moved)
    inboxes.count(
        tx,
        inbox_id,
        inbound=by * counts[INBOUND],
        outbound=by * counts[OUTBOUND],
        blocked=by * counts[BLOCKED],
    )
    by_thread = Counter(row["thread_id"] for row in moved if row["thread_id"])
    for thread_id, count in sorted(by_thread.items()):
        threads.count_listed(tx, thread_id, by * count)
