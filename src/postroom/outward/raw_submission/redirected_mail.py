"""Redirects a received mail unchanged: its author stays the same (RFC 5322 section 3.6.6)."""

import re
from collections.abc import Sequence

from msgspec import Struct, structs

from postroom.accounts.keys import Caller
from postroom.clock import to_mail_date
from postroom.errors import NotRedirectable
from postroom.inward.received_document import BODY_MAX_CHARACTERS
from postroom.mailbox import documents, inboxes, infected, messages, raw_mails, threads
from postroom.mailbox.documents import Document
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import INBOUND, Message
from postroom.mailbox.threads import Thread
from postroom.outward.raw_submission import submitted_mail
from postroom.outward.send import submit_composed
from postroom.outward.send_stages import ComposedMail, Context, Order, SendAnswer, is_steering, new_message_id
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.authentication.canonical import split_mail
from postroom_mail.html import text
from postroom_mail.mime.address import Address
from postroom_mail.mime.parse import ParsedMail, parse_mail
from postroom_mail.writing import compose
from postroom_mail.writing.compose import Draft, DraftAttachment

_LONE_RETURN = re.compile(rb"\r(?!\n)")
LEFT_OUT = frozenset(("return-path", "delivered-to", "bcc", "authentication-results", "received-spf"))
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Redirected(Struct, frozen=True):
    """The redirected mail, its inbox and its thread."""

    message: Message
    document: Document
    inbox: Inbox
    thread: Thread


async def redirect_mail(
    resources: Resources,
    caller: Caller,
    message_id: str,
    to: Sequence[Address],
    key: str,
    has_loop_mark: bool = False,
) -> SendAnswer:
    """Follows the rules of any other send. The envelope sender is ours, so that bounces come here.

    With a mark against loops, a rule knows the email if it comes back.
    """
    now = resources.now()
    said = idempotency.hash_request(b"redirect", message_id.encode(), *(str(each).encode() for each in to))
    found = await resources.db.read(look_up, caller, message_id, key, said, now)
    if isinstance(found, SendAnswer):
        return found
    came = await raw_mails.read(resources, message_id, with_trace=True)
    allowed = resources.config.allowed_headers
    came = loop_mark(found.inbox) + came if has_loop_mark else came
    order, composed = await pools.COMPOSING.run(prepare, found, came, tuple(to), key, said, allowed, now)
    order = structs.replace(order, keeps_unread=has_loop_mark)
    return await submit_composed(resources, caller, order, Context(found.inbox, found.thread), composed)


def look_up(
    tx: Tx, caller: Caller, message_id: str, key: str, request_hash: str, now: int
) -> Redirected | SendAnswer:
    message = messages.get(tx, caller.scope, message_id)
    infected.require_whole(tx, message.id)
    inbox = inboxes.get(tx, caller.scope, message.inbox_id)
    known = idempotency.find_answer(tx, caller.scope, inbox, key, request_hash, now)
    if known is not None:
        return SendAnswer(known, is_replay=True)
    document = documents.decode(message.document)
    require_redirectable(message, document)
    thread = threads.get(tx, caller.scope, message.thread_id)
    return Redirected(message, document, inbox, thread)


def loop_mark(inbox: Inbox) -> bytes:
    return compose.header("X-Loop", compose.mailbox_list("to", [inbox.address]))


def require_redirectable(message: Message, document: Document) -> None:
    """Refuse to redirect harmful email, which would count against us."""
    if message.is_imported:
        raise NotRedirectable("This email was imported: only email that was received here can be redirected.")
    if document.direction != INBOUND or not document.from_addr:
        raise NotRedirectable("Only received email can be redirected.")
    if message.is_blocked or document.verdict == "malicious":
        raise NotRedirectable("This email was blocked or judged malicious and cannot be redirected.")


def prepare(
    found: Redirected,
    came: bytes,
    to: tuple[Address, ...],
    key: str,
    request_hash: str,
    allowed_headers: frozenset[str],
    now: int,
) -> tuple[Order, ComposedMail]:
    """Prepare a redirection. Its recipients are in no original field, so they are stored and shown as Bcc."""
    inbox = found.inbox
    message_id = new_message_id(inbox.sender, now)
    raw = resent_fields(inbox, to, message_id, now) + as_it_came(came, allowed_headers)
    draft = to_draft(inbox, parse_mail(raw), message_id, now)
    order = submitted_mail.to_order(inbox, draft, key, request_hash, ((), (), to))
    order = structs.replace(order, thread_id=found.thread.id, redirect_of=found.message.id)
    return order, submitted_mail.to_composed_mail(order, draft, raw)


def to_draft(inbox: Inbox, parsed: ParsedMail, message_id: str, now: int) -> Draft:
    """Return what is stored of it, and read by the rules."""
    shown = parsed.body_text or text.html_to_text(parsed.body_html)
    return Draft(
        from_name=inbox.display_name or "",
        from_address=inbox.sender,
        to=tuple(map(str, parsed.to)),
        cc=tuple(map(str, parsed.cc)),
        subject=parsed.subject,
        text=shown[:BODY_MAX_CHARACTERS],
        html=parsed.body_html[:BODY_MAX_CHARACTERS] or None,
        attachments=tuple(DraftAttachment(f.filename, f.content_type, f.content) for f in parsed.attachments),
        message_id=message_id,
        in_reply_to=next(iter(parsed.in_reply_to), None),
        references=parsed.references,
        date_at=now,
        automated=parsed.automated,
    )


def resent_fields(inbox: Inbox, to: tuple[Address, ...], message_id: str, now: int) -> bytes:
    sender = Address(inbox.display_name or "", inbox.sender)
    return (
        compose.header("Resent-From", compose.mailbox_list("from", [str(sender)]))
        + compose.header("Resent-To", compose.mailbox_list("to", list(map(str, to))))
        + f"Resent-Date: {to_mail_date(now)}\r\nResent-Message-ID: {message_id}\r\n".encode()
    )


def as_it_came(raw: bytes, allowed_headers: frozenset[str]) -> bytes:
    """Makes all line ends CR LF, and removes fields that are not for the next reader.

    These are fields of delivery, hidden recipients, an earlier redirect (all Resent- fields are ours),
    results of checks that anybody may have written (our seal has ours), and fields that control
    our relay. The header is split first, and a lone CR in a field is dropped as readers do: a line end in
    its place would move text of the header into the body.
    """
    mail = split_mail(raw)
    if not mail.is_whole:
        raise NotRedirectable("The header of this email is too large to be redirected.")
    kept = [
        _LONE_RETURN.sub(b"", field.raw)
        for field in mail.fields
        if field.name not in LEFT_OUT
        and not field.name.startswith("resent-")
        and not is_steering(field.name, allowed_headers)
    ]
    return b"\r\n".join((*kept, b"", _LINE_END.sub(b"\r\n", mail.body)))
