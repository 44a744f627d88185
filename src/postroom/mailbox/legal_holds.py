"""Legal holds: what an inbox or a thread keeps until somebody lifts the hold, against every deletion."""

from collections.abc import Iterable

from postroom.accounts.scope import Scope
from postroom.errors import LegalHold
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx, all_of, update

INBOX, THREAD = "inbox", "thread"
TABLES = {INBOX: "inboxes", THREAD: "threads"}
NOT_OF_THREAD = (
    "not exists (select 1 from threads where threads.id = messages.thread_id and threads.legal_hold = 1)"
)


def put(tx: Tx, kind: str, held_id: str, is_held: bool) -> None:
    update(tx, TABLES[kind], held_id, legal_hold=int(is_held))


def find_held(tx: Tx, thread_ids: Iterable[str]) -> set[str]:
    """Return those threads that have their own hold."""
    rows = all_of(tx, "select id from threads where :wanted and legal_hold = 1", "id", sorted(thread_ids))
    return {row["id"] for row in rows}


def require_free(tx: Tx, inbox: Inbox, thread_ids: Iterable[str]) -> None:
    """Raise LegalHold if the inbox or one of these threads is held. The inbox must be locked."""
    if inbox.legal_hold:
        raise LegalHold(legal_hold_message(INBOX, inbox.id), inboxId=inbox.id)
    for thread_id in sorted(find_held(tx, thread_ids))[:1]:
        raise LegalHold(legal_hold_message(THREAD, thread_id), threadId=thread_id)


def require_may_leave(tx: Tx, thread_id: str) -> None:
    """Raise LegalHold if a thread is held: what is taken out of it would be kept no longer."""
    for held_id in find_held(tx, [thread_id] if thread_id else []):
        raise LegalHold(legal_hold_message(THREAD, held_id), threadId=held_id)


def require_all_free(tx: Tx, inbox: Inbox) -> None:
    """Raise LegalHold if the inbox or any thread in it is held."""
    require_free(tx, inbox, [])
    held = tx.one(
        "select id from threads where account_id = :account_id and inbox_id = :id and legal_hold = 1 limit 1",
        account_id=inbox.account_id,
        id=inbox.id,
    )
    if held is not None:
        raise LegalHold(legal_hold_message(THREAD, held["id"]), threadId=held["id"])


def require_free_account(tx: Tx, account_id: str) -> None:
    """Raise LegalHold if any inbox or thread of the account is held."""
    for kind, table in TABLES.items():
        held = tx.one(
            f"select id from {table} where account_id = :id and legal_hold = 1 limit 1", id=account_id
        )
        if held is not None:
            raise LegalHold(legal_hold_message(kind, held["id"]), **{f"{kind}Id": held["id"]})


def require_free_contact(tx: Tx, scope: Scope, address: str) -> None:
    """Raise LegalHold if an inbox that knows the address, or a thread with it, is held."""
    owner, owner_id = scope.owner
    known = f"contacts.{owner} = :owner_id and contacts.address = :address"
    joined = "contact_threads.inbox_id = contacts.inbox_id and contact_threads.address = contacts.address"
    for kind, sql in (
        (INBOX, f"select id from inboxes join contacts on contacts.inbox_id = inboxes.id where {known}"),
        (
            THREAD,
            f"select threads.id from contacts join contact_threads on {joined}"
            f" join threads on threads.id = contact_threads.thread_id where {known}",
        ),
    ):
        held = tx.one(f"{sql} and legal_hold = 1 limit 1", owner_id=owner_id, address=address)
        if held is not None:
            raise LegalHold(legal_hold_message(kind, held["id"]), **{f"{kind}Id": held["id"]})


def legal_hold_message(kind: str, held_id: str) -> str:
    return (
        f"The {kind} {held_id} has a legal hold: nothing in it is deleted. Set its legalHold to false first."
    )
