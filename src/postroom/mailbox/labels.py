"""Labels: words that a program puts on threads, and finds them by."""

import re
from collections.abc import Iterable, Sequence

from postroom.errors import BadRequest
from postroom.mailbox import threads
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
    threads.lock(tx, thread.id)
    for label in sorted(unwanted):
        tx.run("delete from labels where thread_id = :id and label = :label", id=thread.id, label=label)
    _add(tx, thread, {label: shown for label, shown in wanted.items() if label not in unwanted})
    found = of_threads(tx, [thread.id]).get(thread.id, [])
    if len(found) > LABELS_OF_A_THREAD:
        raise BadRequest(f"A thread has at most {LABELS_OF_A_THREAD} labels.", field="addLabels")
    return found


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
