"""Labels: words that a program puts on threads, and finds them by."""

import re
from collections.abc import Iterable, Sequence

from postroom.errors import BadRequest
from postroom.mailbox import inboxes, threads
from postroom.mailbox.folders import places
from postroom.mailbox.threads import Thread
from postroom.storage.database import Tx, one_of

MAX_CHARACTERS = 50
LABELS_OF_A_THREAD = 20
PATTERN = r"^[^\x00-\x1f\x7f-\x9f]{1,50}$"

_control = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def fold(label: str) -> str:
    """As labels are compared."""
    return label.strip().casefold()


def require_valid(labels: Iterable[str], field: str) -> None:
    for label in labels:
        if not 1 <= len(label.strip()) <= MAX_CHARACTERS or _control.search(label):
            raise BadRequest(
                f"A label has 1 to {MAX_CHARACTERS} characters and no control characters.", field=field
            )


def change(tx: Tx, thread: Thread, added: Sequence[str], removed: Sequence[str]) -> list[str]:
    """Gives those it has then. What is both added and removed is removed."""
    require_valid(added, "addLabels")
    require_valid(removed, "removeLabels")
    wanted = {fold(label): label.strip() for label in added}
    unwanted = {fold(label) for label in removed}
    inboxes.lock(tx, thread.inbox_id)  # in the order that everything keeps to that stores mail
    threads.lock(tx, thread.id)
    gone = [label for label in sorted(unwanted) if _remove(tx, thread, label)]
    new = _add(tx, thread, {label: shown for label, shown in wanted.items() if label not in unwanted})
    places.label_thread(tx, thread.inbox_id, thread.id, new, gone)
    found = of_threads(tx, [thread.id]).get(thread.id, [])
    if len(found) > LABELS_OF_A_THREAD:
        raise BadRequest(f"A thread has at most {LABELS_OF_A_THREAD} labels.", field="addLabels")
    return found


def _remove(tx: Tx, thread: Thread, label: str) -> bool:
    sql = "delete from labels where thread_id = :id and label = :label"
    return tx.run(sql, id=thread.id, label=label) == 1


def _add(tx: Tx, thread: Thread, wanted: dict[str, str]) -> dict[str, str]:
    """Gives those that it did not have before."""
    added = tx.many(
        "insert into labels (thread_id, label, shown, account_id, pod_id, inbox_id, last_message_at)"
        " values :rows on conflict (thread_id, label) do nothing returning label, shown",
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
    return {row["label"]: row["shown"] for row in added}


def of_threads(tx: Tx, thread_ids: Sequence[str]) -> dict[str, list[str]]:
    """Those of a whole page, in one query, in the order of their letters."""
    if not thread_ids:
        return {}
    is_wanted, wanted = one_of("thread_id", thread_ids)
    rows = tx.all(f"select thread_id, shown from labels where {is_wanted}", **wanted)
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["thread_id"], []).append(row["shown"])
    return {thread_id: sorted(shown, key=str.casefold) for thread_id, shown in found.items()}


def remove_all_of_threads(tx: Tx, thread_ids: Sequence[str]) -> None:
    if thread_ids:
        is_wanted, wanted = one_of("thread_id", thread_ids)
        tx.run(f"delete from labels where {is_wanted}", **wanted)
