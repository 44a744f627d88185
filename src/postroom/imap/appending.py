"""APPEND: an email uploaded by a program becomes a message or a draft; no event is recorded."""

from collections.abc import Sequence

from postroom.accounts.people import own_emails
from postroom.accounts.permissions import WRITING, require_any
from postroom.errors import ApiError
from postroom.imap import listing
from postroom.imap.dialogue.requests import AppendMail
from postroom.imap.state import ImapState
from postroom.inward.receive import TooManyHops
from postroom.mailbox import draft_mail, raw_mails
from postroom.mailbox.documents import Document
from postroom.mailbox.drafts import KeptFile, is_small
from postroom.mailbox.folders import uid_map
from postroom.operations.folders import mails, names
from postroom.operations.folders.names import FolderRefused
from postroom.outward.send_stages import require_files_fit
from postroom.processes import pools
from postroom.resources import Resources, Tx
from postroom.transfer.import_mail import import_new
from postroom_mail.mime import headers
from postroom_mail.writing.compose import DraftAttachment

HEADER_BYTES = 256 * 1024


async def append(client: ImapState, request: AppendMail) -> bytes:
    caller, inbox_id = client.who
    require_any(caller.permissions, WRITING)
    db = client.resources.db
    folder = await db.read(names.require_folder, inbox_id, request.folder, is_target=True)
    _require_possible(folder, request)
    assert client.mail is not None, "the email came before the command was whole"
    raw = await pools.FILES.run(client.mail.read)
    if not raw.strip():
        raise FolderRefused("CANNOT", "The email is empty.")
    if await db.read(own_emails.is_own, own_emails.find_marks(raw)):
        raise FolderRefused("CANNOT", "The server wrote this email to a person. Agents must not read it.")
    if folder == uid_map.DRAFTS:
        uid = await _draft(client, request, raw)
    else:
        found = await _find_sent(client, folder, raw)
        uid = await _import(client, folder, request, raw) if found is None else found
    validity = await db.read(uid_map.find_validity, inbox_id)
    if client.view is not None:
        await listing.write_changes(client)
    return b"OK [APPENDUID %d %d] Done." % (validity or 0, uid)  # RFC 4315 section 3


def _require_possible(folder: str, request: AppendMail) -> None:
    if folder == uid_map.JUNK:
        raise FolderRefused("CANNOT", "Nothing can be put into this folder.")
    mails.read_flags(request.flags)


async def _draft(client: ImapState, request: AppendMail, raw: bytes) -> int:
    caller, inbox_id = client.who
    resources = client.resources
    read = await pools.READING.run(draft_mail.read, raw)
    require_files_fit(len(file.content) for file in read.files)
    files = await pools.FILES.run(_put_files, resources, read.files)
    try:
        return await resources.db.write(
            mails.add_draft, caller, inbox_id, read, files, request.flags, resources.now()
        )
    except ApiError:
        for file in files:
            await raw_mails.remove_blob(resources, file.blob)
        raise


def _put_files(resources: Resources, given: Sequence[DraftAttachment]) -> list[KeptFile]:
    return [
        KeptFile(file.filename, file.content_type, len(file.content), content=file.content)
        if is_small(file.content)
        else KeptFile(
            file.filename, file.content_type, len(file.content), blob=resources.blobs.put(file.content)
        )
        for file in given
    ]


async def _find_sent(client: ImapState, folder: str, raw: bytes) -> int | None:
    """Return the UID of the email, if it is in Sent already.

    A mail client stores its own copy of what it has just sent.
    """
    if folder != uid_map.SENT:
        return None
    fields = headers.split(raw[:HEADER_BYTES], 0).headers
    found = headers.message_ids(fields.text("message-id"), 1)
    _, inbox_id = client.who
    return await client.resources.db.read(mails.find_sent, inbox_id, found[0] if found else "")


async def _import(client: ImapState, folder: str, request: AppendMail, raw: bytes) -> int:
    caller, inbox_id = client.who
    assert client.inbox is not None
    now = client.resources.now()

    def file(tx: Tx, document: Document) -> int:
        return mails.file_imported(tx, caller, inbox_id, folder, document, request.flags, now)

    at = now if request.at is None else max(0, min(request.at, now))
    try:
        return await import_new(client.resources, client.extractor, client.inbox, raw, at, file)
    except TooManyHops:
        raise FolderRefused("CANNOT", "This email has passed too many servers.") from None
