"""Flags of messages: whether they were seen, and any others that a mail client sets."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from postroom.mailbox.folders import uid_map
from postroom.storage.database import Row, Tx, one_of

SEEN, DELETED, DRAFT = "\\Seen", "\\Deleted", "\\Draft"
RECENT = "\\Recent"  # of the session that is the first to see a message; never stored with it
SYSTEM = ("\\Answered", "\\Flagged", DRAFT, SEEN, DELETED)
MOST_KEYWORDS = 50
MAX_KEYWORD_LENGTH = 100


@lru_cache(4096)
def of_row(is_seen: int, others: str, is_deleted: int) -> frozenset[str]:
    found = set(others.split())
    if is_seen:
        found.add(SEEN)
    if is_deleted:
        found.add(DELETED)
    return frozenset(found)


def set_all(tx: Tx, inbox_id: str, folder: str, wanted: dict[str, frozenset[str]]) -> None:
    r"""Replaces the flags of messages; \Deleted applies to this folder, all others to the mail."""
    if not wanted:
        return
    modseq = uid_map.grow(tx, inbox_id)
    for message_id, flags in wanted.items():
        others = " ".join(sorted(flags - {SEEN, DELETED}))
        tx.run(
            "update mail_flags set is_seen = :is_seen, flags = :flags where message_id = :id",
            is_seen=int(SEEN in flags),
            flags=others,
            id=message_id,
        )
        tx.run(
            "update folder_mails set modseq = :modseq,"
            " is_deleted = case folder when :folder then :is_deleted else is_deleted end"
            " where message_id = :id",
            modseq=modseq,
            folder=folder,
            is_deleted=int(DELETED in flags),
            id=message_id,
        )


def mark_thread_read(tx: Tx, thread_id: str) -> None:
    mark_threads_read(tx, [thread_id])


def mark_threads_read(tx: Tx, thread_ids: Sequence[str]) -> None:
    _set_seen(tx, thread_ids, is_seen=True, only="")


def mark_thread_unread(tx: Tx, thread_id: str) -> None:
    """Marks all received messages unseen; sent ones stay as they are."""
    _set_seen(tx, [thread_id], is_seen=False, only=" and direction = 'inbound'")


def _set_seen(tx: Tx, thread_ids: Sequence[str], is_seen: bool, only: str) -> None:
    is_wanted, wanted = one_of("thread_id", thread_ids)
    rows = tx.all(
        "update mail_flags set is_seen = :is_seen where is_seen <> :is_seen and message_id in"
        f" (select id from messages where {is_wanted}{only}) returning message_id, inbox_id",
        is_seen=int(is_seen),
        **wanted,
    )
    _touch_all(tx, rows)


def _touch_all(tx: Tx, rows: Sequence[Row]) -> None:
    by_inbox: dict[str, list[str]] = {}
    for row in rows:
        by_inbox.setdefault(row["inbox_id"], []).append(row["message_id"])
    for inbox_id, message_ids in by_inbox.items():
        touch(tx, inbox_id, message_ids)


def touch(tx: Tx, inbox_id: str, message_ids: Sequence[str]) -> None:
    modseq = uid_map.grow(tx, inbox_id)
    for start in range(0, len(message_ids), uid_map.ASKED_TOGETHER):
        is_asked, params = one_of("message_id", message_ids[start : start + uid_map.ASKED_TOGETHER])
        tx.run(f"update folder_mails set modseq = :modseq where {is_asked}", modseq=modseq, **params)


def threads_of(tx: Tx, message_ids: Sequence[str]) -> dict[str, str]:
    """Return the thread ids by message, for messages in a thread."""
    is_asked, params = one_of("id", message_ids)
    rows = tx.all(f"select id, thread_id from messages where {is_asked} and thread_id <> ''", **params)
    return {row["id"]: row["thread_id"] for row in rows}


def record_seen(tx: Tx, message_ids: Sequence[str], is_seen: bool) -> None:
    """Marks single messages seen or unseen."""
    is_asked, params = one_of("message_id", message_ids)
    rows = tx.all(
        f"update mail_flags set is_seen = :is_seen where is_seen <> :is_seen and {is_asked}"
        " returning message_id, inbox_id",
        is_seen=int(is_seen),
        **params,
    )
    _touch_all(tx, rows)


def keep_described(tx: Tx, column: str, made: Mapping[str, bytes]) -> None:
    """Stores the envelope or the structure in IMAP form; neither ever changes."""
    for message_id, written in made.items():
        tx.run(
            f"update mail_flags set {column} = :written where message_id = :id",
            written=written,
            id=message_id,
        )
