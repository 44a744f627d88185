"""What an inbox knows of the sender of an email, and why its content alone cannot make it junk."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.inward.into_thread import Names
from postroom.inward.junk.weighing import Evidence, SenderHistory
from postroom.mailbox import correspondents
from postroom.mailbox.correspondents import CALLED_JUNK, NO_JUNK, KnownSince
from postroom.queue import deliveries
from postroom.storage.database import Tx, all_of
from postroom_mail.mime.parse import MAX_REFERENCES

ANSWER, CORRESPONDENT, ALLOWED = "answer", "correspondent", "allow_rule"
NOTHING_KNOWN, FROM_INSIDE = SenderHistory(), SenderHistory(exempt="from_inside")


class JunkSender(Struct, frozen=True):
    """What an examination knows of a sender. Without `names` the email could not be read."""

    names: Names | None
    is_genuine: bool
    came_at: int


def find_sender_history(tx: Tx, inbox: Scope, sender: JunkSender, evidence: Evidence) -> SenderHistory:
    if sender.names is None:
        return NOTHING_KNOWN
    if evidence.is_from_inside:
        return FROM_INSIDE
    answered = (*sender.names.in_reply_to, *sender.names.references)
    return find_history(tx, inbox, sender.names.senders, answered, sender.is_genuine, sender.came_at)


def find_history(
    tx: Tx, inbox: Scope, senders: Sequence[str], answered: Sequence[str], is_genuine: bool, now: int
) -> SenderHistory:
    """Return the history of the sender.

    `senders` are all From addresses, `answered` the Message-IDs that the email names. A sender that may be
    forged is not known, and only its answers count: it has read what it answers.
    """
    assert inbox.inbox_id is not None
    if is_answer(tx, inbox.inbox_id, answered):
        return SenderHistory(False, ANSWER)
    if not (senders and is_genuine):
        return SenderHistory()
    known = correspondents.list_known(tx, inbox.inbox_id, senders)
    history = _of_known([known.get(each) for each in senders], now)
    if policy.are_allowed(tx, inbox, senders):
        return replace(history, exempt=ALLOWED)
    if deliveries.wrote_to_all(tx, inbox.inbox_id, senders):
        return replace(history, exempt=CORRESPONDENT)
    return history


def _of_known(known: Sequence[KnownSince | None], now: int) -> SenderHistory:
    """Return what is known of all senders together. One whose email was junk is not known by it."""
    return SenderHistory(
        is_known=all(_wrote_before(each, now) for each in known),
        is_new=not all(_wrote_before(each, now - DAY) for each in known),
        sends_junk=any(each is not None and each.junk == CALLED_JUNK for each in known),
    )


def _wrote_before(known: KnownSince | None, now: int) -> bool:
    return known is not None and known.junk == NO_JUNK and (known.first_at is None or known.first_at < now)


def is_answer(tx: Tx, inbox_id: str, answered: Sequence[str]) -> bool:
    """Return whether one of these was sent by this inbox."""
    found = all_of(
        tx,
        "select 1 as found from messages where inbox_id = :inbox_id and :wanted and direction = 'outbound'"
        " and is_imported = 0 limit 1",
        "rfc_message_id",
        list(dict.fromkeys(answered))[:MAX_REFERENCES],
        inbox_id=inbox_id,
    )
    return bool(found)
