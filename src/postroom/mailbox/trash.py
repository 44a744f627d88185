"""Trash: deleted messages, which are in no list, count or search until they are restored."""

from collections import Counter
from collections.abc import Sequence

from postroom.errors import BadRequest
from postroom.mailbox import inboxes, messages, threads
from postroom.mailbox.folders import label_changes, uid_map
from postroom.mailbox.folders.uid_map import TRASH, FolderEntry
from postroom.mailbox.messages import BLOCKED, COUNTED_AS, INBOUND, JUNK, OUTBOUND
from postroom.storage.database import Row, Tx, one_of

HOMES = {INBOUND: uid_map.INBOX, OUTBOUND: uid_map.SENT}


def add(tx: Tx, inbox_id: str, message_ids: Sequence[str], now: int) -> None:
    """Removes them from every other folder. If one of them is not sent yet, all are refused."""
    if any(message.status == messages.PENDING for message in messages.list_by_ids(tx, message_ids)):
        raise BadRequest("It is not sent yet: cancel it first, or wait.")
    moved = _mark(tx, inbox_id, message_ids, True, now)
    for part in _parts(moved):
        uid_map.remove_everywhere(tx, inbox_id, part)
    uid_map.place_all(tx, [FolderEntry(inbox_id, TRASH, row["id"]) for row in moved])


def restore(tx: Tx, inbox_id: str, message_ids: Sequence[str], now: int, *, goes_home: bool = True) -> None:
    """Puts them into the folders of their labels and, with `goes_home`, into the one they came from."""
    moved = _mark(tx, inbox_id, message_ids, False, now)
    for part in _parts(moved):
        uid_map.remove(tx, inbox_id, TRASH, part)
    if goes_home:
        uid_map.place_all(tx, [FolderEntry(inbox_id, home_of(row["direction"]), row["id"]) for row in moved])
    uid_map.show_labelled(tx, inbox_id, [row["id"] for row in moved])


def home_of(direction: str) -> str:
    return HOMES.get(direction, uid_map.JUNK)


def _parts(moved: Sequence[Row]) -> list[list[str]]:
    step = uid_map.ASKED_TOGETHER
    return [[row["id"] for row in moved[start : start + step]] for start in range(0, len(moved), step)]


def _mark(tx: Tx, inbox_id: str, message_ids: Sequence[str], is_trashed: bool, now: int) -> list[Row]:
    """Returns those that were changed."""
    moved: list[Row] = []
    for start in range(0, len(message_ids), uid_map.ASKED_TOGETHER):
        is_asked, asked = one_of("id", message_ids[start : start + uid_map.ASKED_TOGETHER])
        moved += tx.all(
            f"update messages set is_trashed = :is_trashed where {is_asked} and is_trashed <> :is_trashed"
            f" returning id, thread_id, direction, {COUNTED_AS}",
            is_trashed=int(is_trashed),
            **asked,
        )
    _count(tx, inbox_id, moved, -1 if is_trashed else 1)
    label_changes.record(tx, inbox_id, TRASH, [row["id"] for row in moved], now, is_added=is_trashed)
    return moved


def _count(tx: Tx, inbox_id: str, moved: Sequence[Row], by: int) -> None:
    if not moved:
        return
    counts = Counter(row["counted_as"] for row in moved)
    inboxes.count(
        tx,
        inbox_id,
        inbound=by * counts[INBOUND],
        outbound=by * counts[OUTBOUND],
        blocked=by * counts[BLOCKED],
        junk=by * counts[JUNK],
    )
    by_thread = Counter(row["thread_id"] for row in moved if row["thread_id"])
    for thread_id, count in sorted(by_thread.items()):
        threads.count_listed(tx, thread_id, by * count)
