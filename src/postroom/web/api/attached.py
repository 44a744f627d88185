"""Attachments that a request names instead of carrying: uploads, and files of messages."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct, structs

from postroom.accounts.permissions import READING, require_any, require_word
from postroom.errors import BadRequest, NotFound
from postroom.mailbox import attachments, file_links, inboxes, messages, raw_mails
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.file_links import FileLink
from postroom.operations.sending.files import AttachmentOf, FetchedFile, SentFile
from postroom.operations.sending.send import SendBody, hash_body
from postroom.outward.send_stages import Order, SendAnswer, require_files_fit
from postroom.processes import pools
from postroom.queue import idempotency
from postroom.web.api.messages import remove_blobs
from postroom.web.call import Call, Tx
from postroom_mail.mime.parse import parse_mail

Place = tuple[str, str]  # of a file: its message and its name


class NamedFiles(Struct, frozen=True):
    """Rows of the uploads and attachments that a request names."""

    uploads: dict[str, FileLink]
    of_messages: dict[Place, Attachment]


class Whole(Struct, frozen=True):
    """Files with their bytes, the uploads among them, and the messages that some come from."""

    files: list[SentFile]
    uploads: tuple[str, ...] = ()
    blobs: tuple[str | None, ...] = ()  # of the uploads

    @property
    def files_of(self) -> tuple[str, ...]:
        named = [file.of_message for file in self.files if isinstance(file, FetchedFile)]
        return tuple(dict.fromkeys(each for each in named if each is not None))


def are_named(files: Sequence[SentFile]) -> bool:
    return any(file.is_named for file in files)


async def send_named(
    call: Call,
    inbox_id: str,
    key: str,
    body: SendBody,
    send: Callable[[SendBody, Callable[[Order], Order]], Awaitable[SendAnswer]],
) -> SendAnswer:
    """Fetch the files that the body names, and send it.

    The hash is of the request, in which uploads are ids: a repeat is answered after they are used up.
    """
    request_hash = await pools.COMPOSING.run(hash_body, inbox_id, body)
    known = await call.resources.db.read(find_answer, call, inbox_id, key, request_hash)
    if known is not None:
        return SendAnswer(known, is_replay=True)
    found = await fetch(call, inbox_id, body.attachments)

    def complete(order: Order) -> Order:
        return structs.replace(
            order, request_hash=request_hash, uploads=found.uploads, files_of=found.files_of
        )

    answer = await send(structs.replace(body, attachments=found.files), complete)
    if not answer.is_replay:
        await remove_blobs(call.resources, found.blobs)
    return answer


def find_answer(tx: Tx, call: Call, inbox_id: str, key: str, request_hash: str) -> bytes | None:
    """Return the stored answer to this request, or None. Check a caller from the cache again."""
    if call.is_remembered and call.inbox is not None:
        inboxes.require_unchanged(tx, [(call.caller, call.inbox)], call.now())
    inbox = inboxes.get(tx, call.scope, inbox_id)
    return idempotency.find_answer(tx, call.scope, inbox, key, request_hash, call.now())


async def fetch(call: Call, inbox_id: str, files: Sequence[SentFile]) -> Whole:
    """Return the files with their bytes. Add up their sizes before reading any."""
    if not are_named(files):
        return Whole(list(files))
    named = await call.resources.db.read(look_up, call, inbox_id, files)
    sizes = [link.size_bytes for link in named.uploads.values()]
    sizes += [named.of_messages[place].size_bytes for place in map(place_of, files) if place is not None]
    require_files_fit([*sizes, *(len(file.content) for file in files)])
    contents = await fetch_files(call, named.of_messages)
    complete = [await whole(call, file, named, contents) for file in files]
    return Whole(complete, tuple(named.uploads), tuple(link.blob for link in named.uploads.values()))


def look_up(tx: Tx, call: Call, inbox_id: str, files: Sequence[SentFile]) -> NamedFiles:
    upload_ids = [file.upload_id for file in files if isinstance(file.upload_id, str)]
    if len(set(upload_ids)) < len(upload_ids):
        raise BadRequest("An upload can be attached once. Leave the second one out.", field="attachments")
    uploads = file_links.list_stored(tx, inbox_id, upload_ids, call.now())
    places = [place for place in map(place_of, files) if place is not None]
    return NamedFiles(uploads, {place: find_file(tx, call, *place) for place in places})


def place_of(file: SentFile) -> Place | None:
    named = file.attachment_of
    return (named.message_id, named.filename) if isinstance(named, AttachmentOf) else None


def find_file(tx: Tx, call: Call, message_id: str, filename: str) -> Attachment:
    """Return the attachment, if this key can download it."""
    require_any(call.caller.permissions, READING)
    require_word(call.caller.words, "message_read")
    try:
        message = messages.get_outline(tx, call.scope, message_id)
        return attachments.require_clean(attachments.get(tx, message.id, filename))
    except NotFound:
        raise BadRequest(
            "attachmentOf names no attachment that this API key can read. Check messageId and filename.",
            field="attachments",
        ) from None


async def fetch_files(call: Call, wanted: Mapping[Place, Attachment]) -> dict[Place, bytes]:
    """Return the bytes of each attachment. Read each message once."""
    found: dict[Place, bytes] = {}
    for message_id in dict.fromkeys(message_id for message_id, _ in wanted):
        raw = await raw_mails.read(call.resources, message_id, with_trace=False)
        parts = (await pools.READING.run(parse_mail, raw)).attachments
        places = [place for place in wanted if place[0] == message_id]
        found |= {place: parts[wanted[place].position].content for place in places}
    return found


async def whole(call: Call, file: SentFile, named: NamedFiles, contents: Mapping[Place, bytes]) -> SentFile:
    if isinstance(file.upload_id, str):
        link = named.uploads[file.upload_id]
        return FetchedFile(link.filename, await read_upload(call, link), link.content_type)
    place = place_of(file)
    if place is None:
        return file
    known = named.of_messages[place]
    return FetchedFile(known.filename, contents[place], known.content_type, of_message=place[0])


async def read_upload(call: Call, link: FileLink) -> bytes:
    if link.content is not None or link.blob is None:
        return link.content or b""
    try:
        return await pools.FILES.run(call.resources.blobs.get, link.blob)
    except FileNotFoundError:  # another request has just used it up
        raise BadRequest("An upload was just used. Create a new one.", field="attachments") from None
