"""The JSON of a message: the stored document, with what changes or expires appended."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Protocol

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom.limits import PAGE_BYTES
from postroom.mailbox import attachments, documents, follow_ups, holds, labels
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.documents import AS_GIVEN, Piece
from postroom.mailbox.follow_ups import Awaiting
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import (
    BLOCKED_MARK,
    CAPTURED,
    FAILED,
    FILES,
    HELD,
    IMPORTED,
    JUNK_MARK,
    LABELLED,
    PENDING,
    RECEIVED,
    SENT,
    TRASHED,
    Slice,
    list_archived,
)
from postroom.storage.database import Tx

AT_ONCE = 20  # messages whose files are read by one query


GOES_ON = "true: there is more text, which `GET …/text?offset=` returns."

# The end of most messages: only their status.
_PLAIN = {
    status: b',"status":"%s","blocked":false,"labels":[],"folder":"%s"'
    b',"awaiting":null,"attachmentsRead":true,"attachments":[]}'
    % (status.encode(), b"inbox" if status == RECEIVED else b"sent")
    for status in (PENDING, SENT, RECEIVED, FAILED)
}


class ShownMessage(Protocol):
    """What the JSON of a message is made from."""

    @property
    def id(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def marks(self) -> int: ...
    @property
    def stored(self) -> documents.Columns: ...


class ShownAttachment(Struct, rename="camel", frozen=True):
    filename: str
    content_type: str
    size_bytes: int
    url: str
    parsed_text: str | UnsetType = UNSET
    parsed_text_truncated: Annotated[bool, Meta(description=GOES_ON)] | UnsetType = UNSET
    extraction_method: str | UnsetType = UNSET
    filename_raw: Annotated[str, Meta(description=AS_GIVEN)] | UnsetType = UNSET
    infected: (
        Annotated[str, Meta(description="What clamd found in it. It can no longer be downloaded.")] | None
    ) = None
    scanned: Annotated[bool, Meta(description="Whether clamd has looked at it.")] = False


class Links(Struct, frozen=True):
    """Makes signed links to the files of messages."""

    base_url: str
    now: int
    secret: bytes | None = None  # None: it is read when the first file needs it

    def url(self, message_id: str, filename: str) -> str:
        assert self.secret is not None
        return attachments.signed_url(self.base_url, self.secret, message_id, filename, self.now)


def to_page(tx: Tx, found: Slice, links: Links) -> tuple[list[Piece], bool]:
    """Return as many messages as fit into a page, with commas, and whether some were left out.

    The text of files counts too.
    """
    shown: list[Piece] = []
    given = 0
    for start in range(0, len(found.messages), AT_ONCE):
        some = found.messages[start : start + AT_ONCE]
        for message, ending in zip(some, _endings(tx, some, links), strict=True):
            stored, _, reply_bytes = message.stored
            given += len(stored) + (reply_bytes or 0) + len(ending)
            if shown and given > PAGE_BYTES:
                return shown[:-1], True
            shown += documents.pieces(message.stored, ending)
            shown.append(b",")
    return shown[:-1], found.is_cut


def to_json(tx: Tx, found: Sequence[ShownMessage], links: Links) -> list[bytes]:
    """Return the stored bytes, with the fields that change or expire appended."""
    endings = _endings(tx, found, links)
    return [
        b"".join(documents.pieces(message.stored, ending))
        for message, ending in zip(found, endings, strict=True)
    ]


def _endings(tx: Tx, found: Sequence[ShownMessage], links: Links) -> list[bytes]:
    asking = [message.id for message in found if message.status in (PENDING, SENT)]
    awaiting = follow_ups.list_awaiting(tx, asking) if asking else {}
    received = [message.id for message in found if message.status == RECEIVED]
    archived = list_archived(tx, received) if received else frozenset()
    special = archived.union(awaiting)
    marked = [message for message in found if message.marks or message.id in special]
    endings = _read_endings(tx, marked, links, awaiting, archived) if marked else {}
    return [endings.get(message.id) or _PLAIN[message.status] for message in found]


def _read_endings(
    tx: Tx,
    found: Sequence[ShownMessage],
    links: Links,
    awaiting: Mapping[str, Awaiting],
    archived: Collection[str],
) -> dict[str, bytes]:
    files = attachments.list_of_messages(tx, [message.id for message in found if message.marks & FILES])
    held = holds.list_of_messages(tx, [message.id for message in found if message.marks & HELD])
    named = labels.of_messages(tx, [message.id for message in found if message.marks & LABELLED])
    if files and links.secret is None:
        links = replace(links, secret=attachments.link_secret(tx))
    shown = {
        message_id: [_show(message_id, file, links) for file in listed]
        for message_id, listed in files.items()
    }
    return {
        message.id: _ending(
            message,
            shown.get(message.id, []),
            held.get(message.id),
            named.get(message.id, []),
            awaiting.get(message.id),
            _folder(message, message.id in archived),
        )
        for message in found
    }


def _ending(
    message: ShownMessage,
    files: Sequence[ShownAttachment],
    hold: Hold | None,
    named: Sequence[str],
    awaiting: Awaiting | None,
    folder: bytes,
) -> bytes:
    why = b"" if hold is None else b',"hold":%s' % msgspec.json.encode(holds.show(hold))
    why += b',"captured":true' if message.marks & CAPTURED else b""
    why += b',"imported":true' if message.marks & IMPORTED else b""
    blocked = b"true" if message.marks & BLOCKED_MARK else b"false"
    are_read = b"true" if _are_read(message, files) else b"false"
    form = (
        b',"status":"%s","blocked":%s%s,"labels":%s,"folder":"%s","awaiting":%s,"attachmentsRead":%s'
        b',"attachments":%s}'
    )
    return form % (
        message.status.encode(),
        blocked,
        why,
        msgspec.json.encode(named),
        folder,
        msgspec.json.encode(awaiting),
        are_read,
        msgspec.json.encode(files),
    )


def _folder(message: ShownMessage, is_archived: bool) -> bytes:
    """Return the folder. What a policy stopped is in Junk; received email of a done thread is archived."""
    if message.marks & TRASHED:
        return b"trash"
    if message.marks & (JUNK_MARK | BLOCKED_MARK):
        return b"junk"
    if message.status != RECEIVED:
        return b"sent"
    return b"archive" if is_archived else b"inbox"


def _are_read(message: ShownMessage, files: Sequence[ShownAttachment]) -> bool:
    """Return whether each file has its text, or the reason for none. Sent files are not read."""
    return message.status != RECEIVED or all(file.extraction_method is not UNSET for file in files)


def _show(message_id: str, file: Attachment, links: Links) -> ShownAttachment:
    return ShownAttachment(
        filename=file.filename,
        content_type=file.content_type,
        size_bytes=file.size_bytes,
        url=links.url(message_id, file.filename),
        parsed_text=UNSET if file.parsed_text is None else file.parsed_text,
        parsed_text_truncated=file.is_text_cut or UNSET,
        extraction_method=UNSET if file.extraction_method is None else file.extraction_method,
        filename_raw=file.filename_raw or UNSET,
        infected=file.infected,
        scanned=file.scanned,
    )
