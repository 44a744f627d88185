"""What a mail client sees: its folders, their state, and their messages by UID."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from postroom.mailbox.folders import flags, uid_map
from postroom.mailbox.folders.uid_map import DRAFTS, FIXED, LABEL
from postroom.storage.database import Tx, all_of, one_of

ROWS_TOGETHER = 500
MOST_KEYWORDS_NAMED = 500


class FolderState(Struct, frozen=True):
    messages: int
    unseen: int
    deleted: int
    next_uid: int
    uid_validity: int
    modseq: int
    size_bytes: int = 0
    recent: int = 0
    recent_uid: int = 0


class FolderChange(Struct, frozen=True):
    """Messages that are new or have other flags since a MODSEQ, ordered by UID; all UIDs if some are gone."""

    changed: list[tuple[int, frozenset[str], int]]  # UID, flags, MODSEQ
    uids: list[int] | None
    modseq: int


class FolderMail(Struct, frozen=True):
    uid: int
    message_id: str
    modseq: int
    flags: frozenset[str]
    created_at: int = 0
    size_bytes: int = 0
    envelope: bytes | None = None  # as IMAP writes it; None: not made yet
    structure: bytes | None = None


def list_labels(tx: Tx, inbox_id: str) -> dict[str, str]:
    """Return the folders of labels, each with the label as displayed."""
    rows = tx.all(
        f"select folder, shown from folders where inbox_id = :id and folder like '{LABEL}%' order by folder",
        id=inbox_id,
    )
    return {row["folder"]: row["shown"] for row in rows}


def has(tx: Tx, inbox_id: str, folder: str) -> bool:
    if folder in FIXED:
        return True
    row = tx.one(
        "select 1 as found from folders where inbox_id = :id and folder = :folder",
        id=inbox_id,
        folder=folder,
    )
    return row is not None


def state(tx: Tx, inbox_id: str, folder: str, with_size: bool = False) -> FolderState:
    owner = tx.one("select uid_validity, modseq from folder_inboxes where inbox_id = :id", id=inbox_id)
    assert owner is not None, "the inbox is open"
    place = tx.one(
        "select next_uid, recent_uid from folders where inbox_id = :id and folder = :folder",
        id=inbox_id,
        folder=folder,
    )
    recent_uid = 0 if place is None else int(place["recent_uid"])
    row = tx.one(
        "select count(*) as messages, coalesce(sum(1 - is_seen), 0) as unseen,"
        " coalesce(sum(is_deleted), 0) as deleted,"
        " coalesce(sum(case when uid >= :recent_uid then 1 else 0 end), 0) as recent"
        " from folder_mails join mail_flags on mail_flags.message_id = folder_mails.message_id"
        " where folder_mails.inbox_id = :id and folder = :folder",
        id=inbox_id,
        folder=folder,
        recent_uid=recent_uid,
    )
    assert row is not None
    return FolderState(
        int(row["messages"]),
        int(row["unseen"]),
        int(row["deleted"]),
        1 if place is None else int(place["next_uid"]),
        int(owner["uid_validity"]),
        int(owner["modseq"]),
        _size(tx, inbox_id, folder) if with_size else 0,
        int(row["recent"]),
        recent_uid,
    )


def recent_span(tx: Tx, inbox_id: str, folder: str) -> tuple[int, int]:
    """Return the first UID not yet announced as recent to a session, and the one after the last."""
    row = tx.one(
        "select recent_uid, next_uid from folders where inbox_id = :id and folder = :folder",
        id=inbox_id,
        folder=folder,
    )
    return (0, 0) if row is None else (int(row["recent_uid"]), int(row["next_uid"]))


def take_recent(tx: Tx, inbox_id: str, folder: str) -> tuple[int, int]:
    """Gives these messages to one session: to no other they are recent (RFC 3501 section 2.3.2)."""
    uid_map.lock(tx, inbox_id)
    span = recent_span(tx, inbox_id, folder)
    tx.run(
        "update folders set recent_uid = next_uid where inbox_id = :id and folder = :folder",
        id=inbox_id,
        folder=folder,
    )
    return span


def _size(tx: Tx, inbox_id: str, folder: str) -> int:
    if folder == DRAFTS:
        return _size_of_drafts(tx, inbox_id)
    row = tx.one(
        "select coalesce(sum(size_bytes), 0) as size from folder_mails"
        " join raw_mails on raw_mails.message_id = folder_mails.message_id"
        " where inbox_id = :id and folder = :folder",
        id=inbox_id,
        folder=folder,
    )
    return 0 if row is None else int(row["size"])


def _size_of_drafts(tx: Tx, inbox_id: str) -> int:
    """Return an upper bound of the drafts' size as emails (RFC 8438): they are composed only on request."""
    row = tx.one(
        "select count(*) as drafts, coalesce(sum(length(fields)), 0) as fields, coalesce(sum((select"
        " coalesce(sum(size_bytes + 500), 0) from draft_files where draft_id = drafts.id)), 0) as files"
        " from drafts where inbox_id = :id",
        id=inbox_id,
    )
    return 0 if row is None else 4_000 * int(row["drafts"]) + 6 * int(row["fields"]) + 2 * int(row["files"])


def modseqs(tx: Tx, inbox_ids: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(inbox_ids), ROWS_TOGETHER):
        is_asked, params = one_of("inbox_id", inbox_ids[start : start + ROWS_TOGETHER])
        rows = tx.all(f"select inbox_id, modseq from folder_inboxes where {is_asked}", **params)
        found |= {row["inbox_id"]: int(row["modseq"]) for row in rows}
    return found


def uids(tx: Tx, inbox_id: str, folder: str) -> list[int]:
    rows = tx.tuples(
        "select uid from folder_mails where inbox_id = :id and folder = :folder order by uid",
        id=inbox_id,
        folder=folder,
    )
    return [uid for (uid,) in rows]


def keywords(tx: Tx, inbox_id: str) -> list[str]:
    """Return the flags used in any folder, up to a limit, without system flags.

    Finding those of one folder takes four times as long, and the event loop waits for it.
    """
    rows = tx.all(
        "select distinct flags from mail_flags where inbox_id = :id and flags <> '' limit :limit",
        id=inbox_id,
        limit=ROWS_TOGETHER,
    )
    found = {flag for row in rows for flag in row["flags"].split() if not flag.startswith("\\")}
    return sorted(found)[:MOST_KEYWORDS_NAMED]


def first_unseen(tx: Tx, inbox_id: str, folder: str) -> int | None:
    row = tx.one(
        "select min(uid) as uid from folder_mails"
        " join mail_flags on mail_flags.message_id = folder_mails.message_id"
        " where folder_mails.inbox_id = :id and folder = :folder and is_seen = 0",
        id=inbox_id,
        folder=folder,
    )
    return None if row is None else row["uid"]


def look(
    tx: Tx, inbox_id: str, folder: str, since: int, last_uid: int, known: int, compares: bool
) -> FolderChange | None:
    """Return what changed for a client that knew `known` messages at a MODSEQ.

    None if nothing in the inbox has changed.
    """
    owner = tx.one("select modseq, removal_modseq from folder_inboxes where inbox_id = :id", id=inbox_id)
    if owner is None or (owner["modseq"] == since and not compares):
        return None
    rows = tx.tuples(
        "select uid, is_seen, flags, is_deleted, modseq from folder_mails"
        " join mail_flags on mail_flags.message_id = folder_mails.message_id"
        " where folder_mails.inbox_id = :id and folder = :folder and modseq > :since order by uid",
        id=inbox_id,
        folder=folder,
        since=since,
    )
    if owner["removal_modseq"] > since and not compares:
        new = sum(row[0] > last_uid for row in rows)
        compares = _count(tx, inbox_id, folder) != known + new
    there = uids(tx, inbox_id, folder) if compares else None
    return FolderChange(
        [
            (uid, flags.of_row(is_seen, others, is_deleted), modseq)
            for uid, is_seen, others, is_deleted, modseq in rows
        ],
        there,
        int(owner["modseq"]),
    )


def _count(tx: Tx, inbox_id: str, folder: str) -> int:
    row = tx.one(
        "select count(*) as messages from folder_mails where inbox_id = :id and folder = :folder",
        id=inbox_id,
        folder=folder,
    )
    return 0 if row is None else int(row["messages"])


def list_mails(
    tx: Tx,
    inbox_id: str,
    folder: str,
    wanted: Sequence[int],
    is_dated: bool = True,
    is_described: bool = False,
) -> list[FolderMail]:
    """List the messages with these UIDs, in order; at most some hundreds at once."""
    if not wanted:
        return []
    is_wanted, params = _wanted(wanted)
    asked = set(wanted) if ":first_uid" in is_wanted else None  # a range may hold others between them
    dates = "0 as came_at, 0 as size"
    if is_dated:
        dates = "coalesce(created_at, 0) as came_at, coalesce(size_bytes, 0) as size"
    described = "mail_flags.envelope, structure" if is_described else "null as envelope, null as structure"
    dated = (
        " left join messages on messages.id = folder_mails.message_id"
        " left join raw_mails on raw_mails.message_id = folder_mails.message_id"
    )
    rows = tx.tuples(
        "select uid, folder_mails.message_id, modseq, is_seen, flags, is_deleted,"
        f" {dates}, {described}"
        " from folder_mails join mail_flags on mail_flags.message_id = folder_mails.message_id"
        f"{dated if is_dated else ''}"
        f" where folder_mails.inbox_id = :inbox_id and folder = :folder and {is_wanted} order by uid",
        inbox_id=inbox_id,
        folder=folder,
        **params,
    )
    return [_folder_mail(*row) for row in rows if asked is None or row[0] in asked]


def _folder_mail(
    uid: int,
    message_id: str,
    modseq: int,
    is_seen: int,
    others: str,
    is_deleted: int,
    came_at: int,
    size: int,
    envelope: bytes | None,
    structure: bytes | None,
) -> FolderMail:
    return FolderMail(
        uid,
        message_id,
        modseq,
        flags.of_row(is_seen, others, is_deleted),
        came_at,
        size,
        None if envelope is None else bytes(envelope),
        None if structure is None else bytes(structure),
    )


def _wanted(wanted: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """Return the condition for these UIDs.

    It is a range if they are contiguous or many, as when a folder is first opened.
    """
    if wanted[-1] - wanted[0] == len(wanted) - 1 or len(wanted) > ROWS_TOGETHER:
        return "uid between :first_uid and :last_uid", {"first_uid": wanted[0], "last_uid": wanted[-1]}
    return one_of("uid", wanted)


def find_uids(tx: Tx, inbox_id: str, folder: str, message_ids: Sequence[str]) -> dict[str, int]:
    """Return the UIDs by message, for those in the folder."""
    rows = all_of(
        tx,
        "select message_id, uid from folder_mails where :wanted and folder = :folder"
        " and inbox_id = :inbox_id",
        "message_id",
        message_ids,
        folder=folder,
        inbox_id=inbox_id,
    )
    return {row["message_id"]: int(row["uid"]) for row in rows}


def find_labelled(tx: Tx, inbox_id: str, message_ids: Sequence[str], besides: Sequence[str]) -> set[str]:
    """Return those that are in the folder of a label, other than `besides`."""
    rows = all_of(
        tx,
        f"select message_id, folder from folder_mails where :wanted and folder like '{LABEL}%'"
        " and inbox_id = :inbox_id",
        "message_id",
        message_ids,
        inbox_id=inbox_id,
    )
    return {row["message_id"] for row in rows if row["folder"] not in besides}
