"""Sets and lifts legal holds, with their events: every way to do it goes through here."""

from postroom.accounts.keys import Caller
from postroom.events import kinds
from postroom.events.announce import announce_notice
from postroom.events.payload import SystemNotice
from postroom.mailbox import inboxes, legal_holds
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx


def hold_inbox(tx: Tx, caller: Caller, inbox_id: str, is_held: bool, now: int) -> None:
    inbox = inboxes.lock(tx, inbox_id)  # a deletion under way sees the hold, or ends before it
    legal_holds.put(tx, legal_holds.INBOX, inbox.id, is_held)
    if bool(inbox.legal_hold) != is_held:
        _announce(tx, caller, inbox, "", is_held, now)


def hold_thread(tx: Tx, caller: Caller, inbox_id: str, thread_id: str, is_held: bool, now: int) -> Inbox:
    """Returns the thread's inbox, locked."""
    inbox = inboxes.lock(tx, inbox_id)  # a deletion under way sees the hold, or ends before it
    legal_holds.put(tx, legal_holds.THREAD, thread_id, is_held)
    _announce(tx, caller, inbox, thread_id, is_held, now)
    return inbox


def _announce(tx: Tx, caller: Caller, inbox: Inbox, thread_id: str, is_held: bool, now: int) -> None:
    kind = kinds.LEGAL_HOLD_SET if is_held else kinds.LEGAL_HOLD_LIFTED
    about = SystemNotice(
        inbox.account_id,
        inbox.pod_id,
        kind,
        now,
        inbox_id=inbox.id,
        thread_id=thread_id,
        actor=caller.actor,
    )
    announce_notice(tx, about)
