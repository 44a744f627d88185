"""Says that messages of an inbox are junk or are not: moves them, and records them as examples."""

from collections.abc import Sequence

from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.errors import BadRequest, NothingToDo
from postroom.inward import examine
from postroom.inward.junk import examples, moves
from postroom.mailbox import correspondents, documents, messages
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import OUTBOUND, Message
from postroom.storage.database import Tx


def teach(
    tx: Tx,
    caller: Caller,
    inbox: Inbox,
    taught: Sequence[Message],
    is_junk: bool,
    base_url: str,
    now: int,
) -> None:
    """Move messages of a locked inbox and record them as examples. Messages stopped by a policy stay."""
    for message in taught:
        require_teachable(tx, message)
    action = "message.junk" if is_junk else "message.not_junk"
    for message in taught:
        if is_junk != message.is_junk and not message.is_blocked and not message.is_trashed:
            move = moves.put_into_junk if is_junk else moves.let_in
            tx.ring(*move(tx, inbox, message, base_url, now))
        else:
            moves.record_decision(tx, message, is_junk)
        audit.record_by(tx, caller, action, message.id, now, within=inbox.scope)
    _remember_senders(tx, inbox, taught, is_junk, now)
    examples.record_all(tx, inbox.account_id, teacher_of(caller), [each.id for each in taught], is_junk, now)


def record(tx: Tx, caller: Caller, inbox: Inbox, message_ids: Sequence[str], is_junk: bool, now: int) -> None:
    """Record messages of a locked inbox as examples where they are, except sent ones."""
    taught = [each for each in messages.list_by_ids(tx, message_ids) if _is_teachable(tx, each)]
    for message in taught:
        moves.record_decision(tx, message, is_junk)
    _remember_senders(tx, inbox, taught, is_junk, now)
    examples.record_all(tx, inbox.account_id, teacher_of(caller), [each.id for each in taught], is_junk, now)


def _remember_senders(tx: Tx, inbox: Inbox, taught: Sequence[Message], is_junk: bool, now: int) -> None:
    """Remember the senders of email that passed DMARC. A forged one says nothing against its sender."""
    found = [documents.decode(each.document) for each in taught]
    if is_junk:
        proven = [each for each in found if each.auth is not None and each.auth.dmarc == "pass"]
        correspondents.call_junk(tx, inbox.id, list(map(examine.sender_of, proven)), now)
    else:
        correspondents.call_wanted(tx, inbox.id, list(map(examine.sender_of, found)))


def _is_teachable(tx: Tx, message: Message) -> bool:
    try:
        require_teachable(tx, message)
    except (BadRequest, NothingToDo):
        return False
    return True


def require_teachable(tx: Tx, message: Message) -> None:
    if message.status != messages.RECEIVED or messages.find_direction(tx, message.id) == OUTBOUND:
        raise BadRequest("Only received email can be junk; this message was sent from here.")
    if examine.is_waiting(tx, message.id):
        raise NothingToDo("This message is still being examined. Try again in a moment.")


def teacher_of(caller: Caller) -> str:
    """Return who counts as one teacher: a user, or a key with all keys made from it."""
    return caller.user_id or (caller.lineage[0] if caller.lineage else caller.key_id)
