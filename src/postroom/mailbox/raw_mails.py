"""Raw emails: the bytes as received or written, in the row if small, in a blob if large.

Text and HTML of a small email that are also in its document are cut out, and restored when read. The rest
is compressed if that makes it shorter; its length is then stored too.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from postroom.clock import SECOND
from postroom.errors import Unavailable, no_such
from postroom.mailbox import documents
from postroom.mailbox.attachments import LINK_LIFETIME, Attachment
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage import packing
from postroom.storage.blobs import BlobPart, Blobs, report_damage
from postroom.storage.database import Tx, all_of, one_of
from postroom_mail.mime import headers
from postroom_mail.mime.parse import parse_mail

T = TypeVar("T")

IN_ROW_BYTES = 256 * 1024
WORTH_CUTTING_CHARACTERS = 256
LINKED_BYTES = 1024 * 1024  # for a smaller file a link costs more than it saves
LOOKED_FOR_BYTES = 64
HEAD_BYTES = 32 * 1024
USUAL_HEAD_BYTES = 8 * 1024
WRITTEN_COLUMNS = "content, content_bytes"


class RawMail(Struct, frozen=True):
    """The bytes or the blob that holds them, and the length of our own trace field.

    `signature` is the one that a captured email would have been sent with.
    """

    content: bytes | None
    blob: str | None
    trace_bytes: int
    signature: bytes


class Cut(Struct, frozen=True):
    """An email without its text and HTML, and their positions; None: not cut out."""

    content: bytes
    text_at: int | None = None
    html_at: int | None = None


def cut(content: bytes, text: str, html: str) -> Cut:
    """Cuts out the text, then the HTML; `restore` reverses that."""
    if len(content) > IN_ROW_BYTES:
        return Cut(content)
    without_text, text_at = _cut_out(content, text)
    without_both, html_at = _cut_out(without_text, html)
    return Cut(without_both, text_at, html_at)


def restore(kept: Cut, text: str, html: str) -> bytes:
    with_html = _put_in(kept.content, html, kept.html_at)
    return _put_in(with_html, text, kept.text_at)


def _cut_out(content: bytes, text: str) -> tuple[bytes, int | None]:
    """Looks for its beginning first: a text that is not there must not cost a long search."""
    if len(text) < WORTH_CUTTING_CHARACTERS:
        return content, None
    wanted = _on_the_wire(text)
    at = content.find(wanted[:LOOKED_FOR_BYTES])
    if at == -1 or not content.startswith(wanted, at):
        return content, None
    return content[:at] + content[at + len(wanted) :], at


def _put_in(content: bytes, text: str, at: int | None) -> bytes:
    return content if at is None else content[:at] + _on_the_wire(text) + content[at:]


def _on_the_wire(text: str) -> bytes:
    return text.encode().replace(b"\n", b"\r\n")


def to_written(content: bytes | None) -> tuple[bytes | None, int | None]:
    """Return the columns to store; None for content in a blob."""
    packed = None if content is None else packing.pack(content)
    return (content, None) if content is None or packed is None else (packed, len(content))


def plain(content: bytes, content_bytes: int | None) -> bytes:
    """Return the content from the columns of a row."""
    return bytes(content) if content_bytes is None else packing.unpack(bytes(content))


def get(tx: Tx, message_id: str) -> RawMail:
    row = tx.one(
        "select content, content_bytes, blob, trace_bytes, signature, text_at, html_at from raw_mails"
        " where message_id = :id",
        id=message_id,
    )
    if row is None:
        raise no_such("message")
    content = None if row["content"] is None else plain(row["content"], row["content_bytes"])
    if content is not None and (row["text_at"], row["html_at"]) != (None, None):
        content = _restored(tx, message_id, Cut(content, row["text_at"], row["html_at"]))
    return RawMail(content, row["blob"], row["trace_bytes"], bytes(row["signature"] or b""))


def heads(tx: Tx, message_ids: Sequence[str]) -> dict[str, bytes]:
    """Return the header of each email with its final empty line; none for a large email or a long header."""
    found = _heads(tx, message_ids, USUAL_HEAD_BYTES)
    return found | _heads(tx, [each for each in message_ids if each not in found], HEAD_BYTES)


def _heads(tx: Tx, message_ids: Sequence[str], most: int) -> dict[str, bytes]:
    if not message_ids:
        return {}
    is_asked, asked = one_of("message_id", message_ids)
    rows = tx.tuples(
        "select message_id, case when content_bytes is null then substr(content, 1, :most) else content end,"
        " content_bytes, text_at, html_at, trace_bytes from raw_mails"
        f" where content is not null and {is_asked}",
        most=most,
        **asked,
    )
    found: dict[str, bytes] = {}
    for message_id, content, content_bytes, text_at, html_at, trace_bytes in rows:
        head = head_of(Cut(plain(content, content_bytes), text_at, html_at), trace_bytes, most)
        if head is not None:
            found[message_id] = head
    return found


def head_of(kept: Cut, trace_bytes: int, most: int = HEAD_BYTES) -> bytes | None:
    """Return the header with its final empty line; None if it is long, or a text was cut out of it."""
    beginning = kept.content[:most]
    head = beginning[: head_end(beginning, trace_bytes)]
    is_cut = any(at is not None and at < len(head) for at in (kept.text_at, kept.html_at))
    is_long = len(beginning) == most and not head.endswith((b"\n\n", b"\n\r\n"))
    return None if is_cut or is_long else head


def envelopes(tx: Tx, message_ids: Sequence[str]) -> dict[str, bytes]:
    """Return the envelopes that were made when the emails came."""
    if not message_ids:
        return {}
    is_asked, asked = one_of("message_id", message_ids)
    rows = tx.tuples(
        f"select message_id, envelope from raw_mails where envelope is not null and {is_asked}", **asked
    )
    return {message_id: bytes(envelope) for message_id, envelope in rows}


def head_end(content: bytes, trace_bytes: int = 0) -> int:
    """Return where the body begins, for every reader. Our own trace does not change how the email is read."""
    return headers.split(content, trace_bytes).body_start


def keep_dkim_signature(tx: Tx, message_id: str, signature: bytes) -> None:
    tx.run(
        "update raw_mails set signature = :signature where message_id = :id",
        signature=signature,
        id=message_id,
    )


def _restored(tx: Tx, message_id: str, kept: Cut) -> bytes:
    row = tx.one(f"select {documents.COLUMNS} from messages where id = :id", id=message_id)
    if row is None:
        raise no_such("message")
    document = documents.decode(documents.from_row(row))
    return restore(kept, document.body_text, document.body_html)


def sizes(tx: Tx, message_ids: Sequence[str]) -> dict[str, int]:
    """Return the sizes in bytes."""
    rows = all_of(tx, "select message_id, size_bytes from raw_mails where :wanted", "message_id", message_ids)
    return {row["message_id"]: int(row["size_bytes"]) for row in rows}


def find_used_blobs(tx: Tx, blobs: Sequence[str]) -> set[str]:
    """Return those blobs that some email uses."""
    return {row["blob"] for row in all_of(tx, "select blob from raw_mails where :wanted", "blob", blobs)}


async def put_if_large(resources: Resources, raw: bytes) -> str | None:
    """Returns the durable blob that holds it; None if it goes into the row."""
    if len(raw) <= IN_ROW_BYTES:
        return None
    return await pools.FILES.run(resources.blobs.put, raw)


async def read(resources: Resources, message_id: str, with_trace: bool) -> bytes:
    """Read an email.

    Without our trace field it parses as it did on arrival; some damaged emails would not with it.
    """
    raw = await resources.db.read(get, message_id)
    content = raw.content
    if content is None:
        assert raw.blob is not None
        content = await read_blob(resources, raw.blob)
    return raw.signature + content if with_trace else content[raw.trace_bytes :]


async def read_blob(resources: Resources, blob: str) -> bytes:
    """Raises DamagedBlob, also for one that is missing."""
    return await _or_missing(resources, blob, resources.blobs.get)


async def _or_missing(resources: Resources, blob: str, read_it: Callable[[str], T]) -> T:
    """Read a blob.

    If its file is missing, the rows show whether the email was just deleted or the file is lost.
    """
    try:
        return await pools.FILES.run(read_it, blob)
    except FileNotFoundError:
        if await resources.db.read(find_used_blobs, [blob]):
            raise report_damage(blob) from None
        raise no_such("message") from None


async def stream(resources: Resources, raw: RawMail) -> AsyncIterator[bytes]:
    """Streams a large email with our trace field in chunks, never all in memory."""
    assert raw.blob is not None
    chunks = await _or_missing(resources, raw.blob, resources.blobs.stream)
    first = await pools.FILES.run(next, chunks, b"")
    return _chunks(raw.signature + first, chunks)


async def _chunks(first: bytes, rest: Iterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    while chunk := await pools.FILES.run(next, rest, b""):
        yield chunk


async def find_link(resources: Resources, message_id: str, file: Attachment) -> str | None:
    """Return a link to the blob store for a large file of a large email.

    None if it must be read from the email.
    """
    if file.size_bytes < LINKED_BYTES or not resources.blobs.is_shared:
        return None
    raw = await resources.db.read(get, message_id)
    if raw.blob is None:
        return None
    part = BlobPart(f"{raw.blob}.{file.position}", file.filename, file.content_type)
    return await pools.READING.run(_link, resources.blobs, raw.blob, raw.trace_bytes, part, file.position)


def _link(blobs: Blobs, blob: str, trace_bytes: int, part: BlobPart, position: int) -> str | None:
    def cut_out() -> bytes:
        return parse_mail(blobs.get(blob)[trace_bytes:]).attachments[position].content

    return blobs.link(part, cut_out, LINK_LIFETIME / SECOND)


async def remove_blob(resources: Resources, blob: str | None) -> None:
    """Called after the commit that made it unused. If it fails, a later sweep removes it."""
    if blob is not None:
        with contextlib.suppress(Unavailable, OSError):
            await pools.FILES.run(resources.blobs.remove, blob)
