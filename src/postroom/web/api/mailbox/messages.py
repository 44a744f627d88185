"""Messages and their attachments over REST."""

from urllib.parse import quote

import msgspec
from msgspec import Raw
from starlette.responses import RedirectResponse, Response, StreamingResponse

from postroom.errors import NothingToDo
from postroom.inward import admit, examine
from postroom.mail.parse import parse_mail
from postroom.mailbox import attachments, inboxes, message_json, messages, raw_mails
from postroom.mailbox.attachments import Attachment
from postroom.processes import pools
from postroom.queue import deliveries
from postroom.resources import Resources
from postroom.upkeep import deletion
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import MessageQuery
from postroom.web.interface.shapes import shapes

RFC_822 = "message/rfc822"
SAFE_FILE_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"}


async def list_inbox_messages(call: Call, inbox_id: str, query: MessageQuery) -> shapes.RawMessagePage:
    """List the messages of an inbox across all threads, newest first"""

    def work(tx: Tx) -> Response:
        inbox = call.get_inbox(tx, inbox_id)
        found, total = messages.list_of_inbox(
            tx, inbox.id, query.direction, query.limit, query.offset, query.include is not None
        )
        shown, is_cut = message_json.to_page(tx, found, call.links())
        return shapes.message_page(shown, total, is_cut)

    return await call.read_page(query.offset, work)


async def get_message(call: Call, message_id: str) -> shapes.RawMessage:
    """Get a message"""

    def work(tx: Tx) -> bytes:
        message = messages.get(tx, call.reach, message_id)
        shown = message_json.to_json(tx, [message], call.links())[0]
        recipients = [shapes.ShownRecipient.of(item) for item in deliveries.list_of_message(tx, message.id)]
        return b'%s,"recipients":%s}' % (shown[:-1], msgspec.json.encode(recipients)) if recipients else shown

    return Raw(await call.resources.db.read(work))


async def delete_message(call: Call, message_id: str) -> None:
    """Delete a message for good; what has not left does not leave any more"""

    def work(tx: Tx) -> list[str]:
        message = messages.get(tx, call.reach, message_id)
        where = inboxes.get(tx, call.reach, message.inbox_id).reach
        call.record(tx, "message.deleted", message.id, within=where)
        return deletion.remove_message(tx, call.reach, message.id, call.now())

    await remove_blobs(call, await call.resources.db.write(work))


async def release_message(call: Call, message_id: str) -> shapes.RawMessage:
    """Let a message in that a policy stopped, as if it came now"""

    def work(tx: Tx) -> list[str]:
        inbox_id = messages.get(tx, call.reach, message_id).inbox_id
        inbox = inboxes.count(tx, inbox_id)  # of two at the same moment the second sees the first
        message = messages.get(tx, call.reach, message_id)
        if not message.is_blocked or examine.is_waiting(tx, message.id):
            raise NothingToDo("No policy has stopped this message.")
        call.record(tx, "message.released", message.id, within=inbox.reach)
        return admit.release(tx, inbox, message, call.resources.config.base_url, call.now())

    call.resources.db.ring(*await call.resources.db.write(work))
    return await get_message(call, message_id)


async def remove_blobs(call: Call, blobs: list[str]) -> None:
    """After the commit: a blob that is left behind is swept later, a row without one could not be read."""
    for blob in blobs:
        await raw_mails.remove_blob(call.resources, blob)


async def get_raw_message(call: Call, message_id: str) -> Response:
    """Get a message as it came, RFC 5322"""
    await call.resources.db.read(messages.get, call.reach, message_id)
    raw = await call.resources.db.read(raw_mails.get, message_id)
    if raw.content is not None:
        return Response(raw.signature + raw.content, media_type=RFC_822, headers=SAFE_FILE_HEADERS)
    chunks = await raw_mails.stream(call.resources, raw)
    return StreamingResponse(chunks, media_type=RFC_822, headers=SAFE_FILE_HEADERS)


async def get_attachment(call: Call, message_id: str, filename: str) -> Response:
    """Download an attachment; its signed link works without a key"""

    def work(tx: Tx) -> Attachment:
        message = messages.get(tx, call.reach, message_id)
        return attachments.get(tx, message.id, filename)

    return await send_file(call.resources, message_id, await call.resources.db.read(work))


async def get_attachment_by_link(
    resources: Resources, message_id: str, filename: str, expires: str, signature: str
) -> Response:
    def work(tx: Tx) -> Attachment:
        secret = attachments.link_secret(tx)
        attachments.require_signature(secret, message_id, filename, expires, signature, resources.now())
        messages.require_visible(tx, message_id)
        return attachments.get(tx, message_id, filename)

    return await send_file(resources, message_id, await resources.db.read(work))


async def get_attachment_text(call: Call, message_id: str, filename: str) -> shapes.AttachmentText:
    """Get the text found in an attachment"""

    def work(tx: Tx) -> Attachment:
        message = messages.get(tx, call.reach, message_id)
        return attachments.get(tx, message.id, filename)

    return shapes.AttachmentText.of(await call.resources.db.read(work))


async def send_file(resources: Resources, message_id: str, file: Attachment) -> Response:
    if (link := await raw_mails.find_link(resources, message_id, file)) is not None:
        return RedirectResponse(link, 302, headers={"Cache-Control": "no-store"})
    raw = await raw_mails.read(resources, message_id, with_trace=False)
    mail = await pools.READING.run(parse_mail, raw)
    disposition = f"attachment; filename*=UTF-8''{quote(file.filename, safe='')}"
    headers = {**SAFE_FILE_HEADERS, "Content-Disposition": disposition, "Content-Type": file.content_type}
    return Response(mail.attachments[file.position].content, headers=headers)
