"""From request to mail: look up, compose, then check, store and queue in one transaction."""

from collections.abc import Sequence

from msgspec import structs

from postroom.accounts import domains
from postroom.accounts.keys import Caller
from postroom.accounts.rules import limits
from postroom.accounts.scope import Scope
from postroom.clock import from_iso
from postroom.errors import ApiError, BadRequest, DraftChanged
from postroom.limits import RECIPIENTS
from postroom.mailbox import documents, inboxes, infected, messages, raw_mails, related, threads
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox, Outdated
from postroom.mailbox.messages import INBOUND
from postroom.outward import disclosing, fill_from_message, invitations, spans
from postroom.outward.event_changes import EventChange
from postroom.outward.holding.carried import find_carried
from postroom.outward.holding.judgement import Guarded, Unjudged, is_foreseen, judge
from postroom.outward.send_stages import (
    ComposedMail,
    Context,
    Order,
    SendAnswer,
    Submission,
    new_message_id,
    require_ahead,
    require_no_steering,
    sender_of,
)
from postroom.outward.submit import submit
from postroom.processes import pools
from postroom.queue import deliveries, idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.html import text
from postroom_mail.mime import filenames, parsing_cost
from postroom_mail.mime.address import Address, mailbox_of, parse_list
from postroom_mail.writing import compose, forward, quote
from postroom_mail.writing.compose import Draft, DraftAttachment
from postroom_mail.writing.content_hash import lasting_hash_of
from postroom_mail.writing.content_view import ContentView, view
from postroom_mail.writing.invitation_answer import CalendarAnswer

FEW_FILES = 3  # each has its own header to be written
GUARDED = Guarded()


async def send_mail(
    resources: Resources,
    caller: Caller,
    order: Order,
    inbox: Inbox | None = None,
    is_remembered: bool = False,
) -> SendAnswer:
    """Send an email. Accepted means durable. `inbox` is the sending one, if it was read already.

    If caller and inbox came from the cache, Outdated may be raised: then nothing has happened.
    """
    now = resources.now()
    require_no_steering(order.headers, resources.config.allowed_headers)
    if inbox is not None and is_plain(order) and inbox.id not in disclosing.ASKING.known:
        around = Context(inbox)
        composed = to_composed_mail(order, around, now)
    else:
        remembered = inbox if is_remembered else None
        found = await resources.db.read(look_up, caller, order, now, resources.config.domain, remembered)
        if isinstance(found, SendAnswer):
            return found
        around, order = found, await fill_from_message.from_mail(resources, order, found)
        composed = await compose_mail(order, around, now)
    await require_seen(order, composed)
    try:
        return await submit_composed(resources, caller, order, around, composed, is_remembered)
    except disclosing.Undisclosed:
        return await send_mail(resources, caller, order)


async def submit_composed(
    resources: Resources,
    caller: Caller,
    order: Order,
    around: Context,
    composed: ComposedMail,
    is_remembered: bool = False,
) -> SendAnswer:
    started_at = resources.now()
    order = spans.in_trace(resources.tracing, order)
    blob = await raw_mails.put_if_large(resources, composed.raw)
    base_url = resources.config.base_url
    allowed = limits.in_force(resources.config, caller.account_limits)
    found = await find_carried(order, composed, around, is_little(order))
    submission = Submission(
        caller, order, around, composed, blob, base_url, resources.now(), is_remembered, allowed, found
    )
    if is_foreseen(caller, order, around) or GUARDED.includes(around.inbox.id, submission.now):
        submission = await judged(submission)
    answer = await hand_in(resources, submission)
    if resources.tracing is not None and not answer.is_replay:
        spans.record_accepted(resources.tracing, order, answer.content, started_at, resources.now())
    return answer


async def send_together(resources: Resources, caller: Caller, orders: Sequence[Order]) -> list[SendAnswer]:
    """Accepts all of them in one transaction, or none."""
    prepared = [await prepare_one(resources, caller, order) for order in orders]
    known = [each for each in prepared if isinstance(each, SendAnswer)]
    if len(known) == len(prepared):
        return known
    new = [each for each in prepared if isinstance(each, Submission)]
    try:
        answers = await resources.db.write(submit, new)
    except ApiError as error:
        for each in new if error.status < 500 else ():
            await raw_mails.remove_blob(resources, each.blob)
        raise
    resources.db.ring(deliveries.BELL, *(bell for each in answers for bell in each.bells))
    made = iter(answers)
    return [each if isinstance(each, SendAnswer) else next(made) for each in prepared]


async def prepare_one(resources: Resources, caller: Caller, order: Order) -> Submission | SendAnswer:
    """Return an email to accept with others, already screened; or its first answer, if its key is known."""
    now = resources.now()
    found = await resources.db.read(look_up, caller, order, now, resources.config.domain)
    if isinstance(found, SendAnswer):
        return found
    composed = await compose_mail(order, found, now)
    blob = await raw_mails.put_if_large(resources, composed.raw)
    allowed, base_url = limits.in_force(resources.config, caller.account_limits), resources.config.base_url
    carried = await find_carried(order, composed, found, is_little(order))
    return await judged(
        Submission(caller, order, found, composed, blob, base_url, now, False, allowed, carried)
    )


async def preview(resources: Resources, caller: Caller, order: Order) -> ContentView:
    """Return what an order would become if sent now, with all that a send adds; nothing is stored.

    Raises the errors of a send that the order itself causes.
    """
    now = resources.now()
    require_no_steering(order.headers, resources.config.allowed_headers)
    around = await resources.db.read(look_up, caller, order, now, resources.config.domain)
    assert isinstance(around, Context)  # its idempotency key was never used
    order = await fill_from_message.from_mail(resources, order, around)
    composed = await compose_mail(order, around, now)
    return await pools.READING.run(view, composed.raw, tuple(map(str, order.bcc)))


async def require_seen(order: Order, composed: ComposedMail) -> None:
    """Require the reply to be up to date: newer mail may change whom it goes to, and what it quotes."""
    if order.seen_hash is None:
        return
    bcc = tuple(map(str, order.bcc))
    if await pools.COMPOSING.run(lasting_hash_of, composed.raw, bcc) != order.seen_hash:
        raise DraftChanged("What would be sent now is not what was shown. Check it again.")


async def hand_in(resources: Resources, submission: Submission) -> SendAnswer:
    blob = submission.blob
    try:
        answer = await accept(resources, submission)
    except (ApiError, Outdated) as error:
        # After a server fault it is unknown whether the commit happened.
        if isinstance(error, Outdated) or error.status < 500:
            await raw_mails.remove_blob(resources, blob)
        raise
    if answer.is_replay:
        await raw_mails.remove_blob(resources, blob)
    resources.db.ring(deliveries.BELL, *answer.bells)
    return answer


async def accept(resources: Resources, submission: Submission) -> SendAnswer:
    """Accept a submission. If a rule applies, only the transaction knows; the email is read outside of it."""
    try:
        return await resources.db.write_together(submit, submission)
    except Unjudged:
        GUARDED.note(submission.around.inbox.id, submission.now)
        return await resources.db.write_together(submit, await judged(submission))


async def judged(submission: Submission) -> Submission:
    order, around, composed = submission.order, submission.around, submission.composed
    if is_little(order, around.previous, around.forwarded):
        judgement = judge(order, around, composed)
    else:
        judgement = await pools.COMPOSING.run(judge, order, around, composed)
    return structs.replace(submission, judgement=judgement)


def look_up(
    tx: Tx, caller: Caller, order: Order, now: int, service_domain: str, remembered: Inbox | None = None
) -> Context | SendAnswer:
    if remembered is not None:
        inboxes.require_unchanged(tx, [(caller, remembered)], now)
    inbox = inboxes.get(tx, caller.scope, order.inbox_id)
    known = idempotency.find_answer(tx, caller.scope, inbox, order.idempotency_key, order.request_hash, now)
    if known is not None:
        return SendAnswer(known, is_replay=True)
    if order.send_at is not None:  # after the key: a repeated request is answered even after its time
        require_ahead(order.send_at, now)
    return disclosing.with_closing(tx, caller, order, find_context(tx, inbox, order, service_domain))


def find_context(tx: Tx, inbox: Inbox, order: Order, service_domain: str) -> Context:
    """Return the thread and the messages that the order names."""
    here = Scope(inbox.account_id, None, inbox.id)
    forwarded = None if order.forward_of is None else find_forwarded(tx, here, order.forward_of)
    if order.reply_to_message_id is not None:
        return look_up_answered(tx, inbox, here, order, service_domain)
    if order.thread_id is None:
        return Context(inbox, forwarded=forwarded, quotes_imported=is_imported(tx, forwarded))
    thread = threads.get(tx, here, order.thread_id)
    last_inbound, previous = messages.find_last(tx, thread.id, INBOUND), messages.find_last(tx, thread.id)
    return Context(
        inbox=inbox,
        thread=thread,
        previous=previous,
        last_inbound=last_inbound,
        rfc_ids=related.rfc_ids_of_thread(tx, thread.id),
        forwarded=forwarded,
        is_from_service=last_inbound is not None and is_of_service(tx, last_inbound, service_domain),
        quotes_imported=is_imported(tx, forwarded or previous),
    )


def look_up_answered(tx: Tx, inbox: Inbox, here: Scope, order: Order, service_domain: str) -> Context:
    """Uses this message, not the last one: whom to answer, what to quote, what to refer to."""
    answered = messages.get(tx, here, order.reply_to_message_id or "")
    if order.thread_id not in (None, answered.thread_id):
        raise BadRequest("replyToMessageId is in another thread than threadId.", field="replyToMessageId")
    document = documents.decode(answered.document)
    return Context(
        inbox=inbox,
        thread=threads.get(tx, here, answered.thread_id),
        previous=document,
        last_inbound=document,
        rfc_ids=related.rfc_ids_of_thread(tx, answered.thread_id, document.rfc_message_id),
        is_from_service=is_of_service(tx, document, service_domain),
        quotes_imported=answered.is_imported,
    )


def is_of_service(tx: Tx, document: Document, service_domain: str) -> bool:
    """Return whether it is from an address here that is no inbox, such as noreply: a copy could only fail."""
    sender = parse_list(document.from_addr)[:1]
    mailbox = mailbox_of(sender[0].address) if sender else ""
    is_here = domains.is_served(tx, mailbox.rpartition("@")[2], service_domain)
    return is_here and inboxes.find_by_address(tx, mailbox) is None


def is_imported(tx: Tx, document: Document | None) -> bool:
    message = None if document is None else messages.find(tx, document.id)
    return message is not None and message.is_imported


def find_forwarded(tx: Tx, here: Scope, message_id: str) -> Document:
    """Raise Infected if a file of it may not be passed on."""
    message = messages.get(tx, here, message_id)
    infected.require_whole(tx, message.id)
    return documents.decode(message.document)


async def compose_mail(order: Order, around: Context, now: int) -> ComposedMail:
    if is_little(order, around.previous, around.forwarded):
        return to_composed_mail(order, around, now)
    return await pools.COMPOSING.run(to_composed_mail, order, around, now)


def is_plain(order: Order) -> bool:
    """Return whether an order needs nothing from the mailbox: composing it is then faster than a lookup."""
    speaks_of_mail = order.thread_id or order.forward_of or order.reply_to_message_id
    return not speaks_of_mail and order.send_at is None and is_little(order)


def is_little(order: Order, *quoted: Document | None) -> bool:
    """Counts quoted text too: a one-word reply may quote an email of a megabyte."""
    texts = [order.body, order.body_html or "", *(each.body_text for each in quoted if each is not None)]
    length = sum(map(len, texts))
    if len(order.files) > FEW_FILES:
        return False
    if length <= parsing_cost.MOST_MARKS and not order.files:  # even if each character were a mark
        return True
    if length > parsing_cost.MOST_BYTES:
        return False
    return parsing_cost.is_little(
        *(each.encode(errors="replace") for each in texts), *(file.content for file in order.files)
    )


def to_composed_mail(order: Order, around: Context, now: int) -> ComposedMail:
    own_text, own_html = disclosing.close(*both_forms(order), around.closing)
    whole_text, whole_html = with_quote(order, around, own_text, own_html)
    cc = with_auto_cc(order, around)
    sender = sender_of(order, around.inbox)
    message_id = new_message_id(sender, now)
    calendar = invitations.write_calendar(order, around.inbox, (*order.to, *cc), message_id, own_text, now)
    files = order.files if calendar is None else invitations.with_file(order.files, calendar)
    files = to_files(files) if files else ()
    draft = Draft(
        from_name=around.inbox.display_name or "",
        from_address=sender,
        to=tuple(map(str, order.to)),
        cc=tuple(map(str, cc)),
        reply_to=order.reply_to,
        subject=subject_of(order, around),
        text=whole_text,
        html=whole_html,
        attachments=files,
        message_id=message_id,
        in_reply_to=next(reversed(around.rfc_ids), None),
        references=tuple(around.rfc_ids),
        date_at=now,
        automated=order.is_automated,
        headers=order.headers if around.closing is None else order.headers | around.closing.headers,
        calendar=calendar,
    )
    described = tuple(
        Attachment(file.filename, position, compose.media_type(file.content_type), len(file.content))
        for position, file in enumerate(files)
    )
    raw = compose.compose(draft)
    if calendar is None:
        return ComposedMail(draft, cc, own_text, own_html, raw, described)
    appointment, described = invitations.read_written(raw)
    return ComposedMail(draft, cc, own_text, own_html, raw, described, appointment)


def to_files(given: Sequence[DraftAttachment]) -> tuple[DraftAttachment, ...]:
    names = filenames.unique(
        filenames.clean(file.filename) or filenames.default(number, compose.media_type(file.content_type))
        for number, file in enumerate(given, 1)
    )
    return tuple(structs.replace(file, filename=name) for name, file in zip(names, given, strict=True))


def subject_of(order: Order, around: Context) -> str:
    if isinstance(order.calendar, CalendarAnswer | EventChange):
        return order.subject
    if around.forwarded is not None:
        return order.subject or forward.forward_subject(around.forwarded.subject)
    return order.subject if around.thread is None else compose.reply_subject(around.thread.subject)


def both_forms(order: Order) -> tuple[str, str | None]:
    """Return text and HTML. HTML given as the body gets a text made from it."""
    if order.body_html is not None:
        return order.body, order.body_html
    if text.looks_like_html(order.body):
        return text.html_to_text(order.body), order.body
    return order.body, None


def with_quote(order: Order, around: Context, own_text: str, own_html: str | None) -> tuple[str, str | None]:
    if not order.include_quote:
        return own_text, own_html
    if around.forwarded is not None:
        passed_on = to_forwarded(around.forwarded)
        html = None if own_html is None else forward.forward_html(own_html, passed_on)
        return forward.forward_text(own_text, passed_on), html
    previous = around.previous
    if previous is None:
        return own_text, own_html
    said = (previous.body_text, previous.from_addr, from_iso(previous.created_at))
    return quote.quote_text(own_text, *said), None if own_html is None else quote.quote_html(own_html, *said)


def to_forwarded(document: Document) -> forward.Forwarded:
    return forward.Forwarded(
        sender=document.from_addr,
        sent_at=from_iso(document.created_at),
        subject=document.subject,
        to=document.header_to,
        cc=", ".join(document.cc),
        text=document.body_text,
    )


def with_auto_cc(order: Order, around: Context) -> tuple[Address, ...]:
    """Add the sender that a reply answers, unless addressed already or an address here without an inbox."""
    room = RECIPIENTS - len(order.to) - len(order.cc) - len(order.bcc)
    is_for_one = isinstance(order.calendar, CalendarAnswer)  # the organizer, not the sender
    if not order.copies_sender or around.last_inbound is None or around.is_from_service:
        return order.cc
    if is_for_one or room < 1:
        return order.cc
    known = {mailbox_of(address.address) for address in (*order.to, *order.cc)} | around.inbox.mailboxes
    senders = [
        sender
        for sender in fill_from_message.writable(around.last_inbound.from_addr)[:1]
        if mailbox_of(sender.address) not in known
    ]
    return (*order.cc, *senders)
