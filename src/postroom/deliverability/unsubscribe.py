"""A recipient unsubscribes by the link in an email: the address is suppressed, once."""

from postroom.accounts import accounts, secret_values
from postroom.errors import NotFound
from postroom.events import kinds
from postroom.events.announce import announce
from postroom.events.payload import DeliveryFailure, NewEvent
from postroom.mailbox import attachments, documents, follow_ups, inboxes, messages, threads
from postroom.outward.reviewers import REVIEW_PATH
from postroom.queue import suppressions
from postroom.storage.database import Tx
from postroom_mail.writing import unsubscribe_link
from postroom_mail.writing.unsubscribe_link import UNSUBSCRIBE_PATH, Unsubscription

LINKS_IN_MAILS = (REVIEW_PATH, UNSUBSCRIBE_PATH)  # pages that need no session: the link is the proof
REASON = "unsubscribed by the link in an email"


def find_wish(tx: Tx, token: str) -> Unsubscription:
    wish = unsubscribe_link.decode(secret_values.get(tx, secret_values.RETURN_PATH), token)
    if wish is None or accounts.find(tx, wish.account_id) is None:
        raise NotFound("This link is not valid: it is incomplete, or its sender is gone.")
    return wish


def is_done(tx: Tx, token: str) -> bool:
    wish = find_wish(tx, token)
    return suppressions.find(tx, wish.account_id, wish.address) is not None


def unsubscribe(tx: Tx, token: str, base_url: str, now: int) -> None:
    wish = find_wish(tx, token)
    if suppressions.find(tx, wish.account_id, wish.address) is not None:
        return
    kind = suppressions.UNSUBSCRIBED
    suppressions.add(tx, wish.account_id, wish.address, kind, now, wish.message_id, REASON)
    end_nudges(tx, wish)
    emit(tx, wish, base_url, now)


def end_nudges(tx: Tx, wish: Unsubscription) -> None:
    """End the nudges: a recipient who unsubscribed gets no reminder."""
    message = messages.find(tx, wish.message_id)
    thread = None if message is None else threads.find(tx, message.thread_id)
    if thread is not None and thread.account_id == wish.account_id:
        follow_ups.end(tx, thread, follow_ups.UNSUBSCRIBED)


def emit(tx: Tx, wish: Unsubscription, base_url: str, now: int) -> None:
    """Announces it as an event, if the email still exists."""
    message = messages.find(tx, wish.message_id)
    inbox = None if message is None else inboxes.find(tx, message.inbox_id)
    if message is None or inbox is None or inbox.account_id != wish.account_id:
        return
    files = attachments.list_of_messages(tx, [message.id]).get(message.id, [])
    document, failure = documents.decode(message.document), DeliveryFailure(wish.address, REASON)
    kind = kinds.MESSAGE_UNSUBSCRIBED
    news = NewEvent(inbox.account_id, inbox.pod_id, kind, document, files, now, failure)
    tx.ring(*announce(tx, news, base_url))
