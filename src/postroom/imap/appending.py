"""APPEND: a mail that a program hands over becomes a message; no event tells of it."""

from postroom.accounts.permissions import WRITING, require_any
from postroom.imap import listing
from postroom.imap.dialogue.requests import AppendMail
from postroom.imap.state import ImapState
from postroom.inward.receive import TooManyHops
from postroom.mail import headers
from postroom.mailbox.documents import Document
from postroom.mailbox.folders import places
from postroom.operations.folders import mails, names
from postroom.operations.folders.names import FolderRefused
from postroom.resources import Tx
from postroom.transfer.import_mail import import_new

HEADER_BYTES = 256 * 1024


async def append(client: ImapState, request: AppendMail) -> bytes:
    caller, inbox_id = client.who
    require_any(caller.permissions, WRITING)
    db = client.resources.db
    folder = await db.read(names.require_folder, inbox_id, request.folder, is_target=True)
    _require_possible(folder, request)
    uid = await _find_sent(client, folder, request.raw)
    if uid is None:
        uid = await _import(client, folder, request)
    validity = await db.read(places.find_validity, inbox_id)
    if client.view is not None:
        await listing.tell_changes(client)
    return b"OK [APPENDUID %d %d] Done." % (validity or 0, uid)


def _require_possible(folder: str, request: AppendMail) -> None:
    if folder in (places.DRAFTS, places.JUNK):
        raise FolderRefused("CANNOT", "Nothing is put into this folder.")
    if not request.raw.strip():
        raise FolderRefused("CANNOT", "An empty mail is none.")
    mails.read_flags(request.flags)


async def _find_sent(client: ImapState, folder: str, raw: bytes) -> int | None:
    """A program files its own copy of what it has just sent: that is in Sent already."""
    if folder != places.SENT:
        return None
    fields = headers.split(raw[:HEADER_BYTES], 0).headers
    found = headers.message_ids(fields.text("message-id"), 1)
    _, inbox_id = client.who
    return await client.resources.db.read(mails.find_sent, inbox_id, found[0] if found else "")


async def _import(client: ImapState, folder: str, request: AppendMail) -> int:
    caller, inbox_id = client.who
    assert client.inbox is not None
    now = client.resources.now()

    def file(tx: Tx, document: Document) -> int:
        return mails.file_imported(tx, caller, inbox_id, folder, document, request.flags, now)

    at = now if request.at is None else max(0, min(request.at, now))
    try:
        return await import_new(client.resources, client.extractor, client.inbox, request.raw, at, file)
    except TooManyHops:
        raise FolderRefused("CANNOT", "This mail has passed too many servers.") from None
