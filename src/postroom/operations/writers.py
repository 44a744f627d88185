"""Who has the reply to a thread open: reported by the pages, and shown to others who have it open too."""

from postroom.accounts.keys import Caller
from postroom.mailbox import threads, writers
from postroom.storage.database import Tx


def write_reply(tx: Tx, caller: Caller, thread_id: str, person: str, name: str, now: int) -> list[str]:
    """Record that a person has the reply open, and return the names of all others who have."""
    thread = threads.get(tx, caller.scope, thread_id)
    writers.record(tx, thread.id, person, name, now)
    return writers.list_others(tx, thread.id, person, now)


def stop_writing(tx: Tx, caller: Caller, thread_id: str, person: str, now: int) -> None:
    """Record that the reply is sent, so that nobody else sees it as being written."""
    writers.remove(tx, threads.get(tx, caller.scope, thread_id).id, person)
