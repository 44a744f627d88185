"""Sends, answers and forwards of /v0: orders like those of a send, and the same way out."""

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request

from postroom.errors import BadRequest
from postroom.mail.html.text import html_to_text
from postroom.mail.writing.compose import DraftAttachment
from postroom.mail.writing.header_words import CONTROL
from postroom.mailbox import labels
from postroom.outward.orders import RECIPIENTS_LIMIT, Order, SendReceipt, require_files_fit
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.web.agentmail import shapes
from postroom.web.agentmail.messages import own_labels
from postroom.web.api.outward.send import accept_order
from postroom.web.call import Call
from postroom.web.interface.bodies.address_fields import read_addresses
from postroom.web.interface.bodies.send_body import HEADERS_LIMIT, read_headers
from postroom.web.interface.bodies.uploads import JSON_LIMIT_BYTES, OCTETS, UPLOAD_SECONDS
from postroom.web.requests.request_body import header, read_json

DISPOSITIONS = (None, "attachment", "inline")


async def read_mail(request: Request, kind: type[Struct]) -> Any:
    """JSON that may carry files."""
    return await read_json(request, kind, JSON_LIMIT_BYTES, UPLOAD_SECONDS)


async def send(call: Call, inbox_id: str, body: shapes.NewMail) -> shapes.SentMessage:
    return await hand_over(call, inbox_id, body, "send")


async def reply(call: Call, inbox_id: str, message_id: str, body: shapes.NewMail) -> shapes.SentMessage:
    return await hand_over(call, inbox_id, body, "reply", answers=message_id)


async def reply_all(call: Call, inbox_id: str, message_id: str, body: shapes.NewMail) -> shapes.SentMessage:
    whole = msgspec.structs.replace(body, reply_all=True, to=None, cc=None, bcc=None)
    return await hand_over(call, inbox_id, whole, "reply-all", answers=message_id)


async def forward(call: Call, inbox_id: str, message_id: str, body: shapes.NewMail) -> shapes.SentMessage:
    return await hand_over(call, inbox_id, body, "forward", forward_of=message_id)


async def hand_over(
    call: Call,
    inbox_id: str,
    body: shapes.NewMail,
    verb: str,
    answers: str | None = None,
    forward_of: str | None = None,
) -> shapes.SentMessage:
    key = read_key(call)
    order = await pools.COMPOSING.run(to_order, inbox_id, key, body, verb, answers, forward_of)
    answer = await accept_order(call, order)
    receipt = msgspec.json.decode(answer.content, type=SendReceipt)
    return shapes.SentMessage(receipt.provider_message_id, receipt.thread_id)


def read_key(call: Call) -> str:
    """One that nobody uses again where none is given. An empty one is a mistake."""
    if b"idempotency-key" not in dict(call.request.scope["headers"]):
        return f"v0-{secrets.token_urlsafe(24)}"
    key = header(call.request, b"idempotency-key")
    if not key.strip():
        raise BadRequest("Idempotency-Key is empty.", field="Idempotency-Key")
    return idempotency.require_key(key)


def to_order(
    inbox_id: str,
    key: str,
    body: shapes.NewMail,
    verb: str,
    answers: str | None,
    forward_of: str | None,
) -> Order:
    files = read_files(body.attachments or [])
    to, cc, bcc = [
        read_addresses(name, shapes.addresses_of(getattr(body, name))) for name in ("to", "cc", "bcc")
    ]
    require_recipients(to, cc, bcc, answers)
    text, html = read_texts(body)
    named = [verb.encode(), inbox_id.encode(), (answers or forward_of or "").encode()]
    return Order(
        inbox_id=inbox_id,
        idempotency_key=key,
        request_hash=idempotency.hash_request(*named, msgspec.json.encode(body, order="sorted")),
        to=to,
        cc=cc,
        bcc=bcc,
        subject=read_subject(body.subject),
        body=text,
        body_html=html,
        thread_id=None,
        include_quote=True,
        reply_to=read_reply_to(body.reply_to),
        is_automated=False,
        files=files,
        reply_all=bool(body.reply_all),
        forward_of=forward_of,
        headers=read_own_headers(body.headers),
        reply_to_message_id=answers,
        copies_sender=False,
        labels=read_labels(body.labels),
    )


def require_recipients(
    to: Sequence[object], cc: Sequence[object], bcc: Sequence[object], answers: str | None
) -> None:
    if not to and answers is None:
        raise BadRequest("to names no recipient.", field="to")
    if len(to) + len(cc) + len(bcc) > RECIPIENTS_LIMIT:
        raise BadRequest(f"A mail can have {RECIPIENTS_LIMIT} recipients.", field="to")


def read_texts(body: shapes.NewMail) -> tuple[str, str | None]:
    """A text is made of HTML that comes alone."""
    if body.html and not body.text:
        return html_to_text(body.html), body.html
    return body.text or "", body.html or None


def read_subject(subject: str | None) -> str:
    if subject is not None and CONTROL.search(subject):
        raise BadRequest("subject must not hold line breaks or control characters.", field="subject")
    return subject or ""


def read_reply_to(given: shapes.Addresses | None) -> str | None:
    found = read_addresses("reply_to", shapes.addresses_of(given))
    return ", ".join(map(str, found)) or None


def read_own_headers(given: dict[str, str] | None) -> dict[str, str]:
    if given is not None and len(given) > HEADERS_LIMIT:
        raise BadRequest(f"A mail can have {HEADERS_LIMIT} header fields of your own.", field="headers")
    return read_headers(given or {})


def read_labels(given: shapes.OneOrMore | None) -> tuple[str, ...]:
    asked = shapes.words_of(given)
    labels.require_valid(asked, "labels")
    return tuple(own_labels(asked, "labels"))


def read_files(given: Sequence[shapes.NewFile]) -> tuple[DraftAttachment, ...]:
    files = tuple(read_file(file) for file in given)
    require_files_fit(len(file.content) for file in files)
    return files


def read_file(file: shapes.NewFile) -> DraftAttachment:
    if file.url is not None or file.content is None:
        raise BadRequest(
            "An attachment needs its content in base64: nothing is fetched from elsewhere.",
            field="attachments",
        )
    if file.content_disposition not in DISPOSITIONS:
        raise BadRequest("content_disposition is inline or attachment.", field="attachments")
    return DraftAttachment(file.filename or "", file.content_type or OCTETS, file.content)
