"""Events about a thread and no message: assigned, noted, snoozed, woken, done."""

from msgspec import UNSET

from postroom.accounts.actors import Actor
from postroom.clock import to_iso
from postroom.events.payload import EventThread, SystemNotice
from postroom.mailbox.thread_work import DONE
from postroom.mailbox.threads import Thread


def notice(
    kind: str,
    thread: Thread,
    now: int,
    *,
    actor: Actor | None = None,
    reason: str = "",
    note_id: str = "",
) -> SystemNotice:
    """Return the notice of a changed thread. `reason`, time or message, says why it was woken."""
    return SystemNotice(
        thread.account_id,
        thread.pod_id,
        kind,
        now,
        inbox_id=thread.inbox_id,
        reason=reason or UNSET,
        actor=actor or UNSET,
        thread_id=thread.id,
        thread=EventThread(
            assignee_id=thread.assignee_id,
            snoozed_until=None if thread.snoozed_until is None else to_iso(thread.snoozed_until),
            is_done=thread.state == DONE,
            note_id=note_id or UNSET,
        ),
    )
