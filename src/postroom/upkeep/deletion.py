"""Deletes messages and threads with their deliveries, holds and files, and corrects the counters."""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence

from postroom.accounts.scope import Scope
from postroom.errors import LegalHold
from postroom.mailbox import inboxes, labels, legal_holds, messages, raw_mails, related, threads, usage
from postroom.mailbox.folders import uid_map
from postroom.mailbox.messages import BLOCKED, COUNTED_AS, INBOUND, JUNK, OUTBOUND
from postroom.mailbox.search import removals
from postroom.storage.database import Tx, one_of

STEP_ROWS = 200
OF_A_MESSAGE = (
    "raw_mails",
    "message_outlines",
    "attachments",
    "examinations",
    "deliveries",
    "holds",
    "blocked_mails",
    "message_labels",
    "label_changes",
    "junk_examples",
    "origin_values",
)


def remove_message(tx: Tx, scope: Scope, message_id: str, now: int) -> list[str]:
    """Remove a message. Unsent mail is no longer sent. Returns the blobs to remove after the commit."""
    message = messages.get(tx, scope, message_id)
    return _remove_all(tx, message.inbox_id, message.thread_id, [message.id], now)


def remove_some_of_thread(tx: Tx, scope: Scope, thread_id: str, now: int) -> tuple[list[str], bool]:
    """Remove the oldest messages of a thread. Returns blobs to remove, and whether the thread is gone.

    A long thread is removed in several steps, so that no write takes long.
    """
    thread = threads.get(tx, scope, thread_id)
    inboxes.lock(tx, thread.inbox_id)  # nothing joins it from here on
    rows = tx.all(
        "select id from messages where thread_id = :id order by created_at, id limit :rows",
        id=thread.id,
        rows=STEP_ROWS,
    )
    blobs = _remove_all(tx, thread.inbox_id, thread.id, [row["id"] for row in rows], now)
    return blobs, threads.is_empty(tx, thread.id)


def remove_some(tx: Tx, inbox_id: str, by_thread: Mapping[str, Sequence[str]], now: int) -> list[str]:
    """Remove messages of several threads of one inbox ("" for those in no thread).

    Returns the blobs to remove.
    """
    return [
        blob
        for thread_id, message_ids in by_thread.items()
        for blob in _remove_all(tx, inbox_id, thread_id, message_ids, now)
    ]


def remove_of_blob(tx: Tx, blob: str, now: int) -> None:
    """Remove messages without a legal hold, draft files and uploads whose bytes were in a lost blob."""
    rows = tx.all(
        "select id, inbox_id, thread_id from messages join raw_mails on raw_mails.message_id = messages.id"
        " where raw_mails.blob = :blob",
        blob=blob,
    )
    for row in rows:
        with contextlib.suppress(LegalHold):  # its text is still there
            _remove_all(tx, row["inbox_id"], row["thread_id"], [row["id"]], now)
    tx.run("delete from draft_files where blob = :blob", blob=blob)
    tx.run("delete from file_links where blob = :blob", blob=blob)


def _remove_all(tx: Tx, inbox_id: str, thread_id: str, message_ids: Sequence[str], now: int) -> list[str]:
    """Locks the inbox first, in the order that all storing of mail uses. Events stay."""
    legal_holds.require_free(tx, inboxes.lock(tx, inbox_id), [thread_id] if thread_id else [])
    gone, size_bytes = _count(tx, message_ids)
    _detach_webhooks(tx, message_ids)
    blobs = erase_all(tx, message_ids)
    inbox = inboxes.count(
        tx,
        inbox_id,
        inbound=-gone[INBOUND],
        outbound=-gone[OUTBOUND],
        blocked=-gone[BLOCKED],
        junk=-gone[JUNK],
        stored_bytes=-size_bytes,
    )
    usage.count_all(tx, [inbox.stores(-size_bytes, now)])
    if thread_id:
        threads.take_away(tx, thread_id, gone[INBOUND] + gone[OUTBOUND])
        labels.forget_unused(tx, thread_id)
        if threads.is_empty(tx, thread_id):
            related.forget_threads(tx, [thread_id])
        else:
            labels.settle_read(tx, threads.get(tx, inbox.scope, thread_id))
    return blobs


def _count(tx: Tx, message_ids: Sequence[str]) -> tuple[Counter[str], int]:
    """Count messages by direction, and their bytes. Mail in Trash or not examined yet was not counted."""
    if not message_ids:
        return Counter(), 0
    is_wanted, wanted = one_of("messages.id", message_ids)
    rows = tx.all(
        f"select direction, {COUNTED_AS}, is_trashed, size_bytes, examinations.message_id as unjudged"
        " from messages join raw_mails on raw_mails.message_id = messages.id"
        f" left join examinations on examinations.message_id = messages.id where {is_wanted}",
        **wanted,
    )
    counted = [
        row["counted_as"]
        for row in rows
        if not row["is_trashed"] and (row["direction"] != BLOCKED or row["unjudged"] is None)
    ]
    return Counter(counted), sum(row["size_bytes"] for row in rows)


def erase_all(tx: Tx, message_ids: Sequence[str]) -> list[str]:
    """Erase all rows of messages, by one statement for each table.

    Returns the blobs that nothing else uses.
    """
    if not message_ids:
        return []
    removals.enqueue_removed(tx, message_ids)
    is_wanted, wanted = one_of("message_id", message_ids)
    rows = tx.all(f"select distinct blob from raw_mails where {is_wanted} and blob is not null", **wanted)
    tx.run(
        f"delete from attempts where delivery_id in (select id from deliveries where {is_wanted})", **wanted
    )
    for table in OF_A_MESSAGE:
        tx.run(f"delete from {table} where {is_wanted}", **wanted)
    uid_map.forget(tx, message_ids)
    delete_all(tx, "messages", "id", message_ids)
    blobs = [row["blob"] for row in rows]
    used = raw_mails.find_used_blobs(tx, blobs)
    return [blob for blob in blobs if blob not in used]


def delete_all(tx: Tx, table: str, column: str, values: Sequence[str]) -> int:
    if not values:
        return 0
    is_wanted, wanted = one_of(column, values)
    return tx.run(f"delete from {table} where {is_wanted}", **wanted)


def _detach_webhooks(tx: Tx, message_ids: Sequence[str]) -> None:
    """Detach webhooks, which are still delivered: their content is in their events."""
    if message_ids:
        is_wanted, wanted = one_of("message_id", message_ids)
        tx.run(f"update deliveries set message_id = '' where kind = 'webhook' and {is_wanted}", **wanted)
