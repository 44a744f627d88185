"""Sends nudges whose time has come, and announces which threads are overdue.

A nudge is a send of the key that prepared it: policy, limits and approval apply. Its id is the idempotency
key, and it is taken in the transaction that accepts it: it is sent once, and never after an answer.
"""

from contextlib import closing

from msgspec import Struct

from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.accounts.rules import pauses
from postroom.clock import HOUR, MINUTE, SECOND
from postroom.errors import (
    ApiError,
    BadRequest,
    ColdOutreachLimit,
    RateLimitExceeded,
)
from postroom.events import thread_events
from postroom.events.announce import announce_all
from postroom.events.kinds import THREAD_OVERDUE
from postroom.mailbox import documents, follow_ups, inboxes, messages, templates
from postroom.mailbox.follow_ups import APART, NOT_SENT, PAUSED, FollowUp, FollowUpEnded
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import FAILED, SENT, Message
from postroom.mailbox.templates import TemplateText
from postroom.outward.notices import daily_briefings
from postroom.outward.send import send_mail
from postroom.outward.send_stages import Order
from postroom.queue import idempotency
from postroom.queue.queue_loop import IDLE_SECONDS
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.mime.address import parse_list
from postroom_mail.writing.header_words import DraftError

LIMITED = (RateLimitExceeded, ColdOutreachLimit)


class DueNudge(Struct, frozen=True):
    follow_up: FollowUp
    caller: Caller
    message: Message
    content: TemplateText


async def send_nudges(resources: Resources) -> None:
    """Runs until cancelled."""
    with closing(resources.db.listen(follow_ups.BELL)) as subscription:
        while True:
            done = await step(resources)
            await daily_briefings.step(resources)
            resources.loops.works("follow-ups")
            if done < follow_ups.TOGETHER:
                await subscription.wait(IDLE_SECONDS)


async def step(resources: Resources) -> int:
    """Returns how many nudges were due."""
    if await resources.db.read(follow_ups.is_any_due, resources.now()):
        await resources.db.write(announce_overdue, resources.now())
    due = await resources.db.read(follow_ups.list_due, resources.now())
    for follow_up in due:
        await try_to_send(resources, follow_up)
    return len(due)


def announce_overdue(tx: Tx, now: int) -> None:
    """Announce overdue replies. An email never sent is not overdue: its expectation ends."""
    overdue = []
    for thread in follow_ups.mark_overdue(tx, now):
        message = messages.find(tx, thread.awaiting_message or "")
        if message is not None and message.status == FAILED:
            follow_ups.end(tx, thread, NOT_SENT)
        else:
            overdue.append(thread)
    announce_all(tx, [thread_events.notice(THREAD_OVERDUE, each, now) for each in overdue], "")


async def try_to_send(resources: Resources, follow_up: FollowUp) -> None:
    """Send a nudge. A refused one says why; one that fails does not hold up the others."""
    try:
        nudge = await resources.db.write(prepare, follow_up, resources.now())
        if nudge is not None:
            await send(resources, nudge)
    except FollowUpEnded:
        return  # another node was first, or it was cancelled meanwhile
    except LIMITED as error:
        pause = min(max((error.retry_after or 0) * SECOND, MINUTE), HOUR)
        await resources.db.write(follow_ups.put_off, follow_up, resources.now() + pause)
    except ApiError as error:
        if error.status >= 500:
            resources.loops.failed("a follow-up", error)
        else:
            await resources.db.write(follow_ups.cancel, follow_up, error.message, "failed")
    except Exception as error:
        resources.loops.failed("a follow-up", error)


def prepare(tx: Tx, follow_up: FollowUp, now: int) -> DueNudge | None:
    """Return None if it is cancelled, or put off: until the email has left, or a day after the last nudge."""
    current, message = follow_ups.find(tx, follow_up.id), messages.find(tx, follow_up.message_id)
    if current is None or current.state != follow_ups.SCHEDULED or message is None:
        return None
    last = follow_ups.last_sent_at(tx, follow_up.thread_id)
    if last is not None and now < last + APART:
        follow_ups.put_off(tx, follow_up, last + APART)
        return None
    if message.status not in (SENT, FAILED):
        follow_ups.put_off(tx, follow_up, now + HOUR)
        return None
    is_paused = pauses.is_inbox_paused(tx, follow_up.inbox_id)
    if message.status == FAILED or is_paused:
        follow_ups.cancel(tx, follow_up, PAUSED if is_paused else NOT_SENT)
        return None
    caller = keys.find_caller_by_id(tx, follow_up.key_id, now)
    inbox = inboxes.find(tx, follow_up.inbox_id)
    if caller is None or inbox is None:
        raise BadRequest("The key that prepared this follow-up was revoked.")
    return DueNudge(follow_up, caller, message, read_content(tx, follow_up, inbox, message))


def read_content(tx: Tx, follow_up: FollowUp, inbox: Inbox, message: Message) -> TemplateText:
    """Return its text, or its template filled with the first recipient and the subject."""
    if follow_up.template_id is None:
        return TemplateText(follow_up.body or "")
    document = documents.decode(message.document)
    to = next(iter(parse_list(documents.first_addresses(document.header_to))), None)
    known = {"subject": document.subject}
    known |= {} if to is None else {"name": to.name or to.address, "address": to.address}
    template = templates.get_of_inbox(tx, inbox, follow_up.template_id)
    return templates.fill(template, {each: known[each] for each in template.fields if each in known})


async def send(resources: Resources, nudge: DueNudge) -> None:
    """Send a nudge to the email's recipients, in its thread, which stays as read as it was."""
    follow_up = nudge.follow_up
    order = Order(
        inbox_id=follow_up.inbox_id,
        idempotency_key=follow_up.id,
        request_hash=idempotency.hash_request(b"follow-up", follow_up.id.encode()),
        to=(),
        subject="",
        body=nudge.content.body,
        body_html=nudge.content.body_html,
        thread_id=follow_up.thread_id,
        include_quote=True,
        reply_to_message_id=nudge.message.id,
        copies_sender=False,
        follow_up=follow_up.id,
        keeps_unread=True,
    )
    try:
        await send_mail(resources, nudge.caller, order)
    except DraftError as error:
        raise BadRequest(f"This cannot be written into an email: {error}") from None
