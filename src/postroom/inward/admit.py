"""Mail to an inbox under policy: blocked until its sender is known, then let in or left blocked."""

import msgspec

from postroom.accounts.rules import policy
from postroom.accounts.rules.policy import INBOUND, PolicyRefusal
from postroom.clock import to_iso
from postroom.events import event_log
from postroom.events.announce import announce, announce_all, count_unannounced
from postroom.events.kinds import MESSAGE_BLOCKED, MESSAGE_JUNK, MESSAGE_RECEIVED
from postroom.events.payload import NewEvent
from postroom.inward import calendar_changes, into_thread, screening
from postroom.inward.genuine import is_genuine
from postroom.inward.into_thread import Names
from postroom.inward.rules.apply import LetIn, apply_all
from postroom.mailbox import attachments, correspondents, documents, inboxes, messages, thread_digests
from postroom.mailbox.documents import Document
from postroom.mailbox.folders import uid_map
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.mailbox.search import indexing, removals
from postroom.storage.database import Tx
from postroom_mail.mime.parse import MAX_SENDERS


def keep(tx: Tx, kept: list[tuple[str, Names]]) -> None:
    """Stores pairs of message id and names."""
    tx.many(
        "insert into blocked_mails (message_id, names) values :rows",
        [(message_id, msgspec.json.encode(names).decode()) for message_id, names in kept],
    )


def find_refusal(tx: Tx, inbox: Inbox, document: Document, senders: list[str]) -> PolicyRefusal | None:
    """Return the refusal, if any: every From address must pass.

    An email without one passes no allow list, one with too many no list at all.
    """
    if len(senders) > MAX_SENDERS and policy.find_modes(tx, INBOUND, [inbox.scope]):
        return PolicyRefusal(inbox.scope, senders[0], None)
    asked = [(inbox.scope, senders or [""])]
    refusals = policy.find_refusals(tx, INBOUND, asked, meets_allow=is_genuine(document))
    return refusals[0] if refusals else None


def decide(
    tx: Tx,
    inbox: Inbox,
    message: Message,
    document: Document,
    keeps_junk_apart: bool,
    base_url: str,
    now: int,
) -> list[str]:
    """Lets in an email that waited for its examination, blocks it or junks it. Returns the bells to ring."""
    names = get_names(tx, message.id)
    refusal = find_refusal(tx, inbox, document, names.senders)
    if refusal is None and document.junk is not None and document.junk.is_junk and keeps_junk_apart:
        inboxes.count(tx, inbox.id, junk=1)
        return put_into_junk(tx, inbox, document, base_url, now)
    if refusal is None:
        return let_in(tx, inbox, document, names, message.created_at, base_url, now)
    inboxes.count(tx, inbox.id, blocked=1)
    uid_map.move(tx, inbox.id, message.id, uid_map.JUNK)
    policy.record_stop(tx, policy.BLOCKED, INBOUND, refusal, now, message.id)
    return emit(tx, inbox, MESSAGE_BLOCKED, document, base_url, now)


def put_into_junk(tx: Tx, inbox: Inbox, document: Document, base_url: str, now: int) -> list[str]:
    """Put an email into Junk, in no thread, and return the channels to notify.

    The caller counts, and has kept its names.
    """
    aside = msgspec.structs.replace(document, thread_id="", new_participant=False)
    removals.enqueue_removed(tx, [document.id])
    messages.move_to_junk(tx, aside)
    indexing.enqueue_all(tx, [document.id])
    uid_map.move(tx, inbox.id, document.id, uid_map.JUNK)
    return emit(tx, inbox, MESSAGE_JUNK, aside, base_url, now)


def release(tx: Tx, inbox: Inbox, message: Message, base_url: str, now: int) -> list[str]:
    """Lets it in as if it came now, whatever the policy says. Returns the bells to ring."""
    names = get_names(tx, message.id)
    inboxes.count(tx, inbox.id, blocked=-1)
    refusal = PolicyRefusal(inbox.scope, names.from_address, None)
    policy.record_stop(tx, policy.RELEASED, INBOUND, refusal, now, message.id)
    document = msgspec.structs.replace(documents.decode(message.document), created_at=to_iso(now))
    return let_in(tx, inbox, document, names, now, base_url, now)


def let_in(
    tx: Tx, inbox: Inbox, document: Document, names: Names, came_at: int, base_url: str, now: int
) -> list[str]:
    """Puts it into its thread, counted and announced like any other mail; an invitation into its calendar."""
    inboxes.count(tx, inbox.id, inbound=1)
    objects = calendar_changes.find_kept(tx, document.id)
    tx.run("delete from blocked_mails where message_id = :id", id=document.id)
    files = attachments.list_of_messages(tx, [document.id]).get(document.id, [])
    own = thread_digests.of_inbox(inbox)
    digest = thread_digests.of_document(document, bool(files), came_at, own)
    place = into_thread.find_thread(
        tx, inbox, names, document.subject, came_at, digest, is_personal=document.category == "personal"
    )
    into_thread.store_new_threads(tx, [(place, document)])
    if place.starts_thread:
        inboxes.count(tx, inbox.id, new_threads=1, unread=1)
    correspondents.add(tx, [(inbox.id, names.from_address, is_genuine(document))], came_at)
    if document.auth is not None and document.auth.dmarc == "pass" and is_genuine(document):
        correspondents.mark_verified(tx, inbox.id, names.from_address, came_at)
    screening.record_name(tx, names.from_address, document)
    threaded = msgspec.structs.replace(
        document, thread_id=place.thread.id, new_participant=place.is_new_participant
    )
    removals.enqueue_removed(tx, [document.id])
    messages.let_in(tx, threaded, came_at)
    calendar_changes.apply(tx, inbox, threaded, objects, now)
    uid_map.move(tx, inbox.id, document.id, uid_map.INBOX)
    indexing.enqueue_all(tx, [document.id])
    into_thread.record_stored(tx, [(place, threaded)])
    announce_all(tx, into_thread.notices_of_threads([(place, now)]), base_url)
    ruled = apply_all(tx, [LetIn(inbox, threaded, files, came_at)], now)[0]
    if ruled.is_hidden:
        news = NewEvent(inbox.account_id, inbox.pod_id, MESSAGE_RECEIVED, ruled.document, files, now)
        count_unannounced(tx, [news])
        return [event_log.bell(inbox.account_id)]
    return emit(tx, inbox, MESSAGE_RECEIVED, ruled.document, base_url, now)


def get_names(tx: Tx, message_id: str) -> Names:
    row = tx.one("select names from blocked_mails where message_id = :id", id=message_id)
    assert row is not None, "a blocked mail has its names kept"
    return msgspec.json.decode(row["names"], type=Names)


def emit(tx: Tx, inbox: Inbox, kind: str, document: Document, base_url: str, now: int) -> list[str]:
    files = attachments.list_of_messages(tx, [document.id]).get(document.id, [])
    return announce(tx, NewEvent.of(inbox, kind, document, files, now), base_url)
