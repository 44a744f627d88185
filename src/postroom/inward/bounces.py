"""Applies a bounce or a complaint, if it is about an email that was really sent."""

from msgspec import Struct

from postroom.clock import DAY
from postroom.events import kinds
from postroom.events.announce import announce
from postroom.events.payload import DeliveryFailure, NewEvent
from postroom.inward.attribute import About
from postroom.mailbox import attachments, documents, follow_ups, inboxes, messages, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import Message
from postroom.queue import deliveries, suppressions
from postroom.queue.deliveries import Delivery
from postroom.queue.providers import counts
from postroom.queue.providers.counts import CountedHour, ProviderCount
from postroom.storage.database import Tx
from postroom_mail.mime.address import normalize
from postroom_mail.reports.report import RecipientReport, Report

MAX_AGE = 7 * DAY
LOST = (deliveries.BOUNCED, deliveries.FAILED, deliveries.CANCELLED)  # no answer comes from them


class SentMail(Struct, frozen=True):
    """An email that a report is about, and the inbox that sent it."""

    message: Message
    inbox: Inbox


def apply_report(
    tx: Tx, inbox: Inbox, report: Report, about: About | None, base_url: str, now: int
) -> list[str]:
    """Returns the bells to ring. A report not proven for an email of ours has no effect: it may be forged."""
    sent = find_sent(tx, inbox, report, about, now)
    if sent is None or report.kind == "other":
        return []
    messages.lock(tx, sent.message.id)
    recipients = deliveries.list_of_message(tx, sent.message.id)
    if report.kind == "complaint":
        blamed = find_blamed(recipients, report, about)
        reason = report.feedback_type or "abuse"
        return [bell for each in blamed for bell in apply_complaint(tx, sent, each, reason, base_url, now)]
    rung: list[str] = []
    for delivery, reported in match(recipients, report, about):
        rung += apply_to_recipient(tx, sent, delivery, reported, base_url, now)
    return rung


def find_sent(tx: Tx, inbox: Inbox, report: Report, about: About | None, now: int) -> SentMail | None:
    """Find the email by what the report proves, in the same account.

    A bounce is also matched by Message-ID, in this inbox.
    """
    if about is not None:
        message = messages.find(tx, about.message_id)
        owner = None if message is None else inboxes.find(tx, message.inbox_id)
        if message is None or owner is None or owner.account_id != inbox.account_id:
            return None
        return SentMail(message, owner)
    if report.kind == "complaint" or not report.original_message_id:
        return None
    found = messages.find_outbound(tx, inbox.id, report.original_message_id, since=now - MAX_AGE)
    return None if found is None else SentMail(found, inbox)


def match(
    sent: list[Delivery], report: Report, about: About | None
) -> list[tuple[Delivery, RecipientReport]]:
    """Pair each recipient with what is reported of it; failures first, since they count."""
    reported = sorted(report.recipients, key=lambda each: not each.is_failed)
    if about is not None and about.position is not None:
        return [(each, said_of(each, reported)) for each in at_position(sent, about.position) if reported]
    found: dict[str, tuple[Delivery, RecipientReport]] = {}
    for each in reported:
        delivery = find_named(sent, each)
        if delivery is not None:
            found.setdefault(delivery.id, (delivery, each))
    return list(found.values())


def find_named(sent: list[Delivery], reported: RecipientReport) -> Delivery | None:
    named = {
        normalize(address) for address in (reported.final_recipient, reported.original_recipient) if address
    }
    return next((delivery for delivery in sent if normalize(delivery.target) in named), None)


def said_of(delivery: Delivery, reported: list[RecipientReport]) -> RecipientReport:
    """Return the report that names this address; else the first one, as the email may have been forwarded."""
    return next((each for each in reported if find_named([delivery], each) is not None), reported[0])


def at_position(sent: list[Delivery], position: int) -> list[Delivery]:
    return [delivery for delivery in sent if delivery.position == position]


def find_blamed(sent: list[Delivery], report: Report, about: About | None) -> list[Delivery]:
    """Return who complained: the recipient that the path or the report names, or the only one."""
    if about is not None and about.position is not None:
        return at_position(sent, about.position)
    if report.recipients:
        named = (find_named(sent, each) for each in report.recipients)
        return list({delivery.id: delivery for delivery in named if delivery is not None}.values())
    return sent if len(sent) == 1 else []


def apply_complaint(
    tx: Tx, sent: SentMail, delivery: Delivery, reason: str, base_url: str, now: int
) -> list[str]:
    account_id, kind = sent.inbox.account_id, suppressions.COMPLAINT
    suppressions.add(tx, account_id, delivery.target, kind, now, sent.message.id, reason)
    rung = _emit(tx, sent, kinds.MESSAGE_COMPLAINED, DeliveryFailure(delivery.target, reason), base_url, now)
    _count(tx, sent, delivery, ProviderCount(complained=1), now)
    return rung


def apply_to_recipient(
    tx: Tx, sent: SentMail, delivery: Delivery, reported: RecipientReport, base_url: str, now: int
) -> list[str]:
    """Record the report. A failure is a bounce, whatever its status code; a delay is only recorded."""
    if not reported.is_failed:
        if reported.action == "delayed":
            deliveries.record_last_word(tx, delivery, reported.last_word)
        return []
    if not deliveries.mark_bounced(tx, delivery, reported.last_word, now):
        return []
    suppressions.add_after_failure(tx, delivery, reported.fault, reported.last_word, now)
    deliveries.settle(tx, sent.message.id)
    end_expectation(tx, sent.message)
    rung = _emit(
        tx, sent, kinds.MESSAGE_BOUNCED, DeliveryFailure(delivery.target, reported.last_word), base_url, now
    )
    _count(tx, sent, delivery, ProviderCount(bounced=1), now)
    return rung


def end_expectation(tx: Tx, message: Message) -> None:
    """Stop expecting a reply to an email that bounced from all recipients. No nudge follows it."""
    is_left = any(each.state not in LOST for each in deliveries.list_of_message(tx, message.id))
    thread = None if is_left else threads.find(tx, message.thread_id)
    if thread is not None and thread.awaiting_message == message.id:
        follow_ups.end(tx, thread, follow_ups.BOUNCED)


def _count(tx: Tx, sent: SentMail, delivery: Delivery, counted: ProviderCount, now: int) -> None:
    """Called after the event, whose lock is taken first everywhere."""
    if delivery.provider:
        place = CountedHour.of(sent.inbox.account_id, sent.inbox.pod_id, delivery.provider, now)
        counts.add_all(tx, [(place, counted)])


def _emit(tx: Tx, sent: SentMail, kind: str, failure: DeliveryFailure, base_url: str, now: int) -> list[str]:
    message, inbox = sent.message, sent.inbox
    files = attachments.list_of_messages(tx, [message.id]).get(message.id, [])
    document = documents.decode(message.document)
    return announce(
        tx, NewEvent(inbox.account_id, inbox.pod_id, kind, document, files, now, failure), base_url
    )
