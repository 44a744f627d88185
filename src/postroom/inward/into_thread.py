"""Finds the thread of an email by what it answers, and puts it there: on arrival, or when it is let in."""

from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from postroom.events import thread_events
from postroom.events.kinds import THREAD_ANSWERED, THREAD_WOKEN
from postroom.events.payload import SystemNotice
from postroom.inward.addressing import participants
from postroom.mailbox import (
    follow_ups,
    holds,
    related,
    thread_digests,
    thread_participants,
    thread_states,
    threads,
)
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.thread_digests import Digest
from postroom.mailbox.thread_work import OPEN
from postroom.mailbox.threads import VERDICTS, Thread
from postroom.storage.database import Tx
from postroom_mail.mime.parse import ParsedMail

_NAMED = "inbox_id = :inbox_id and rfc_message_id = :rfc_message_id and thread_id <> ''"
# An imported mail may have the Message-ID of a received or sent one, which comes first whatever its date.
_OF_ANY_MAIL = (
    "select threads.* from messages join threads on threads.id = messages.thread_id where messages.id ="
    f" coalesce((select id from messages where {_NAMED} and is_imported = 0 order by id limit 1),"
    f" (select id from messages where {_NAMED} order by id limit 1))"
)
_OF_IMPORTED_MAIL = (
    "select threads.* from messages join threads on threads.id = messages.thread_id"
    " where messages.inbox_id = :inbox_id and rfc_message_id = :rfc_message_id and threads.is_imported = 1"
    " order by messages.id limit 1"
)


class Names(Struct, frozen=True):
    """Which emails an email answers, and its participants."""

    in_reply_to: list[str]
    references: list[str]
    participants: list[str]
    from_address: str
    senders: list[str]


class ThreadMatch(Struct, frozen=True):
    """The thread for one more mail. A new thread has to be stored."""

    inbox: Inbox
    names: Names
    thread: Thread
    starts_thread: bool
    is_new_participant: bool
    is_woken: bool = False  # the email ended that the thread was snoozed or done
    is_answer: bool = False  # the thread waited for it


def names_of(mail: ParsedMail) -> Names:
    return Names(
        list(mail.in_reply_to),
        list(mail.references),
        participants(mail),
        mail.from_address,
        list(mail.senders),
    )


def find_thread(
    tx: Tx,
    inbox: Inbox,
    names: Names,
    subject: str,
    now: int,
    digest: Digest,
    is_imported: bool = False,
    is_personal: bool = False,
) -> ThreadMatch:
    """Find the thread that the email joins or starts, and count the email in it. `digest` is the email's.

    An email that a person wrote is the answer that the thread waits for: no nudge follows it.
    """
    joined = resolve(tx, inbox.id, names.in_reply_to, names.references, is_imported)
    if joined is None:
        own = thread_digests.encode(digest)
        thread = threads.new(inbox, subject, is_read=False, now=now, is_imported=is_imported, digest=own)
        return ThreadMatch(inbox, names, thread, starts_thread=True, is_new_participant=False)
    is_new_participant = not thread_participants.is_one(tx, joined.id, names.from_address)
    if not is_imported:
        thread_participants.add_all(tx, [(joined.id, address) for address in names.participants])
    whole = thread_digests.append(joined.digest, digest)
    thread = threads.add_message(tx, joined, is_read=False, now=now, is_imported=is_imported, digest=whole)
    is_woken = thread.state != OPEN and not is_imported
    if is_woken:
        thread = thread_states.put(tx, thread, OPEN)
    is_from_here = names.from_address in inbox.mailboxes
    is_answer = thread.awaiting_until is not None and is_personal and not is_imported and not is_from_here
    if is_answer:
        thread = follow_ups.end(tx, thread, follow_ups.ANSWERED)
    return ThreadMatch(inbox, names, thread, False, is_new_participant, is_woken, is_answer)


def notices_of_threads(places: Iterable[tuple[ThreadMatch | None, int]]) -> list[SystemNotice]:
    """Return the events of these threads, with when their email came: woken, answered."""
    found = []
    for place, now in places:
        if place is not None and place.is_woken:
            found.append(thread_events.notice(THREAD_WOKEN, place.thread, now, reason="message"))
        if place is not None and place.is_answer:
            found.append(thread_events.notice(THREAD_ANSWERED, place.thread, now))
    return found


def resolve(
    tx: Tx,
    inbox_id: str,
    in_reply_to: Iterable[str],
    references: Iterable[str],
    is_imported: bool = False,
) -> Thread | None:
    """Find the thread by In-Reply-To, then References, only among the messages of this inbox.

    Imported mail joins only threads of imported mail: anyone with a key can import mail in any name.
    """
    found = _OF_IMPORTED_MAIL if is_imported else _OF_ANY_MAIL
    for rfc_message_id in (*in_reply_to, *references):
        row = tx.one(found, inbox_id=inbox_id, rfc_message_id=rfc_message_id)
        if row is not None:
            return Thread.from_row(row)
    return None


def store_new_threads(tx: Tx, placed: Sequence[tuple[ThreadMatch, Document]]) -> None:
    """Store the new threads. The caller counts them in their inboxes."""
    started = [
        structs.replace(place, thread=structs.replace(place.thread, verdict=VERDICTS.index(document.verdict)))
        for place, document in placed
        if place.starts_thread
    ]
    threads.add_all(tx, [place.thread for place in started])
    thread_participants.add_all(
        tx,
        [
            (place.thread.id, address)
            for place in started
            if not place.thread.is_imported  # it would make a forged sender look like one of the thread
            for address in place.names.participants
        ],
    )


def record_stored(tx: Tx, stored: Sequence[tuple[ThreadMatch, Document]]) -> None:
    """Updates the threads of emails just stored, and those of emails they name."""
    related.record_all(
        tx,
        [
            related.Placed(
                place.inbox.id,
                place.thread.id,
                document.rfc_message_id,
                related.names_of(place.names.in_reply_to, place.names.references),
            )
            for place, document in stored
        ],
    )
    for place, document in stored:
        if not place.starts_thread:
            threads.record_verdict(tx, place.thread.id, document.verdict)
            holds.raise_risk(tx, place.thread.id, document.verdict)
