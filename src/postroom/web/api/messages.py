"""Messages and their attachments over REST, and the deletion of threads."""

from collections.abc import Iterable
from typing import Annotated, Literal
from urllib.parse import quote

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from postroom import ids
from postroom.accounts.permissions import MANAGING, require_any
from postroom.accounts.scope import Scope
from postroom.errors import NoPreview
from postroom.mailbox import attachments, drafts, infected, messages, raw_mails
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.drafts import KeptFile
from postroom.operations import threads
from postroom.processes import pools
from postroom.resources import Resources
from postroom.web.call import Call, Tx
from postroom.web.requests.request_body import has_short_query
from postroom_mail.mime.parse import parse_mail

LINK_PREFIX = "/v1/attachments/"
RAW_PREFIX, RAW_SUFFIX = "/v1/messages/", "/raw"
LINK_SLASHES = 4
PREVIEW_SECONDS = 10.0
RFC_822 = "message/rfc822"
SAFE_FILE_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}


async def remove_blobs(resources: Resources, blobs: Iterable[str | None]) -> None:
    """Remove blobs, after the commit: a leftover blob is swept later, but a row needs its blob."""
    for blob in blobs:
        await raw_mails.remove_blob(resources, blob)


async def delete_thread(call: Call, thread_id: str) -> None:
    """Permanently delete a thread and its messages"""
    db, is_gone = call.resources.db, False
    while not is_gone:  # a long one takes several transactions
        blobs, is_gone = await db.write(threads.delete_some_of_thread, call.decider, thread_id, call.now())
        await remove_blobs(call.resources, blobs)


async def send_raw(resources: Resources, message_id: str) -> Response:
    raw = await resources.db.read(raw_mails.get, message_id)
    if raw.content is not None:
        return Response(raw.signature + raw.content, media_type=RFC_822, headers=SAFE_FILE_HEADERS)
    chunks = await raw_mails.stream(resources, raw)
    return StreamingResponse(chunks, media_type=RFC_822, headers=SAFE_FILE_HEADERS)


class DownloadQuery(Struct, frozen=True):
    infected: (
        Annotated[
            Literal["yes"], Meta(description="Also a file in which clamd found malware; needs `manage`.")
        ]
        | UnsetType
    ) = UNSET


async def get_raw_message(call: Call, message_id: str, query: DownloadQuery) -> Response:
    """Get a message as it came, RFC 5322"""
    name = await call.resources.db.read(find_infection, call.scope, message_id)
    if query.infected is UNSET:
        await call.resources.db.read(infected.require_whole, message_id)
    elif name:
        require_any(call.caller.permissions, MANAGING)
    return await send_raw(call.resources, message_id)


def find_infection(tx: Tx, scope: Scope, message_id: str) -> str:
    return infected.find_name(tx, messages.get(tx, scope, message_id).id)


async def get_attachment(call: Call, message_id: str, filename: str, query: DownloadQuery) -> Response:
    """Download an attachment; its signed link works without a key"""
    file = await call.resources.db.read(find_file, call.scope, message_id, filename)
    if query.infected is UNSET:
        attachments.require_clean(file)
    elif file.infected is not None:
        require_any(call.caller.permissions, MANAGING)
    return await send_file(call.resources, message_id, file)


def find_file(tx: Tx, scope: Scope, message_id: str, filename: str) -> Attachment:
    message = messages.get(tx, scope, message_id)
    return attachments.get(tx, message.id, filename)


async def get_attachment_preview(call: Call, message_id: str, filename: str) -> Response:
    """Get a preview image of an attachment: PNG, at most 800 pixels wide and high"""
    file = await call.resources.db.read(find_file, call.scope, message_id, filename)
    attachments.require_clean(file)
    raw = await raw_mails.read(call.resources, message_id, with_trace=False)
    mail = await pools.READING.run(parse_mail, raw)
    make = call.resources.previews.make
    picture = None if make is None else await make(mail.attachments[file.position].content, PREVIEW_SECONDS)
    if picture is None:
        raise NoPreview(
            "There is no preview of this file: it is not a PDF, JPEG, PNG, GIF or WebP, or cannot be drawn."
        )
    headers = {**SAFE_FILE_HEADERS, "Cache-Control": "private, max-age=3600"}
    return Response(picture, media_type="image/png", headers=headers)


def is_signed_link(request: Request) -> bool:
    path = request.scope["path"]
    is_raw = path.startswith(RAW_PREFIX) and path.endswith(RAW_SUFFIX)
    return (
        (path.startswith(LINK_PREFIX) or is_raw)
        and path.count("/") == LINK_SLASHES
        and has_short_query(request)
        and "signature" in request.query_params
        and "authorization" not in request.headers
    )


async def get_raw_by_link(resources: Resources, message_id: str, expires: str, signature: str) -> Response:
    await resources.db.read(require_raw_link, message_id, expires, signature, resources.now())
    return await send_raw(resources, message_id)


def require_raw_link(tx: Tx, message_id: str, expires: str, signature: str, now: int) -> None:
    attachments.require_signed_link(attachments.link_secret(tx), message_id, "", expires, signature, now)
    messages.require_visible(tx, message_id)
    infected.require_whole(tx, message_id)


def find_linked_file(
    tx: Tx, message_id: str, filename: str, expires: str, signature: str, now: int
) -> Attachment | KeptFile:
    """Return the attachment of a message or a draft that a signed link names."""
    secret = attachments.link_secret(tx)
    attachments.require_signed_link(secret, message_id, filename, expires, signature, now)
    if ids.is_id(ids.DRAFT, message_id):
        return drafts.get_file(tx, message_id, filename)
    messages.require_visible(tx, message_id)
    return attachments.require_clean(attachments.get(tx, message_id, filename))


async def get_attachment_by_link(
    resources: Resources, message_id: str, filename: str, expires: str, signature: str
) -> Response:
    asked = message_id, filename, expires, signature
    file = await resources.db.read(find_linked_file, *asked, resources.now())
    if isinstance(file, Attachment):
        return await send_file(resources, message_id, file)
    content = file.content
    if content is None:
        content = await pools.FILES.run(resources.blobs.get, file.blob or "")
    return to_file_response(content, file.filename, file.content_type)


async def send_file(resources: Resources, message_id: str, file: Attachment) -> Response:
    if (link := await raw_mails.find_link(resources, message_id, file)) is not None:
        return RedirectResponse(link, 302, headers={"Cache-Control": "no-store"})
    raw = await raw_mails.read(resources, message_id, with_trace=False)
    mail = await pools.READING.run(parse_mail, raw)
    return to_file_response(mail.attachments[file.position].content, file.filename, file.content_type)


def to_file_response(content: bytes, filename: str, content_type: str) -> Response:
    disposition = f"attachment; filename*=UTF-8''{quote(filename, safe='')}"
    headers = {**SAFE_FILE_HEADERS, "Content-Disposition": disposition, "Content-Type": content_type}
    return Response(content, headers=headers)
