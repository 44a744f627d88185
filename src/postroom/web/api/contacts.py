"""Export a contact as a zip file, which is sent while it is made."""

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

import msgspec
from starlette.responses import Response, StreamingResponse

from postroom.clock import to_iso
from postroom.errors import NotFound
from postroom.mailbox import contact_mail, raw_mails
from postroom.mailbox.contact_mail import MailCursor
from postroom.operations import contacts
from postroom.operations.contacts import Contact
from postroom.processes import pools
from postroom.transfer import contact_archive
from postroom.transfer.contact_archive import ContactArchive, ExportedMessage
from postroom.web.api.messages import SAFE_FILE_HEADERS
from postroom.web.call import Call

ZIP = "application/zip"


async def export_contact(call: Call, address: str) -> Response:
    """Export all that is stored about a contact as a zip file with a manifest"""
    contact = await call.resources.db.write(contacts.begin_export, call.decider, address, call.now())
    headers = {**SAFE_FILE_HEADERS, "Content-Disposition": 'attachment; filename="contact.zip"'}
    return StreamingResponse(pieces(call, contact, call.now()), media_type=ZIP, headers=headers)


async def pieces(call: Call, contact: Contact, now: int) -> AsyncIterator[bytes]:
    archive = ContactArchive()
    archive.add("contact", "contact.json", msgspec.json.encode(contact))
    async for piece in _of_inboxes(call, archive, contact.address, now):
        yield piece
    for kind, list_some in (("events", contact_archive.list_events), ("audit", contact_archive.list_audit)):
        behind: tuple[int, str] | None = (-1, "")
        while behind is not None:
            asked = partial(list_some, scope=call.scope, address=contact.address, behind=behind, until=now)
            page = await call.resources.db.read(asked)
            behind = page.following
            yield archive.add_lines(kind, page.lines)
    about = {"address": contact.address, "accountId": call.account_id, "podId": call.scope.pod_id}
    yield archive.close({**about, "exportedAt": to_iso(now)})


async def _of_inboxes(call: Call, archive: ContactArchive, address: str, now: int) -> AsyncIterator[bytes]:
    db, scope = call.resources.db, call.scope
    place = await db.read(contact_mail.next_place, scope, MailCursor())
    while place is not None:
        following: MailCursor | None = None
        if place.part < len(contact_mail.MAIL):
            found, following = await db.read(contact_archive.list_messages, place, address, now)
            for message in found:
                with suppress(NotFound):  # deleted meanwhile
                    yield await _of_message(call, archive, message)
        elif place.part != contact_mail.REST:
            lines, following = await db.read(contact_archive.list_rows, place, address)
            yield archive.add_lines(contact_mail.OF_INBOX[place.part].replace("_", "-"), lines)
        place = following or await db.read(contact_mail.next_place, scope, place)


async def _of_message(call: Call, archive: ContactArchive, message: ExportedMessage) -> bytes:
    raw = await raw_mails.read(call.resources, message.id, with_trace=True)
    as_it_came = await raw_mails.read(call.resources, message.id, with_trace=False)
    return await pools.READING.run(archive.add_message, message, raw, as_it_came)
