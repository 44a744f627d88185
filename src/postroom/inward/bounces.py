"""A bounce or a complaint to its effects, if it is about a mail that this inbox really sent."""

from postroom.clock import DAY
from postroom.events import kinds
from postroom.events.announce import announce
from postroom.events.payload import Fate, News
from postroom.mail import bounce
from postroom.mail.address import normalize
from postroom.mail.bounce import RecipientReport, Report
from postroom.mail.return_path import BouncePath
from postroom.mailbox import attachments, documents, messages
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.queue import deliveries, suppressions
from postroom.queue.deliveries import Delivery
from postroom.storage.database import Tx

MAX_AGE = 7 * DAY


def apply_report(
    tx: Tx, inbox: Inbox, report: Report, path: BouncePath | None, base_url: str, now: int
) -> list[str]:
    """Gives the bells to ring. What matches no mail of ours has no effect: it may be forged."""
    message = find_sent(tx, inbox, report, path, now)
    if message is None:
        return []
    messages.lock(tx, message.id)
    rung: list[str] = []
    done: set[str] = set()
    for reported in report.recipients:
        delivery = find_delivery(tx, message, reported, path)
        if delivery is not None and delivery.id not in done:
            done.add(delivery.id)
            rung += apply_to_recipient(tx, inbox, message, delivery, report.kind, reported, base_url, now)
    return rung


def find_sent(tx: Tx, inbox: Inbox, report: Report, path: BouncePath | None, now: int) -> Message | None:
    """By the signed return path, else by our own Message-ID; only of this inbox, and not too old."""
    if path is not None:
        message = messages.find(tx, path.message_id)
        return message if message is not None and message.inbox_id == inbox.id else None
    if not report.original_message_id:
        return None
    return messages.find_outbound(tx, inbox.id, report.original_message_id, since=now - MAX_AGE)


def find_delivery(
    tx: Tx, message: Message, reported: RecipientReport, path: BouncePath | None
) -> Delivery | None:
    sent = deliveries.list_of_message(tx, message.id)
    if path is not None:
        return next((delivery for delivery in sent if delivery.position == path.recipient_index), None)
    named = {
        normalize(address) for address in (reported.final_recipient, reported.original_recipient) if address
    }
    return next((delivery for delivery in sent if normalize(delivery.target) in named), None)


def apply_to_recipient(
    tx: Tx,
    inbox: Inbox,
    message: Message,
    delivery: Delivery,
    kind: str,
    reported: RecipientReport,
    base_url: str,
    now: int,
) -> list[str]:
    reason = reported.diagnostic or reported.status or reported.action
    fate = Fate(delivery.target, reason)
    if kind == "complaint":
        suppressions.add(tx, inbox.account_id, delivery.target, suppressions.COMPLAINT, now)
        return _tell(tx, inbox, message, kinds.MESSAGE_COMPLAINED, fate, base_url, now)
    if kind != "bounce" or not bounce.is_hard(reported.status, reported.diagnostic):
        return []
    if not deliveries.mark_bounced(tx, delivery, reason, now):
        return []
    if bounce.is_about_address(bounce.reply_code(reported.diagnostic), reported.status, reported.diagnostic):
        suppressions.add(tx, inbox.account_id, delivery.target, suppressions.BOUNCE, now)
    deliveries.settle(tx, message.id)
    return _tell(tx, inbox, message, kinds.MESSAGE_BOUNCED, fate, base_url, now)


def _tell(
    tx: Tx, inbox: Inbox, message: Message, kind: str, fate: Fate, base_url: str, now: int
) -> list[str]:
    files = attachments.list_of_messages(tx, [message.id]).get(message.id, [])
    document = documents.decode(message.document)
    return announce(tx, News(inbox.account_id, inbox.pod_id, kind, document, files, now, fate), base_url)
