"""Labels: words that a program puts on messages and finds them by; a thread has those of its messages."""

import re
from collections.abc import Iterable, Sequence

from postroom import limits
from postroom.errors import BadRequest
from postroom.mailbox import inboxes, threads
from postroom.mailbox.folders import flags, label_changes, uid_map
from postroom.mailbox.threads import SEEN, Thread
from postroom.storage.database import Tx, all_of, one_of

ALL_OF_THEM = 2**31
UNREAD = "unread"  # shown as a label, but stored differently
PATTERN = rf"^[^\x00-\x1f\x7f-\x9f]{{1,{limits.LABEL_CHARACTERS}}}$"

# Condition on a message and its thread: unread.
IS_UNREAD = (
    "messages.thread_id = threads.id and messages.direction = 'inbound' and threads.is_read = 0"
    " and messages.created_at > threads.read_through and not exists (select 1 from message_labels as seen"
    " where seen.message_id = messages.id and seen.label = :seen)"
)

_control = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def fold(label: str) -> str:
    """Return the form in which labels are compared."""
    return label.strip().casefold()


def require_valid(labels: Iterable[str], field: str) -> None:
    for label in labels:
        if not 1 <= len(label.strip()) <= limits.LABEL_CHARACTERS or _control.search(label):
            raise BadRequest(
                f"A label has 1 to {limits.LABEL_CHARACTERS} characters and no control characters.",
                field=field,
            )


def change(tx: Tx, thread: Thread, added: Sequence[str], removed: Sequence[str], now: int) -> list[str]:
    """Changes all messages of a thread; removing wins over adding. Returns the thread's labels."""
    wanted, unwanted = _read(added, removed)
    _lock(tx, thread)
    _add(tx, thread, wanted)
    _put_on(tx, thread.inbox_id, wanted, "thread_id = :thread", now, thread=thread.id)
    for label in sorted(unwanted):
        take_off(tx, thread.inbox_id, label, "thread_id = :thread", now, thread=thread.id)
    forget_unused(tx, thread.id)
    return _require_few(tx, thread.id)


def change_of_messages(
    tx: Tx,
    thread: Thread,
    message_ids: Sequence[str],
    added: Sequence[str],
    removed: Sequence[str],
    now: int,
) -> None:
    """Changes only these messages of a thread."""
    wanted, unwanted = _read(added, removed)
    _lock(tx, thread)
    _add(tx, thread, wanted)
    is_asked, asked = one_of("id", message_ids)
    _put_on(tx, thread.inbox_id, wanted, is_asked, now, **asked)
    is_one, named = one_of("message_id", message_ids)
    for label in sorted(unwanted):
        take_off(tx, thread.inbox_id, label, is_one, now, **named)
    forget_unused(tx, thread.id)
    _require_few(tx, thread.id)


def _put_on(tx: Tx, inbox_id: str, wanted: dict[str, str], which: str, now: int, **named: object) -> None:
    for label, shown in wanted.items():
        rows = tx.all(
            "insert into message_labels (message_id, label, shown, thread_id, inbox_id, created_at)"
            f" select id, :label, :shown, thread_id, inbox_id, created_at from messages where {which}"
            " on conflict (message_id, label) do nothing returning message_id",
            label=label,
            shown=shown,
            **named,
        )
        message_ids = [row["message_id"] for row in rows]
        label_changes.record(tx, inbox_id, shown, message_ids, now, is_added=True)
        uid_map.show_labelled(tx, inbox_id, message_ids)
    if wanted:
        tx.run(f"update messages set was_labelled = 1 where was_labelled = 0 and {which}", **named)


def take_off(tx: Tx, inbox_id: str, label: str, which: str, now: int, **named: object) -> None:
    """Call after adding labels, so that a relabelled message enters no other folder in between."""
    rows = tx.all(
        f"delete from message_labels where label = :label and {which} returning message_id, shown",
        label=label,
        **named,
    )
    for shown in {row["shown"] for row in rows}:
        message_ids = [row["message_id"] for row in rows if row["shown"] == shown]
        label_changes.record(tx, inbox_id, shown, message_ids, now, is_added=False)
    uid_map.hide_unlabelled(tx, inbox_id, label, [row["message_id"] for row in rows])


def _lock(tx: Tx, thread: Thread) -> None:
    """Locks in the order that all storing of mail uses."""
    inboxes.lock(tx, thread.inbox_id)
    threads.lock(tx, thread.id)


def _read(added: Sequence[str], removed: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    """Return the labels to add, by their folded form, and those to remove."""
    require_valid(added, "addLabels")
    require_valid(removed, "removeLabels")
    unwanted = {fold(label) for label in removed}
    wanted = {fold(label): label.strip() for label in added}
    return {label: shown for label, shown in wanted.items() if label not in unwanted}, unwanted


def _require_few(tx: Tx, thread_id: str) -> list[str]:
    found = of_threads(tx, [thread_id]).get(thread_id, [])
    if len(found) > limits.LABELS_OF_A_THREAD:
        raise BadRequest(f"A thread has at most {limits.LABELS_OF_A_THREAD} labels.", field="addLabels")
    return found


def add_to_new(tx: Tx, thread: Thread, message_id: str, given: Sequence[str], now: int) -> None:
    """Adds labels to a message that was just stored."""
    if given:
        change_of_messages(tx, thread, [message_id], given, (), now)


def rename(tx: Tx, inbox_id: str, old: str, new: str, shown: str, now: int) -> None:
    """Renames a label on all threads and messages of an inbox; none may have the new one yet."""
    of_old = {"id": inbox_id, "old": old}
    rows = tx.all(
        "select message_id, shown from message_labels where inbox_id = :id and label = :old", **of_old
    )
    for before in {row["shown"] for row in rows}:
        message_ids = [row["message_id"] for row in rows if row["shown"] == before]
        label_changes.record(tx, inbox_id, before, message_ids, now, is_added=False)
        label_changes.record(tx, inbox_id, shown, message_ids, now, is_added=True)
    for table in ("labels", "message_labels"):
        tx.run(
            f"update {table} set label = :new, shown = :shown where inbox_id = :id and label = :old",
            new=new,
            shown=shown,
            **of_old,
        )


def forget_unused(tx: Tx, thread_id: str) -> None:
    """Removes labels from a thread that none of its messages has."""
    tx.run(
        "delete from labels where thread_id = :id and not exists (select 1 from message_labels"
        " where message_labels.thread_id = labels.thread_id and message_labels.label = labels.label)",
        id=thread_id,
    )


def mark_seen(tx: Tx, thread: Thread, message_ids: Sequence[str], is_seen: bool, now: int) -> None:
    """Marks single received messages; the thread is read when all of them are."""
    _lock(tx, thread)
    came_in = _that_came_in(tx, message_ids)
    if not came_in:
        return
    unread = find_unread(tx, came_in)
    changed = [each for each in came_in if (each in unread) == is_seen]
    label_changes.record(tx, thread.inbox_id, UNREAD, changed, now, is_added=not is_seen)
    flags.record_seen(tx, came_in, is_seen)
    if not is_seen:
        _keep_seen(tx, "messages.created_at <= threads.read_through or is_read = 1", thread.id)
        is_one, named = one_of("message_id", came_in)
        tx.run(f"delete from message_labels where label = :seen and {is_one}", seen=SEEN, **named)
        tx.run("update threads set read_through = 0 where id = :id", id=thread.id)
        threads.mark_unread(tx, thread)
        return
    is_one, named = one_of("messages.id", came_in)
    _keep_seen(tx, is_one, thread.id, **named)
    settle_read(tx, thread)


def settle_read(tx: Tx, thread: Thread) -> None:
    """Marks the thread read if no message in it is unread."""
    if not thread.is_read and not find_unread_of_thread(tx, thread.id, 1):
        threads.mark_read(tx, thread, is_read=True)


def record_read(tx: Tx, thread: Thread, is_read: bool, now: int) -> None:
    """Called before a whole thread is marked: records which messages that changes."""
    rows = tx.all(
        "select id from messages where thread_id = :id and direction = 'inbound' order by id", id=thread.id
    )
    came_in = [row["id"] for row in rows]
    unread = set(find_unread_of_thread(tx, thread.id))
    changed = [each for each in came_in if (each in unread) == is_read]
    label_changes.record(tx, thread.inbox_id, UNREAD, changed, now, is_added=not is_read)


def find_unread_of_thread(tx: Tx, thread_id: str, limit: int = ALL_OF_THEM) -> list[str]:
    rows = tx.all(
        f"select messages.id from threads cross join messages where threads.id = :id and {IS_UNREAD}"
        " limit :limit",
        id=thread_id,
        seen=SEEN,
        limit=limit,
    )
    return [row["id"] for row in rows]


def _that_came_in(tx: Tx, message_ids: Sequence[str]) -> list[str]:
    rows = all_of(
        tx, "select id from messages where direction = 'inbound' and :wanted order by id", "id", message_ids
    )
    return [row["id"] for row in rows]


def _keep_seen(tx: Tx, which: str, thread_id: str, **named: object) -> None:
    tx.run(
        "insert into message_labels (message_id, label, shown, thread_id, inbox_id, created_at)"
        " select messages.id, :seen, '', thread_id, messages.inbox_id, messages.created_at"
        " from messages join threads on threads.id = messages.thread_id"
        f" where threads.id = :thread and direction = 'inbound' and ({which})"
        " on conflict (message_id, label) do nothing",
        seen=SEEN,
        thread=thread_id,
        **named,
    )


def of_messages(tx: Tx, message_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the labels of a whole page of messages by one query, sorted."""
    rows = all_of(
        tx,
        "select message_id, shown from message_labels where label <> :seen and :wanted",
        "message_id",
        message_ids,
        seen=SEEN,
    )
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["message_id"], []).append(row["shown"])
    return {message_id: sorted(shown, key=str.casefold) for message_id, shown in found.items()}


def find_unread(tx: Tx, message_ids: Sequence[str]) -> set[str]:
    rows = all_of(
        tx,
        f"select messages.id from messages cross join threads where :wanted and {IS_UNREAD}",
        "messages.id",
        message_ids,
        seen=SEEN,
    )
    return {row["id"] for row in rows}


def _add(tx: Tx, thread: Thread, wanted: dict[str, str]) -> None:
    tx.many(
        "insert into labels (thread_id, label, shown, account_id, pod_id, inbox_id, last_message_at)"
        " values :rows on conflict (thread_id, label) do nothing",
        [
            (
                thread.id,
                label,
                shown,
                thread.account_id,
                thread.pod_id,
                thread.inbox_id,
                thread.last_message_at,
            )
            for label, shown in wanted.items()
        ],
    )


def of_threads(tx: Tx, thread_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the labels of a whole page of threads by one query, sorted."""
    rows = all_of(tx, "select thread_id, shown from labels where :wanted", "thread_id", thread_ids)
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["thread_id"], []).append(row["shown"])
    return {thread_id: sorted(shown, key=str.casefold) for thread_id, shown in found.items()}


def remove_all_of_threads(tx: Tx, thread_ids: Sequence[str]) -> None:
    if thread_ids:
        is_wanted, wanted = one_of("thread_id", thread_ids)
        tx.run(f"delete from labels where {is_wanted}", **wanted)
