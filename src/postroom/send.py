"""Request to mail: looked up, composed, then checked, stored and queued in one transaction."""

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from postroom import (
    attachments,
    deliveries,
    idempotency,
    ids,
    inboxes,
    limits,
    messages,
    suppressions,
    threads,
)
from postroom.attachments import Attachment
from postroom.clock import from_iso, to_iso
from postroom.deliveries import Recipient
from postroom.errors import ApiError, FeatureRequiresPaidPlan
from postroom.inboxes import Inbox
from postroom.keys import Caller
from postroom.mail import compose, filenames, quote, text
from postroom.mail.address import Address, mailbox_of, normalize, parse_list, validate
from postroom.mail.compose import Draft, DraftAttachment
from postroom.messages import INBOUND, OUTBOUND, PENDING, RAW_IN_ROW_BYTES, Document
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom.threads import Thread

COMPOSE_IN_LOOP_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True)
class Order:
    """What the client wants sent; every value has been read and found valid by itself."""

    inbox_id: str
    idempotency_key: str
    request_hash: str
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    bcc: tuple[Address, ...]
    subject: str
    body: str
    body_html: str | None
    thread_id: str | None
    include_quote: bool
    reply_to: str | None
    is_automated: bool
    files: tuple[DraftAttachment, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a mail is composed from beside the order."""

    inbox: Inbox
    thread: Thread | None = None
    previous: Document | None = None
    last_inbound: Document | None = None
    rfc_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Letter:
    """A composed mail, ready to be stored."""

    draft: Draft
    cc: tuple[Address, ...]
    own_text: str
    raw: bytes
    files: tuple[Attachment, ...]


class Receipt(Struct, rename="camel", frozen=True):
    id: str
    thread_id: str
    inbox_id: str
    direction: str
    created_at: str
    message_id: str
    status: str


@dataclass(frozen=True, slots=True)
class Answer:
    content: bytes
    is_replay: bool


async def send_mail(resources: Resources, caller: Caller, order: Order, inbox: Inbox | None = None) -> Answer:
    """Accepted means durable. `inbox` is the one that sends, if the caller has read it already."""
    now = resources.now()
    if inbox is not None and order.thread_id is None and is_small(order):
        found: Surroundings | Answer = Surroundings(inbox)  # composed sooner than its key is looked for
    else:
        found = await resources.db.read(look_up, caller, order, now)
    if isinstance(found, Answer):
        return found
    letter = await write_letter(order, found, now)
    blob = await put_if_large(resources, letter.raw)
    try:
        answer = await resources.db.write(commit, caller, order, found, letter, blob, resources.now())
    except ApiError as error:
        if error.status < 500:  # of a fault nobody knows whether it came before the commit or after it
            await remove_blob(resources, blob)
        raise
    if answer.is_replay:
        await remove_blob(resources, blob)
    resources.db.ring(deliveries.BELL)
    return answer


def look_up(tx: Tx, caller: Caller, order: Order, now: int) -> Surroundings | Answer:
    inbox = inboxes.get(tx, caller.account_id, order.inbox_id)
    known = idempotency.find_answer(tx, caller.account_id, order.idempotency_key, order.request_hash, now)
    if known is not None:
        return Answer(known, is_replay=True)
    if order.thread_id is None:
        return Surroundings(inbox)
    thread = threads.get(tx, caller.account_id, inbox.id, order.thread_id)
    return Surroundings(
        inbox=inbox,
        thread=thread,
        previous=messages.find_last(tx, thread.id),
        last_inbound=messages.find_last(tx, thread.id, INBOUND),
        rfc_ids=tuple(filter(compose.is_message_id, messages.rfc_ids_of_thread(tx, thread.id))),
    )


async def write_letter(order: Order, around: Surroundings, now: int) -> Letter:
    if is_small(order):
        return to_letter(order, around, now)
    return await asyncio.to_thread(to_letter, order, around, now)


def is_small(order: Order) -> bool:
    size = len(order.body) + len(order.body_html or "") + sum(len(file.content) for file in order.files)
    return size <= COMPOSE_IN_LOOP_BYTES


def to_letter(order: Order, around: Surroundings, now: int) -> Letter:
    own_text, own_html = both_forms(order)
    whole_text, whole_html = with_quote(order, around, own_text, own_html)
    cc = with_auto_cc(order, around)
    names = filenames.unique([filenames.clean(file.filename) for file in order.files])
    files = tuple(
        DraftAttachment(name, file.content_type, file.content)
        for name, file in zip(names, order.files, strict=True)
    )
    draft = Draft(
        from_name=around.inbox.display_name or "",
        from_address=around.inbox.address,
        to=tuple(str(address) for address in order.to),
        cc=tuple(str(address) for address in cc),
        reply_to=order.reply_to,
        subject=order.subject if around.thread is None else compose.reply_subject(around.thread.subject),
        text=whole_text,
        html=whole_html,
        attachments=files,
        message_id=compose.new_message_id(around.inbox.address.rpartition("@")[2], secrets.token_bytes(16)),
        in_reply_to=around.rfc_ids[-1] if around.rfc_ids else None,
        references=around.rfc_ids,
        date_at=now,
        automated=order.is_automated,
    )
    described = tuple(
        Attachment(file.filename, position, compose.media_type(file.content_type), len(file.content))
        for position, file in enumerate(files)
    )
    return Letter(draft, cc, own_text, compose.compose(draft), described)


def both_forms(order: Order) -> tuple[str, str | None]:
    """Text and HTML: HTML given as the body gets a text made from it."""
    if order.body_html is not None:
        return order.body, order.body_html
    if text.looks_like_html(order.body):
        return text.html_to_text(order.body), order.body
    return order.body, None


def with_quote(
    order: Order, around: Surroundings, own_text: str, own_html: str | None
) -> tuple[str, str | None]:
    previous = around.previous
    if previous is None or not order.include_quote:
        return own_text, own_html
    said = (previous.body_text, previous.from_addr, from_iso(previous.created_at))
    return quote.quote_text(own_text, *said), None if own_html is None else quote.quote_html(own_html, *said)


def with_auto_cc(order: Order, around: Surroundings) -> tuple[Address, ...]:
    """A reply copies the sender of the message it answers, unless he is addressed already."""
    if around.last_inbound is None:
        return order.cc
    known = {mailbox_of(address.address) for address in (*order.to, *order.cc)} | {around.inbox.address}
    senders = [
        sender
        for sender in writable_senders(around.last_inbound.from_addr)
        if mailbox_of(sender.address) not in known
    ]
    return (*order.cc, *senders)


def writable_senders(from_addr: str) -> Iterable[Address]:
    """A stranger chose these; what cannot be written to is left out."""
    for sender in parse_list(from_addr)[:1]:
        try:
            yield Address(sender.name, validate(sender.address))
        except ValueError:
            continue


async def put_if_large(resources: Resources, raw: bytes) -> str | None:
    return await asyncio.to_thread(resources.blobs.put, raw) if len(raw) > RAW_IN_ROW_BYTES else None


async def remove_blob(resources: Resources, blob: str | None) -> None:
    if blob is not None:
        await asyncio.to_thread(resources.blobs.remove, blob)


def commit(
    tx: Tx, caller: Caller, order: Order, around: Surroundings, letter: Letter, blob: str | None, now: int
) -> Answer:
    """The send section of the specification, line by line."""
    subject = letter.draft.subject
    thread = around.thread or threads.new(around.inbox.id, subject, is_read=True, now=now)
    document = to_document(around.inbox, thread, order, letter, now)
    answer = msgspec.json.encode(to_receipt(document))
    known = idempotency.claim(tx, caller.account_id, order.idempotency_key, order.request_hash, answer, now)
    if known is not None:
        return Answer(known, is_replay=True)
    inbox = inboxes.count_message(tx, order.inbox_id, OUTBOUND)
    require_allowed_reply_to(tx, caller, order.reply_to)
    addresses = unique_addresses(order, letter)
    suppressions.require_none(tx, caller.account_id, addresses)
    limits.require_send(tx, inbox.id, now)
    cold = {address for address in addresses if not inboxes.has_correspondent(tx, inbox.id, address)}
    limits.require_warmth(tx, inbox.id, inbox.created_at, cold, now)
    require_no_loop(tx, around, now)
    if around.thread is None:
        threads.add(tx, thread)
    else:
        threads.add_message(tx, thread, is_read=True, now=now)
    messages.add(tx, document, PENDING, inbox.address, bool(letter.files), now)
    messages.add_raw(tx, document.id, None if blob else letter.raw, blob)
    attachments.add_all(tx, document.id, letter.files)
    threads.add_participants(tx, thread.id, (inbox.address, *addresses))
    recipients = [Recipient(address, address in cold) for address in addresses]
    deliveries.add_mail(tx, caller.account_id, inbox.id, document.id, recipients, now)
    return Answer(answer, is_replay=False)


def require_allowed_reply_to(tx: Tx, caller: Caller, reply_to: str | None) -> None:
    if reply_to is None or caller.plan != "free":
        return
    mailboxes = [mailbox_of(address.address) for address in parse_list(reply_to)]
    owners = [inboxes.find_by_address(tx, mailbox) for mailbox in mailboxes]
    if not all(inbox is not None and inbox.account_id == caller.account_id for inbox in owners):
        raise FeatureRequiresPaidPlan(
            "On the free plan replyTo must be the address of an inbox of this account.",
            feature="external_reply_to",
        )


def unique_addresses(order: Order, letter: Letter) -> list[str]:
    """Each recipient once, in the order of To, Cc and Bcc."""
    return list(dict.fromkeys(normalize(address.address) for address in (*order.to, *letter.cc, *order.bcc)))


def require_no_loop(tx: Tx, around: Surroundings, now: int) -> None:
    if around.thread is not None and around.last_inbound is not None and around.last_inbound.automated:
        limits.require_no_loop(tx, around.thread.id, now)


def to_document(inbox: Inbox, thread: Thread, order: Order, letter: Letter, now: int) -> Document:
    draft = letter.draft
    return Document(
        id=ids.new(ids.MESSAGE, now),
        thread_id=thread.id,
        inbox_id=inbox.id,
        direction=OUTBOUND,
        from_addr=str(Address(inbox.display_name or "", inbox.address)),
        to_addr=inbox.address,
        header_to=", ".join(draft.to),
        delivery_role=None,
        cc=list(draft.cc),
        subject=draft.subject,
        body_text=draft.text,
        body_html=draft.html or "",
        created_at=to_iso(now),
        rfc_message_id=draft.message_id,
        reply_text=letter.own_text,
        auth=None,
        automated=order.is_automated,
        new_participant=False,
        codes=[],
        links=[],
    )


def to_receipt(document: Document) -> Receipt:
    return Receipt(
        id=document.id,
        thread_id=document.thread_id,
        inbox_id=document.inbox_id,
        direction=document.direction,
        created_at=document.created_at,
        message_id=document.id,
        status=PENDING,
    )
