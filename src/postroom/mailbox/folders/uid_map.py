"""Which messages are in which folders, under which UIDs: written in the transaction that changes them.

Only for inboxes that a mail client has opened.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from postroom.mailbox import inboxes
from postroom.storage.database import LOCK_ROWS, Tx, insert, one_of

INBOX, SENT, DRAFTS, JUNK, TRASH = "inbox", "sent", "drafts", "junk", "trash"
FIXED = (INBOX, SENT, DRAFTS, JUNK, TRASH)
LABEL = "label:"
ASKED_TOGETHER = 500
DRAFT_FLAG = "\\Draft"
READ_ALONE = "\\seen"  # instead of a message's label: it was read, and not with its thread


class FolderEntry(Struct, frozen=True):
    """A message that enters a folder; for a label also its displayed form."""

    inbox_id: str
    folder: str
    message_id: str
    shown: str = ""


def of_label(folded: str) -> str:
    return f"{LABEL}{folded}"


def open_inbox(tx: Tx, inbox_id: str, now: int) -> int:
    """Number all messages when a mail client opens the inbox for the first time. Return the UIDVALIDITY."""
    if (found := find_validity(tx, inbox_id)) is not None:
        return found
    inboxes.lock(tx, inbox_id)  # nothing is stored meanwhile
    if (found := find_validity(tx, inbox_id)) is not None:
        return found
    validity = max(1, now // 1000)
    insert(tx, "folder_inboxes", inbox_id=inbox_id, uid_validity=validity, next_uid=1, modseq=1)
    _number_all(tx, inbox_id)
    return validity


def find_validity(tx: Tx, inbox_id: str) -> int | None:
    row = tx.one("select uid_validity from folder_inboxes where inbox_id = :id", id=inbox_id)
    return None if row is None else int(row["uid_validity"])


def _number_all(tx: Tx, inbox_id: str) -> None:
    """Number all messages in a few statements: fast even for a hundred thousand."""
    _number_messages(tx, inbox_id)
    _number_drafts(tx, inbox_id)
    tx.run(
        "insert into folders (inbox_id, folder, shown, next_uid)"
        " select inbox_id, folder, coalesce((select min(shown) from labels"
        f" where labels.inbox_id = :id and '{LABEL}' || label = folder), ''), max(uid) + 1"
        " from folder_mails where inbox_id = :id group by inbox_id, folder",
        id=inbox_id,
    )
    tx.run(
        "update folder_inboxes set next_uid = 1 + coalesce((select max(uid) from folder_mails"
        " where inbox_id = :id), 0) where inbox_id = :id",
        id=inbox_id,
    )


def _number_messages(tx: Tx, inbox_id: str) -> None:
    is_judged = (
        "(direction <> 'blocked' or not exists"
        " (select 1 from examinations where examinations.message_id = messages.id))"
    )
    tx.run(
        "insert into mail_flags (message_id, inbox_id, envelope, is_seen)"
        " select messages.id, messages.inbox_id, envelope,"
        " case when direction = 'outbound' or threads.is_read = 1"
        " or messages.created_at <= threads.read_through or exists (select 1 from message_labels"
        " where message_labels.message_id = messages.id and label = :seen) then 1 else 0 end"
        " from messages left join threads on threads.id = messages.thread_id"
        " left join raw_mails on raw_mails.message_id = messages.id"
        f" where messages.inbox_id = :id and {is_judged}",
        id=inbox_id,
        seen=READ_ALONE,
    )
    tx.run(
        "insert into folder_mails (inbox_id, folder, uid, message_id, modseq)"
        " select inbox_id, case when is_trashed = 1 then 'trash' when direction = 'inbound' then 'inbox'"
        " when direction = 'outbound' then 'sent' else 'junk' end,"
        " row_number() over (order by created_at, id), id, 1"
        f" from messages where inbox_id = :id and {is_judged}",
        id=inbox_id,
    )
    tx.run(
        "insert into folder_mails (inbox_id, folder, uid, message_id, modseq)"
        f" select messages.inbox_id, '{LABEL}' || label, (select count(*) from folder_mails"
        " where inbox_id = :id) + row_number() over (order by messages.created_at, messages.id, label),"
        " messages.id, 1 from messages join message_labels on message_labels.message_id = messages.id"
        " where messages.inbox_id = :id and label <> :seen and is_trashed = 0",
        id=inbox_id,
        seen=READ_ALONE,
    )


def _number_drafts(tx: Tx, inbox_id: str) -> None:
    tx.run(
        "insert into mail_flags (message_id, inbox_id, is_seen, flags)"
        " select id, inbox_id, 1, :flags from drafts where inbox_id = :id",
        id=inbox_id,
        flags=DRAFT_FLAG,
    )
    tx.run(
        "insert into folder_mails (inbox_id, folder, uid, message_id, modseq)"
        " select inbox_id, 'drafts', (select count(*) from folder_mails where inbox_id = :id)"
        " + row_number() over (order by created_at, id), id, 1 from drafts where inbox_id = :id",
        id=inbox_id,
    )


def find_opened(tx: Tx, inbox_ids: Iterable[str]) -> set[str]:
    """Return those inboxes that a mail client has opened."""
    asked, found = sorted(set(inbox_ids)), set()
    for start in range(0, len(asked), ASKED_TOGETHER):
        is_asked, params = one_of("inbox_id", asked[start : start + ASKED_TOGETHER])
        found |= {
            row["inbox_id"]
            for row in tx.all(f"select inbox_id from folder_inboxes where {is_asked}", **params)
        }
    return found


def lock(tx: Tx, inbox_id: str) -> None:
    """Makes changes to the folders of an inbox wait for each other."""
    tx.one(f"select 1 as found from folder_inboxes where inbox_id = :id {LOCK_ROWS}", id=inbox_id)


def add_all(tx: Tx, new: Sequence[tuple[Any, ...]]) -> None:
    """Adds messages that were just stored: message, inbox, thread and direction of each."""
    opened = find_opened(tx, [inbox_id for _, inbox_id, _, _ in new])
    shown = [each for each in new if each[1] in opened and each[3] != "blocked"]
    if not shown:
        return
    placed = [
        FolderEntry(inbox_id, SENT if direction == "outbound" else INBOX, message_id)
        for message_id, inbox_id, _, direction in shown
    ]
    add_flags(tx, [(each[0], each[1], each[3] == "outbound") for each in shown])
    place_all(tx, placed)


def add_flags(tx: Tx, new: Sequence[tuple[str, str, bool]]) -> None:
    tx.many(
        "insert into mail_flags (message_id, inbox_id, is_seen) values :rows on conflict do nothing",
        [(message_id, inbox_id, int(is_seen)) for message_id, inbox_id, is_seen in new],
    )


def place_draft(tx: Tx, inbox_id: str, draft_id: str) -> None:
    """Adds a draft that is new or changed: mail clients see a new mail."""
    if not find_opened(tx, [inbox_id]):
        return
    tx.run(
        "insert into mail_flags (message_id, inbox_id, is_seen, flags) values (:id, :inbox_id, 1, :flags)"
        " on conflict (message_id) do update set envelope = null, structure = null",
        id=draft_id,
        inbox_id=inbox_id,
        flags=DRAFT_FLAG,
    )
    if tx.run("delete from folder_mails where message_id = :id", id=draft_id):
        record_removal(tx, inbox_id)
    place_all(tx, [FolderEntry(inbox_id, DRAFTS, draft_id)])


def place_all(tx: Tx, placed: Sequence[FolderEntry]) -> dict[tuple[str, str], int]:
    """Assigns the next UIDs of each inbox; all must be opened. Returns the UID by folder and message."""
    by_inbox: dict[str, list[FolderEntry]] = defaultdict(list)
    for each in placed:
        by_inbox[each.inbox_id].append(each)
    uids: dict[tuple[str, str], int] = {}
    for inbox_id, coming in sorted(by_inbox.items()):
        row = tx.one(
            "update folder_inboxes set next_uid = next_uid + :count, modseq = modseq + 1"
            " where inbox_id = :id returning next_uid, modseq",
            count=len(coming),
            id=inbox_id,
        )
        if row is None:
            continue
        first = row["next_uid"] - len(coming)
        tx.many(
            "insert into folder_mails (inbox_id, folder, uid, message_id, modseq) values :rows",
            [
                (inbox_id, each.folder, first + number, each.message_id, row["modseq"])
                for number, each in enumerate(coming)
            ],
        )
        behind = {each.folder: (each.shown, first + number + 1) for number, each in enumerate(coming)}
        tx.many(
            "insert into folders (inbox_id, folder, shown, next_uid) values :rows"
            " on conflict (inbox_id, folder) do update set next_uid = excluded.next_uid",
            [(inbox_id, folder, shown, next_uid) for folder, (shown, next_uid) in behind.items()],
        )
        uids |= {(each.folder, each.message_id): first + number for number, each in enumerate(coming)}
    return uids


def remove(tx: Tx, inbox_id: str, folder: str, message_ids: Sequence[str]) -> int:
    """Removes messages from one folder."""
    if not message_ids:
        return 0
    is_asked, params = one_of("message_id", message_ids)
    removed = tx.run(
        f"delete from folder_mails where {is_asked} and folder = :folder and inbox_id = :inbox_id",
        folder=folder,
        inbox_id=inbox_id,
        **params,
    )
    if removed:
        record_removal(tx, inbox_id)
    return removed


def remove_everywhere(tx: Tx, inbox_id: str, message_ids: Sequence[str]) -> None:
    if not message_ids:
        return
    is_asked, params = one_of("message_id", message_ids)
    if tx.run(
        f"delete from folder_mails where {is_asked} and inbox_id = :inbox_id", inbox_id=inbox_id, **params
    ):
        record_removal(tx, inbox_id)


def forget(tx: Tx, message_ids: Sequence[str]) -> None:
    """Removes messages that are deleted for good."""
    if not message_ids:
        return
    is_asked, params = one_of("message_id", message_ids)
    rows = tx.all(f"select distinct inbox_id from folder_mails where {is_asked}", **params)
    if not rows:
        return
    tx.run(f"delete from folder_mails where {is_asked}", **params)
    tx.run(f"delete from mail_flags where {is_asked}", **params)
    for inbox_id in sorted(row["inbox_id"] for row in rows):
        record_removal(tx, inbox_id)


def move(tx: Tx, inbox_id: str, message_id: str, folder: str) -> None:
    """Moves a message that was let in, stopped or sent: out of all fixed folders but this one."""
    if not find_opened(tx, [inbox_id]):
        return
    add_flags(tx, [(message_id, inbox_id, folder == SENT)])
    is_fixed, fixed = one_of("folder", FIXED)
    if tx.run(
        f"delete from folder_mails where message_id = :message_id and {is_fixed}",
        message_id=message_id,
        **fixed,
    ):
        record_removal(tx, inbox_id)
    place_all(tx, [FolderEntry(inbox_id, folder, message_id)])
    show_labelled(tx, inbox_id, [message_id])


def grow(tx: Tx, inbox_id: str) -> int:
    """Return the next MODSEQ of an inbox."""
    row = tx.one(
        "update folder_inboxes set modseq = modseq + 1 where inbox_id = :id returning modseq", id=inbox_id
    )
    return 0 if row is None else int(row["modseq"])


def record_removal(tx: Tx, inbox_id: str) -> int:
    """Return the next MODSEQ of an inbox, recorded as the last removal from a folder."""
    modseq = grow(tx, inbox_id)
    tx.run("update folder_inboxes set removal_modseq = modseq where inbox_id = :id", id=inbox_id)
    return modseq


def show_labelled(tx: Tx, inbox_id: str, message_ids: Sequence[str]) -> None:
    """Adds messages to the folders of their labels; those in Trash are skipped."""
    if not find_opened(tx, [inbox_id]):
        return
    coming: list[FolderEntry] = []
    for start in range(0, len(message_ids), ASKED_TOGETHER):
        is_asked, params = one_of("mail_flags.message_id", message_ids[start : start + ASKED_TOGETHER])
        rows = tx.all(
            "select mail_flags.message_id, label, shown from mail_flags"
            " join message_labels on message_labels.message_id = mail_flags.message_id"
            f" where {is_asked} and label <> :seen and not exists (select 1 from folder_mails"
            " where folder_mails.message_id = mail_flags.message_id"
            f" and folder in ('{LABEL}' || label, '{TRASH}'))"
            " order by created_at, mail_flags.message_id, label",
            seen=READ_ALONE,
            **params,
        )
        coming += [
            FolderEntry(inbox_id, of_label(row["label"]), row["message_id"], row["shown"]) for row in rows
        ]
    place_all(tx, coming)


def hide_unlabelled(tx: Tx, inbox_id: str, label: str, message_ids: Sequence[str]) -> None:
    """Removes messages from a label's folder; those in no other folder return to INBOX, Sent or Junk."""
    if not find_opened(tx, [inbox_id]):
        return
    for start in range(0, len(message_ids), ASKED_TOGETHER):
        part = message_ids[start : start + ASKED_TOGETHER]
        if remove(tx, inbox_id, of_label(label), part):
            _bring_home(tx, inbox_id, part)


def _bring_home(tx: Tx, inbox_id: str, message_ids: Sequence[str]) -> None:
    is_asked, params = one_of("mail_flags.message_id", message_ids)
    rows = tx.all(
        "select mail_flags.message_id, direction from mail_flags"
        f" join messages on messages.id = mail_flags.message_id where {is_asked}"
        " and not exists (select 1 from folder_mails where folder_mails.message_id = mail_flags.message_id)"
        " order by created_at, messages.id",
        **params,
    )
    homes = {"outbound": SENT, "blocked": JUNK}
    place_all(
        tx, [FolderEntry(inbox_id, homes.get(row["direction"], INBOX), row["message_id"]) for row in rows]
    )
