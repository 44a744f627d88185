"""Sends a mail written by a mail program: by the same rules as any other, but unchanged."""

import re

import msgspec
from msgspec import Struct, structs

from postroom.accounts.keys import Caller
from postroom.clock import to_mail_date
from postroom.errors import BadRequest, Forbidden
from postroom.inward.deposit import BODY_MAX_CHARACTERS
from postroom.mail import headers
from postroom.mail.address import Address, mailbox_of, normalize, parse_list, validate
from postroom.mail.headers import Block
from postroom.mail.html import text
from postroom.mail.parse import ParsedMail, parse_mail
from postroom.mail.writing.compose import Draft, DraftAttachment
from postroom.mailbox import threads
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.inboxes import Inbox
from postroom.outward.orders import (
    RECIPIENTS_LIMIT,
    Context,
    Letter,
    Order,
    SendReceipt,
    new_message_id,
    require_files_fit,
    require_no_steering,
)
from postroom.outward.send import look_up, submit_letter, to_files
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx

KEY_CHARACTERS = 200
# Hidden recipients must not be in the copy that all get.
_BCC = re.compile(rb"^(?:resent-)?bcc[ \t]*+:[^\n]*+\n(?:[ \t][^\n]*+\n)*+", re.IGNORECASE | re.MULTILINE)


class FinishedMail(Struct, frozen=True):
    """The mail as submitted; `recipients` are those of the envelope, and the only ones."""

    raw: bytes
    mail_from: str
    recipients: tuple[str, ...]


async def send_finished(
    resources: Resources, caller: Caller, inbox: Inbox, mail: FinishedMail
) -> SendReceipt:
    """Raises the same errors as any send."""
    now = resources.now()
    allowed = resources.config.allowed_headers
    order, letter, parsed = await pools.COMPOSING.run(prepare, inbox, mail, allowed, now)
    found = await resources.db.read(_look_up, caller, order, parsed, now, resources.config.domain)
    if not isinstance(found, tuple):
        return msgspec.json.decode(found, type=SendReceipt)
    around, order = found
    answer = await submit_letter(resources, caller, order, around, letter)
    return msgspec.json.decode(answer.content, type=SendReceipt)


def _look_up(
    tx: Tx, caller: Caller, order: Order, parsed: ParsedMail, now: int, service_domain: str
) -> tuple[Context, Order] | bytes:
    """The thread is found by what the mail answers, as for received mail."""
    thread = threads.resolve(tx, order.inbox_id, parsed.in_reply_to, parsed.references)
    order = structs.replace(order, thread_id=None if thread is None else thread.id)
    found = look_up(tx, caller, order, now, service_domain)
    return (found, order) if isinstance(found, Context) else found.content


def prepare(
    inbox: Inbox, mail: FinishedMail, allowed_headers: frozenset[str], now: int
) -> tuple[Order, Letter, ParsedMail]:
    block = headers.split(mail.raw, 0)
    parsed = parse_mail(mail.raw)
    require_own_sender(inbox, mail, block, parsed)
    require_no_steering(block.headers.fields, allowed_headers)
    raw, message_id = finish(inbox, mail.raw, block, parsed, now)
    to, cc, bcc = share_out(mail.recipients, parsed)
    reply_to = headers.decode_words(block.headers.joined("reply-to")) or None
    said = idempotency.hash_request(inbox.id.encode(), mail.raw, *_encoded(mail.recipients))
    order = to_order(inbox, parsed, key_of(message_id), said, (to, cc, bcc), reply_to)
    return order, to_letter(inbox, order, parsed, raw, message_id, now), parsed


def to_order(
    inbox: Inbox,
    parsed: ParsedMail,
    key: str,
    request_hash: str,
    recipients: tuple[tuple[Address, ...], tuple[Address, ...], tuple[Address, ...]],
    reply_to: str | None,
) -> Order:
    files = tuple(
        DraftAttachment(each.filename, each.content_type, each.content) for each in parsed.attachments
    )
    require_files_fit([len(file.content) for file in files])
    to, cc, bcc = recipients
    return Order(
        inbox_id=inbox.id,
        idempotency_key=key,
        request_hash=request_hash,
        to=to,
        cc=cc,
        bcc=bcc,
        subject=parsed.subject,
        body=(parsed.body_text or text.html_to_text(parsed.body_html))[:BODY_MAX_CHARACTERS],
        body_html=parsed.body_html[:BODY_MAX_CHARACTERS] or None,
        reply_to=reply_to,
        is_automated=parsed.automated,
        files=files,
    )


def _encoded(recipients: tuple[str, ...]) -> list[bytes]:
    return [address.encode() for address in sorted(recipients)]


def require_own_sender(inbox: Inbox, mail: FinishedMail, block: Block, parsed: ParsedMail) -> None:
    own = {mailbox_of(inbox.address), mailbox_of(inbox.sender)}
    senders = {mailbox_of(sender) for sender in parsed.senders}
    if block.headers.count("from") != 1 or len(parsed.senders) != 1 or not senders <= own:
        raise Forbidden(f"From must be {inbox.sender} only.")
    if mailbox_of(mail.mail_from) not in own:
        raise Forbidden(f"The sender of the envelope must be {inbox.sender}.")


def finish(inbox: Inbox, raw: bytes, block: Block, parsed: ParsedMail, now: int) -> tuple[bytes, str]:
    """Removes Bcc, and adds a missing date and Message-ID (RFC 6409 section 8)."""
    head, body = raw[: block.body_start], raw[block.body_start :]
    message_id = parsed.message_id
    added = b""
    if not message_id:
        message_id = new_message_id(inbox.sender, now)
        added += f"Message-ID: {message_id}\r\n".encode()
    if not block.headers.count("date"):
        added += f"Date: {to_mail_date(now)}\r\n".encode()
    return added + _BCC.sub(b"", head) + body, message_id


def key_of(message_id: str) -> str:
    """Derived from the Message-ID, so that a retry is the same send."""
    return f"submission:{message_id}"[:KEY_CHARACTERS]


def share_out(
    recipients: tuple[str, ...], parsed: ParsedMail
) -> tuple[tuple[Address, ...], tuple[Address, ...], tuple[Address, ...]]:
    """Each recipient once: as To or Cc if the mail names it so, else as Bcc."""
    left = {normalize(checked): Address("", checked) for checked in map(_checked, recipients)}
    if len(left) > RECIPIENTS_LIMIT:
        raise BadRequest(f"A mail has at most {RECIPIENTS_LIMIT} recipients.", field="to")
    shared = []
    for named in (parsed.to, parsed.cc):
        own = [(each, left.pop(normalize(each.address), None)) for each in named]
        shared.append(tuple(Address(each.name, kept.address) for each, kept in own if kept is not None))
    return shared[0], shared[1], tuple(left.values())


def _checked(recipient: str) -> str:
    try:
        return validate(recipient)
    except ValueError as error:
        raise BadRequest(f"{recipient[:100]} is not an address: {error}", field="to") from None


def to_letter(
    inbox: Inbox, order: Order, parsed: ParsedMail, raw: bytes, message_id: str, now: int
) -> Letter:
    """What is stored of it; the texts are those of the mail."""
    files = to_files(order.files)
    draft = Draft(
        from_name=next((each.name for each in parse_list(parsed.from_addr)), ""),
        from_address=inbox.sender,
        to=tuple(map(str, parsed.to)),
        cc=tuple(map(str, parsed.cc)),
        reply_to=order.reply_to,
        subject=order.subject,
        text=order.body,
        html=order.body_html,
        attachments=files,
        message_id=message_id,
        in_reply_to=next(iter(parsed.in_reply_to), None),
        references=parsed.references,
        date_at=now,
        automated=order.is_automated,
    )
    described = tuple(
        Attachment(file.filename, position, file.content_type, len(file.content))
        for position, file in enumerate(files)
    )
    return Letter(draft, order.cc, order.body, order.body_html, raw, described)
