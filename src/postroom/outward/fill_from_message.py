"""Completes orders from the mail they refer to: its recipients, or its files."""

from collections.abc import Iterable, Iterator, Set

from msgspec import structs

from postroom import limits
from postroom.errors import BadRequest
from postroom.mailbox import raw_mails
from postroom.mailbox.documents import Document
from postroom.mailbox.messages import OUTBOUND
from postroom.outward.send_stages import Context, Order, require_files_fit
from postroom.processes import pools
from postroom.resources import Resources
from postroom_mail.mime import headers
from postroom_mail.mime.address import Address, mailbox_of, parse_list, validate
from postroom_mail.mime.parse import parse_mail
from postroom_mail.writing.compose import DraftAttachment


async def from_mail(resources: Resources, order: Order, around: Context) -> Order:
    order = from_alias(order, around)
    if order.reply_all:
        return await to_all(resources, order, around)
    if order.reply_to_message_id is not None and not order.to:
        return await to_one(resources, order, around)
    if around.forwarded is not None:
        return await with_files(resources, order, around.forwarded.id)
    return order


def from_alias(order: Order, around: Context) -> Order:
    """Return the order in the name of the alias that the answered mail came to, unless it names a sender.

    What follows an own email is in the name of the alias that wrote it.
    """
    answered = around.last_inbound or around.previous
    if answered is None or order.from_address is not None or around.inbox.connection_id:
        return order
    senders = parse_list(answered.from_addr) if answered.direction == OUTBOUND else []
    alias = mailbox_of(senders[0].address) if senders else answered.delivered_to
    if not alias or alias == around.inbox.address or alias not in around.inbox.own_addresses:
        return order
    return structs.replace(order, from_address=alias)


async def to_all(resources: Resources, order: Order, around: Context) -> Order:
    answered = around.last_inbound
    if answered is None:
        raise BadRequest("There is no received message that replyAll could answer.", field="replyAll")
    raw = await raw_mails.read(resources, answered.id, with_trace=False)
    return await pools.READING.run(add_everybody, order, answered, raw, around.inbox.mailboxes)


async def to_one(resources: Resources, order: Order, around: Context) -> Order:
    """Fill in only the addresses that the email wants replies sent to."""
    answered = around.previous
    assert answered is not None
    raw = await raw_mails.read(resources, answered.id, with_trace=False)
    to = await pools.READING.run(who_answers, answered, raw, around.inbox.mailboxes)
    if not to:
        raise BadRequest("This message has nobody to reply to.", field="to")
    return structs.replace(order, to=tuple(to))


def read_reply_to(raw: bytes) -> str:
    return headers.split(raw, 0).headers.joined("reply-to")


def add_everybody(order: Order, answered: Document, raw: bytes, own: Set[str]) -> Order:
    """Fill in the addresses that the email wants replies sent to, with copies to all others named.

    Slow for the lists of a stranger: call it in a thread.
    """
    known = {mailbox_of(address.address) for address in order.bcc} | own
    to = (*unknown(order.to, known), *unknown(who_answers(answered, raw, own), known))
    others = writable(", ".join((answered.header_to, *answered.cc)))
    cc = (*unknown(order.cc, known), *unknown(others, known))
    if not to:
        raise BadRequest("The last message has nobody to reply to.", field="replyAll")
    if len(to) + len(cc) + len(order.bcc) > limits.RECIPIENTS:
        raise BadRequest(
            f"An email can have {limits.RECIPIENTS} recipients, and the last message has more.",
            field="replyAll",
        )
    return structs.replace(order, to=to, cc=cc)


def who_answers(answered: Document, raw: bytes, own: Set[str]) -> list[Address]:
    """Return Reply-To, unless it names only this inbox; then the sender. For our own email, its recipients.

    Slow for the lists of a stranger: call it in a thread.
    """
    if answered.direction == OUTBOUND:
        return writable(answered.header_to)
    asked = [each for each in writable(read_reply_to(raw)) if mailbox_of(each.address) not in own]
    return asked or writable(answered.from_addr)[:1]


def unknown(addresses: Iterable[Address], known: set[str]) -> Iterator[Address]:
    """Yield each mailbox once, and add it to `known`."""
    for each in addresses:
        mailbox = mailbox_of(each.address)
        if mailbox not in known:
            known.add(mailbox)
            yield each


def writable(addresses: str) -> list[Address]:
    """Return the valid addresses. A stranger chose these: invalid ones are left out."""
    found = []
    for each in parse_list(addresses):
        try:
            found.append(Address(each.name, validate(each.address)))
        except ValueError:
            continue
    return found


async def with_files(resources: Resources, order: Order, message_id: str) -> Order:
    raw = await raw_mails.read(resources, message_id, with_trace=False)
    files = (*order.files, *await pools.READING.run(read_files, raw))
    require_files_fit(len(file.content) for file in files)
    return structs.replace(order, files=files)


def read_files(raw: bytes) -> list[DraftAttachment]:
    return [
        DraftAttachment(file.filename, file.content_type, file.content)
        for file in parse_mail(raw).attachments
    ]
