"""Removes what deleted inboxes left behind (mail, drafts, threads) in small transactions."""

from itertools import accumulate

from postroom.mailbox import drafts, labels, related, threads
from postroom.storage.database import Tx
from postroom.upkeep import deletion
from postroom.upkeep.deletion import delete_all

STEP_BYTES = 2 * 1024 * 1024
OF_A_SCOPE = ("policies", "policy_rules", "pauses")
CALENDARS = (("calendar_spans", "event_id"), ("calendar_removals", "event_id"), ("calendar_events", "id"))
# What a deleted inbox leaves besides its mail, with the key of the table.
OF_AN_INBOX = (
    *(("handovers", "content_hash"), ("correspondents", "address"), ("templates", "id")),
    *(("contacts", "address"), ("contact_words", "word"), ("uncounted_contacts", "inbox_id")),
    *(("rule_tasks", "id"), ("rule_replies", "address")),
    *CALENDARS,
)


def remove_some(tx: Tx, now: int, rows: int) -> list[str] | None:
    """Removes some rows of one deleted inbox. Returns the blobs that nothing uses any more.

    None if there is no deleted inbox left.
    """
    removed = tx.one("select inbox_id from removed_inboxes order by removed_at limit 1")
    if removed is None:
        return None
    inbox_id = removed["inbox_id"]
    if message_ids := _some_messages(tx, inbox_id, rows):
        return deletion.erase_all(tx, message_ids)
    if (blobs := drafts.remove_of_inbox(tx, inbox_id, rows)) is not None:
        return blobs
    if not _remove_threads(tx, inbox_id, rows) and not _remove_rest(tx, inbox_id, rows):
        for table in ("webhooks", "rules"):
            tx.run(f"delete from {table} where owner = :inbox_id", inbox_id=inbox_id)
        for table in ("folders", "folder_inboxes", "file_links"):
            tx.run(f"delete from {table} where inbox_id = :inbox_id", inbox_id=inbox_id)
        for table in OF_A_SCOPE:
            tx.run(f"delete from {table} where scope_id = :inbox_id", inbox_id=inbox_id)
        tx.run("delete from removed_inboxes where inbox_id = :inbox_id", inbox_id=inbox_id)
    return []


def _some_messages(tx: Tx, inbox_id: str, rows: int) -> list[str]:
    """List some messages, fewer if they are large: freeing bytes takes time too."""
    found = tx.all(
        "select messages.id, raw_mails.size_bytes from messages left join raw_mails"
        " on raw_mails.message_id = messages.id where messages.inbox_id = :inbox_id limit :rows",
        inbox_id=inbox_id,
        rows=rows,
    )
    sizes = accumulate(row["size_bytes"] or 0 for row in found)
    return [row["id"] for row, size in zip(found, sizes, strict=True) if size <= STEP_BYTES] or [
        row["id"] for row in found[:1]
    ]


def _remove_threads(tx: Tx, inbox_id: str, rows: int) -> int:
    found = tx.all(
        "select id from threads where inbox_id = :inbox_id limit :rows", inbox_id=inbox_id, rows=rows
    )
    thread_ids = [row["id"] for row in found]
    labels.remove_all_of_threads(tx, thread_ids)
    if thread_ids:
        related.forget_threads(tx, thread_ids)
    for table in threads.OF_A_THREAD:
        delete_all(tx, table, "thread_id", thread_ids)
    return delete_all(tx, "threads", "id", thread_ids)


def _remove_rest(tx: Tx, inbox_id: str, rows: int) -> int:
    removed = 0
    for table, key in OF_AN_INBOX:
        removed += tx.run(
            f"delete from {table} where inbox_id = :inbox_id and {key} in"
            f" (select {key} from {table} where inbox_id = :inbox_id limit :rows)",
            inbox_id=inbox_id,
            rows=rows,
        )
    return removed
