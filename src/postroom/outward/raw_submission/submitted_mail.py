"""Sends an email of a mail client by the rules of every send, composed anew from what was read of it.

The client's bytes are kept only if the email is signed or encrypted, and nothing holds it.
"""

import html
import re
from collections.abc import Iterator
from email.utils import format_datetime, parsedate_to_datetime
from urllib.parse import quote

import msgspec
from msgspec import Struct, structs

from postroom import limits
from postroom.accounts.keys import Caller
from postroom.errors import BadRequest, Forbidden, PayloadTooLarge
from postroom.inward import into_thread
from postroom.inward.received_document import BODY_MAX_CHARACTERS
from postroom.mailbox.inboxes import Inbox
from postroom.outward import invitations
from postroom.outward.send import look_up, submit_composed, to_files
from postroom.outward.send_stages import (
    ComposedMail,
    Context,
    Order,
    SendReceipt,
    new_message_id,
    require_files_fit,
    require_no_steering,
)
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.html import text
from postroom_mail.mime import charset, headers, parts
from postroom_mail.mime.address import Address, mailbox_of, normalize, parse_list, validate
from postroom_mail.mime.headers import Block, Headers
from postroom_mail.mime.parse import ParsedAttachment, ParsedMail, parse_mail
from postroom_mail.mime.parts import Part
from postroom_mail.reading.calendar import read_calendar
from postroom_mail.writing import compose, passed_on, sealed
from postroom_mail.writing.compose import CALENDAR_METHODS, Draft, DraftAttachment
from postroom_mail.writing.invitation import CalendarFile

KEY_CHARACTERS = 200
OWN_FIELDS = 50
DATE_CHARACTERS = 100
CALENDAR_BYTES = 256 * 1024
_OWN_FIELD = re.compile(r"x-[!-9;-~]{1,70}")


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
    order, composed, parsed = await pools.COMPOSING.run(prepare, inbox, mail, allowed, now)
    found = await resources.db.read(_look_up, caller, order, parsed, now, resources.config.domain)
    if not isinstance(found, tuple):
        return msgspec.json.decode(found, type=SendReceipt)
    around, order = found
    answer = await submit_composed(resources, caller, order, around, composed)
    return msgspec.json.decode(answer.content, type=SendReceipt)


def _look_up(
    tx: Tx, caller: Caller, order: Order, parsed: ParsedMail, now: int, service_domain: str
) -> tuple[Context, Order] | bytes:
    """Look up the context. The thread is found by In-Reply-To and References, as for received mail."""
    thread = into_thread.resolve(tx, order.inbox_id, parsed.in_reply_to, parsed.references)
    order = structs.replace(order, thread_id=None if thread is None else thread.id)
    found = look_up(tx, caller, order, now, service_domain)
    return (found, order) if isinstance(found, Context) else found.content


def prepare(
    inbox: Inbox, mail: FinishedMail, allowed_headers: frozenset[str], now: int
) -> tuple[Order, ComposedMail, ParsedMail]:
    block = headers.split(mail.raw, 0)
    parsed = parse_mail(mail.raw)
    require_own_sender(inbox, mail, block, parsed)
    require_no_steering(block.headers.fields, allowed_headers)
    require_readable(block, parsed)
    draft = to_draft(inbox, block.headers, parsed, now)
    seal = sealed.kind_of(block.headers)
    if draft.html is not None and not seal:
        draft = structs.replace(draft, html=with_loose_texts(parts.read(mail.raw, block).root, draft.html))
    body = mail.raw[block.body_start :]
    raw = sealed.write(draft, block.headers, body) if seal else compose.compose(draft)
    recipients = share_out(mail.recipients, parsed)
    said = idempotency.hash_request(inbox.id.encode(), mail.raw, *_encoded(mail.recipients))
    order = to_order(inbox, draft, key_of(draft.message_id), said, recipients)
    return order, to_composed_mail(order, draft, raw, seal), parsed


def require_own_sender(inbox: Inbox, mail: FinishedMail, block: Block, parsed: ParsedMail) -> None:
    own = {*inbox.own_addresses, mailbox_of(inbox.sender)}
    senders = {mailbox_of(sender) for sender in parsed.senders}
    if block.headers.count("from") != 1 or len(parsed.senders) != 1 or not senders <= own:
        raise Forbidden(f"From must be {inbox.sender} only.")
    if mailbox_of(mail.mail_from) not in own:
        raise Forbidden(f"The sender of the envelope must be {inbox.sender}.")


def sender_in(inbox: Inbox, parsed: ParsedMail) -> str:
    """Return an alias if From names it, else the inbox's usual address."""
    named = next(map(mailbox_of, parsed.senders), "")
    return named if named in inbox.own_addresses[1:] else inbox.sender


def require_readable(block: Block, parsed: ParsedMail) -> None:
    """Refuses an email of which a part would be lost: only what was read is sent."""
    if parsed.parse_error or not block.is_complete:
        reason = parsed.parse_error or "too many header fields"
        raise BadRequest(f"This email cannot be read completely: {reason}.", field="body")
    if len(parsed.subject) > limits.SUBJECT_CHARACTERS:
        raise BadRequest(f"The subject can have {limits.SUBJECT_CHARACTERS} characters.", field="subject")
    if max(len(parsed.body_text), len(parsed.body_html)) > BODY_MAX_CHARACTERS:
        raise PayloadTooLarge(f"The text of an email can have {BODY_MAX_CHARACTERS:,} characters.")


# --- composing


def to_draft(inbox: Inbox, fields: Headers, parsed: ParsedMail, now: int) -> Draft:
    """Return all of the email that is sent.

    Every other field and part is left out (docs/mail-programs.md).
    """
    message_id, sender = parsed.message_id, sender_in(inbox, parsed)
    calendar, files = _find_calendar(parsed.attachments)
    return Draft(
        from_name=next((each.name for each in parse_list(parsed.from_addr)), ""),
        from_address=sender,
        to=tuple(map(str, parsed.to)),
        cc=tuple(map(str, parsed.cc)),
        reply_to=tuple(map(str, parse_list(headers.decode_words(fields.joined("reply-to"))))),
        subject=parsed.subject,
        text=parsed.body_text or text.html_to_text(parsed.body_html),
        html=parsed.body_html or None,
        attachments=to_files([_to_file(each, parsed.body_html) for each in files]),
        message_id=message_id if compose.is_message_id(message_id) else new_message_id(sender, now),
        in_reply_to=next(iter(parsed.in_reply_to), None),
        references=parsed.references,
        date_at=now,
        date=_date(fields.text("date")),
        automated=parsed.automated,
        headers=_own_fields(fields),
        calendar=calendar,
    )


def with_loose_texts(root: Part, written: str) -> str:
    """Return the HTML with the texts next to it that are no alternative of it: readers would miss them."""
    before: list[str] = []
    after: list[str] = []
    has_html = False
    for part in _loose_leaves(root):
        has_html = has_html or part.content_type != "text/plain"
        if part.content_type == "text/plain":
            shown = f"<pre>{html.escape(passed_on.text_of(part), quote=False)}</pre>\n"
            (after if has_html else before).append(shown)
    return "".join((*before, written, *(("\n", *after) if after else ())))


def _loose_leaves(part: Part) -> Iterator[Part]:
    """Yield texts without a name that are shown one after the other; alternatives count as one of HTML."""
    if part.content_type == "multipart/alternative":
        yield structs.replace(part, content_type="text/html")
    elif part.is_multipart:
        for child in part.children:
            yield from _loose_leaves(child)
    elif part.content_type in ("text/plain", "text/html") and not _is_file(part):
        yield part


def _is_file(part: Part) -> bool:
    disposition = part.headers.text("content-disposition").lower()
    return disposition.startswith("attachment") or "filename" in disposition or "name" in part.parameters


def _own_fields(fields: Headers) -> dict[str, str]:
    """Return the fields that any send may have, each once: not every reader sees a second one."""
    found: dict[str, str] = {}
    for name in fields.fields:
        value = charset.clean_line(headers.decode_words(fields.text(name)))
        if _OWN_FIELD.fullmatch(name) and 0 < len(value) <= limits.HEADER_CHARACTERS:
            found[name.title()] = value
    return dict(list(found.items())[:OWN_FIELDS])


def _date(written: str) -> str:
    """Return the date in one form, without comments; "" if it is missing or unreadable."""
    try:
        return format_datetime(parsedate_to_datetime(written[:DATE_CHARACTERS]))
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _to_file(file: ParsedAttachment, shown_in: str) -> DraftAttachment:
    """Return a file. A picture keeps its Content-ID if the HTML shows it: the id is hashed with the HTML."""
    kind = f"{file.content_type}; charset={file.charset}" if file.charset else file.content_type
    name = file.content_id
    is_shown = file.content_type.startswith("image/") and compose.is_message_id(f"<{name}>")
    is_shown = is_shown and (f"cid:{name}" in shown_in or f"cid:{quote(name)}" in shown_in)
    return DraftAttachment(file.filename, kind, file.content, name if is_shown else "")


def _find_calendar(
    files: tuple[ParsedAttachment, ...],
) -> tuple[CalendarFile | None, tuple[ParsedAttachment, ...]]:
    """Return the first appointment that mail clients act on, and all other files."""
    for place, file in enumerate(files):
        if file.content_type != "text/calendar" or len(file.content) > CALENDAR_BYTES:
            continue
        found = read_calendar(file.content)
        if found is not None and found.method.upper() in CALENDAR_METHODS:
            content = compose.crlf_lines(charset.decode(file.content, file.charset))
            return CalendarFile(found.method.upper(), content), (*files[:place], *files[place + 1 :])
    return None, files


def to_order(
    inbox: Inbox,
    draft: Draft,
    key: str,
    request_hash: str,
    recipients: tuple[tuple[Address, ...], tuple[Address, ...], tuple[Address, ...]],
) -> Order:
    require_files_fit([len(file.content) for file in draft.attachments])
    to, cc, bcc = recipients
    return Order(
        inbox_id=inbox.id,
        idempotency_key=key,
        request_hash=request_hash,
        to=to,
        cc=cc,
        bcc=bcc,
        subject=draft.subject,
        body=draft.text,
        body_html=draft.html,
        reply_to=", ".join(compose.reply_addresses(draft)) or None,
        is_automated=draft.automated,
        files=draft.attachments,
        headers=draft.headers,
    )


def to_composed_mail(order: Order, draft: Draft, raw: bytes, seal: str = "") -> ComposedMail:
    """Return what is stored of it: files and appointment are those of the bytes that are sent."""
    appointment, files = invitations.read_written(raw)
    return ComposedMail(
        draft, order.cc, order.body, order.body_html, raw, files, appointment, seal, is_submitted=True
    )


def _encoded(recipients: tuple[str, ...]) -> list[bytes]:
    return [address.encode() for address in sorted(recipients)]


def key_of(message_id: str) -> str:
    """Return a key made from the Message-ID, so that a retry is the same send."""
    return f"submission:{message_id}"[:KEY_CHARACTERS]


def share_out(
    recipients: tuple[str, ...], parsed: ParsedMail
) -> tuple[tuple[Address, ...], tuple[Address, ...], tuple[Address, ...]]:
    """Return each recipient once: as To or Cc if the email names it so, else as Bcc."""
    left = {normalize(checked): Address("", checked) for checked in map(_checked, recipients)}
    if len(left) > limits.RECIPIENTS:
        raise BadRequest(f"An email has at most {limits.RECIPIENTS} recipients.", field="to")
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
