"""Sends, replies and forwards of /v0: turned into orders like those of /v1."""

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request

from postroom.errors import BadRequest
from postroom.operations.sending.address_fields import read_addresses
from postroom.operations.sending.files import OCTETS, SentFile
from postroom.operations.sending.send import SendBody, read_order
from postroom.outward.send_stages import Order, SendAnswer, SendReceipt
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.web.agentmail import shapes
from postroom.web.agentmail.messages import own_labels
from postroom.web.api.send import accept_order
from postroom.web.call import Call
from postroom.web.requests.files_body import JSON_LIMIT_BYTES, UPLOAD_SECONDS
from postroom.web.requests.request_body import header, read_json
from postroom_mail.html.text import html_to_text


async def read_mail(request: Request, kind: type[Struct]) -> Any:
    """Read JSON that may contain files."""
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
    return to_sent(await accept_order(call, order))


def to_sent(answer: SendAnswer) -> shapes.SentMessage:
    receipt = msgspec.json.decode(answer.content, type=SendReceipt)
    return shapes.SentMessage(receipt.provider_message_id, receipt.thread_id)


def read_key(call: Call) -> str:
    """Return the idempotency key, a random one if none is given. An empty one is an error."""
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
    """Return the order of a send. The subject may be missing, and replies may go to several addresses."""
    named = [verb.encode(), inbox_id.encode(), (answers or forward_of or "").encode()]
    said = SendBody(
        body=text_of(body.text, body.html),
        to=body.to or "",
        subject=body.subject,
        body_html=body.html or None,
        cc=body.cc or "",
        bcc=body.bcc or "",
        attachments=read_files(body.attachments or []),
        reply_all=bool(body.reply_all) and answers is not None,
        forward_of=forward_of,
        headers=body.headers or {},
        reply_to_message_id=answers,
    )
    request_hash = idempotency.hash_request(*named, msgspec.json.encode(body, order="sorted"))
    order = read_order(inbox_id, key, request_hash, said, needs_subject=False)
    return msgspec.structs.replace(
        order,
        reply_to=", ".join(map(str, read_addresses("reply_to", body.reply_to or ""))) or None,
        copies_sender=False,
        labels=tuple(own_labels(body.labels, "labels")),
    )


def text_of(text: str | None, html: str | None) -> str:
    """Return the text, made from the HTML if there is none."""
    return text or html_to_text(html or "")


def read_files(given: Sequence[shapes.NewFile]) -> list[SentFile]:
    return [read_file(file) for file in given]


def read_file(file: shapes.NewFile) -> SentFile:
    if file.url is not None or file.content is None:
        raise BadRequest(
            "An attachment needs its content in base64: nothing is fetched from elsewhere.",
            field="attachments",
        )
    return SentFile(file.filename or "", file.content, file.content_type or OCTETS)
