"""Messages and threads deleted for good, with what still had to be done for them; the counters stay right."""

from collections import Counter
from collections.abc import Mapping, Sequence

from postroom.accounts.reach import Reach
from postroom.events import events
from postroom.mailbox import inboxes, indexing, messages, related, threads, usage
from postroom.mailbox.messages import BLOCKED, INBOUND, OUTBOUND
from postroom.storage.database import Tx

STEP_ROWS = 200
OF_A_MESSAGE = ("raw_mails", "attachments", "checks", "deliveries", "holds", "blocked_mails")


def remove_message(tx: Tx, reach: Reach, message_id: str, now: int) -> list[str]:
    """What had not left stays. Gives the blobs to remove after the commit."""
    message = messages.get(tx, reach, message_id)
    return _remove_all(tx, message.inbox_id, message.thread_id, [message.id], now)


def remove_some_of_thread(tx: Tx, reach: Reach, thread_id: str, now: int) -> tuple[list[str], bool]:
    """The oldest messages of a thread. Gives blobs to remove, and whether the thread is gone.

    A long thread goes in several steps, so that no write takes long.
    """
    thread = threads.get(tx, reach, thread_id)
    inboxes.count(tx, thread.inbox_id)  # nothing joins it from here on
    rows = tx.all(
        "select id from messages where thread_id = :id order by created_at, id limit :rows",
        id=thread.id,
        rows=STEP_ROWS,
    )
    blobs = _remove_all(tx, thread.inbox_id, thread.id, [row["id"] for row in rows], now)
    return blobs, threads.is_empty(tx, thread.id)


def remove_some(tx: Tx, inbox_id: str, by_thread: Mapping[str, Sequence[str]], now: int) -> list[str]:
    """Messages of several threads of one inbox; "" is the thread of those that are in none. Gives blobs."""
    return [
        blob
        for thread_id, message_ids in by_thread.items()
        for blob in _remove_all(tx, inbox_id, thread_id, message_ids, now)
    ]


def _remove_all(tx: Tx, inbox_id: str, thread_id: str, message_ids: Sequence[str], now: int) -> list[str]:
    """The inbox first, as whoever stores mail takes it."""
    inboxes.count(tx, inbox_id)
    gone: Counter[str] = Counter()
    size_bytes = 0
    blobs: list[str] = []
    for message_id in message_ids:
        row = tx.one(
            "select direction, size_bytes, (select 1 from checks where message_id = :id) as is_unjudged"
            " from messages join raw_mails on raw_mails.message_id = messages.id where messages.id = :id",
            id=message_id,
        )
        if row is None:
            continue
        is_counted = row["direction"] != BLOCKED or not row["is_unjudged"]
        gone[row["direction"]] += is_counted
        size_bytes += row["size_bytes"] or 0
        blobs += _end_mail(tx, message_id)
    inbox = inboxes.count(
        tx,
        inbox_id,
        inbound=-gone[INBOUND],
        outbound=-gone[OUTBOUND],
        blocked=-gone[BLOCKED],
        stored_bytes=-size_bytes,
    )
    usage.count_all(tx, [inbox.stores(-size_bytes, now)])
    if thread_id:
        threads.take_away(tx, thread_id, gone[INBOUND] + gone[OUTBOUND])
        if threads.is_empty(tx, thread_id):
            related.forget_thread(tx, thread_id)
    return blobs


def _end_mail(tx: Tx, message_id: str) -> list[str]:
    """Webhooks about it still go: they tell of an event, which stays."""
    tx.run("update deliveries set message_id = '' where message_id = :id and kind = 'webhook'", id=message_id)
    blob = erase(tx, message_id)
    return [] if blob is None else [blob]


def erase(tx: Tx, message_id: str) -> str | None:
    """All rows of a message, without counting. Gives its blob if nobody else needs it."""
    row = tx.one("select blob from raw_mails where message_id = :id", id=message_id)
    tx.run(
        "delete from attempts where delivery_id in (select id from deliveries where message_id = :id)",
        id=message_id,
    )
    for table in OF_A_MESSAGE:
        tx.run(f"delete from {table} where message_id = :id", id=message_id)
    events.forget_texts(tx, message_id)
    indexing.enqueue_all(tx, [message_id])
    tx.run("delete from messages where id = :id", id=message_id)
    blob: str | None = None if row is None else row["blob"]
    if blob is None or tx.one("select 1 as found from raw_mails where blob = :blob limit 1", blob=blob):
        return None
    return blob
