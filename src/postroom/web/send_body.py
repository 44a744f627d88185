"""The body of a send request, JSON or multipart, read into an order that is valid by itself."""

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message, Receive

from postroom import pools
from postroom.errors import BadRequest, PayloadTooLarge, RequestTimeout
from postroom.mail.address import Address, parse_list, validate
from postroom.mail.compose import CONTROL, DraftAttachment
from postroom.outward.orders import Order
from postroom.outward.send import RECIPIENTS_LIMIT
from postroom.queue import idempotency
from postroom.web.reading import explain, read_json

FILES_LIMIT_BYTES = 25 * 1024 * 1024
MULTIPART_LIMIT_BYTES = FILES_LIMIT_BYTES + 4 * 1024 * 1024
JSON_LIMIT_BYTES = FILES_LIMIT_BYTES * 4 // 3 + 4 * 1024 * 1024
UPLOAD_SECONDS = 600.0
FILES_LIMIT = 100
SUBJECT_LIMIT = 998
LIST_LIMIT_CHARACTERS = 50_000
LISTS = ("to", "cc", "bcc")

Addresses = Annotated[
    str | list[str], Meta(description="Addresses, or `Name <address>`; separated by commas, or as an array.")
]

_COMMENT = re.compile(r"\([^()]*\)")
_entry = re.compile(r'(?:"(?:[^"\\]|\\.)*"|<[^>]*>|[^,"<])+')


class SentFile(Struct, rename="camel", frozen=True):
    filename: str
    data: Annotated[bytes, Meta(description="The content in base64.")]
    content_type: str = "application/octet-stream"


class SendBody(Struct, rename="camel", frozen=True):
    to: Addresses
    body: Annotated[
        str, Meta(min_length=1, max_length=100_000, description="Plain text, or HTML, which is detected.")
    ]
    subject: Annotated[str, Meta(description="Required without threadId, ignored with it.")] | None = None
    body_html: Annotated[str, Meta(max_length=500_000)] | None = None
    thread_id: str | None = None
    include_quote: bool = True
    reply_to: str | None = None
    cc: Addresses = ""
    bcc: Addresses = ""
    attachments: list[SentFile] = []
    automated: Annotated[bool, Meta(description="No person wrote this: says so in Auto-Submitted.")] = False


def require_idempotency_key(request: Request) -> str:
    return idempotency.require_key(request.headers.get("idempotency-key"))


async def read_send(request: Request, kind: type[SendBody]) -> SendBody:
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                return await read_multipart(request, kind)
        except TimeoutError:
            raise RequestTimeout("The form did not arrive in time.") from None
    body: SendBody = await read_json(request, kind, JSON_LIMIT_BYTES, UPLOAD_SECONDS)
    return body


async def read_multipart(request: Request, kind: type[SendBody]) -> SendBody:
    """Files go to disk while they come in; what is too large is not read to its end."""
    counted = Request(request.scope, counting(request.receive, MULTIPART_LIMIT_BYTES))
    try:
        async with counted.form(max_files=FILES_LIMIT, max_part_size=4 * 1024 * 1024) as form:
            files = [file for file in form.getlist("attachments") if isinstance(file, UploadFile)]
            require_size(file.size or 0 for file in files)
            return to_body(form, [await read_file(file) for file in files], kind)
    except MultiPartException as error:
        raise BadRequest(f"The form could not be read: {error.message}") from None


def counting(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def receive_and_count() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise too_large()
        return message

    return receive_and_count


async def read_file(file: UploadFile) -> SentFile:
    content = await file.read()
    return SentFile(file.filename or "", content, file.content_type or "application/octet-stream")


def to_body(form: FormData, files: Sequence[SentFile], kind: type[SendBody]) -> SendBody:
    fields: dict[str, Any] = {}
    for name in form:
        values = [value for value in form.getlist(name) if isinstance(value, str)]
        if values and name != "attachments":
            fields[name] = values if name in LISTS else values[-1]
    try:
        body = msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        raise explain(error) from None
    return msgspec.structs.replace(body, attachments=list(files))


def too_large() -> PayloadTooLarge:
    return PayloadTooLarge("Attachments can have 25 MB in total.")


def require_size(sizes: Any) -> None:
    if sum(sizes) > FILES_LIMIT_BYTES:
        raise too_large()


async def to_order(inbox_id: str, key: str, body: SendBody) -> Order:
    require_size(len(file.data) for file in body.attachments)
    to, cc, bcc = (read_addresses(name, getattr(body, name)) for name in LISTS)
    require_recipients(to, cc, bcc)
    is_small = not body.attachments
    hashed = hash_body(inbox_id, body) if is_small else await pools.COMPOSING.run(hash_body, inbox_id, body)
    return Order(
        inbox_id=inbox_id,
        idempotency_key=key,
        request_hash=hashed,
        to=to,
        cc=cc,
        bcc=bcc,
        subject=read_subject(body),
        body=body.body,
        body_html=body.body_html,
        thread_id=body.thread_id,
        include_quote=body.include_quote,
        reply_to=read_reply_to(body.reply_to),
        is_automated=body.automated,
        files=tuple(
            DraftAttachment(file.filename, file.content_type, file.data) for file in body.attachments
        ),
    )


def hash_body(inbox_id: str, body: SendBody) -> str:
    return idempotency.hash_request(inbox_id.encode(), msgspec.msgpack.encode(body))


def read_addresses(field: str, value: str | list[str]) -> tuple[Address, ...]:
    found = []
    items = [value] if isinstance(value, str) else value
    if sum(map(len, items)) > LIST_LIMIT_CHARACTERS or len(items) > LIST_LIMIT_CHARACTERS:
        raise BadRequest(f"{field} is too long.", field=field)
    for item in items:
        if CONTROL.search(item):
            raise BadRequest(f"{field} must not hold control characters.", field=field)
        found += [read_address(field, entry) for entry in _entry.findall(item) if entry.strip()]
    return tuple(found)


def read_address(field: str, entry: str) -> Address:
    parsed = parse_list(entry)
    try:
        if len(parsed) != 1 or _is_loose(entry):
            raise ValueError("It is not an email address.")
        return Address(parsed[0].name, validate(parsed[0].address))
    except ValueError as error:
        raise BadRequest(f"{field}: '{entry.strip()[:100]}' cannot be used. {error}", field=field) from None


def _is_loose(entry: str) -> bool:
    """Words beside an address without angle brackets: a reader of mail guesses there, a sender must not."""
    return "<" not in entry and len(_COMMENT.sub("", entry).split()) > 1


def require_recipients(to: Sequence[Address], cc: Sequence[Address], bcc: Sequence[Address]) -> None:
    if not to:
        raise BadRequest("to names no recipient.", field="to")
    if len(to) + len(cc) + len(bcc) > RECIPIENTS_LIMIT:
        raise BadRequest(f"A mail can have {RECIPIENTS_LIMIT} recipients.", field="to")


def read_subject(body: SendBody) -> str:
    if body.thread_id is not None:
        return ""
    if not body.subject or len(body.subject) > SUBJECT_LIMIT:
        raise BadRequest(f"subject must be 1 to {SUBJECT_LIMIT} characters.", field="subject")
    if CONTROL.search(body.subject):
        raise BadRequest("subject must not hold line breaks or control characters.", field="subject")
    return body.subject


def read_reply_to(value: str | None) -> str | None:
    if value is None:
        return None
    (address,) = read_addresses("replyTo", value)[:1] or [None]
    if address is None:
        raise BadRequest("replyTo is not an email address.", field="replyTo")
    return str(address)
