"""The JSON of a message: the stored document, with what changes or expires put in at its end."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType

from postroom.mailbox import attachments, holds
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import RECEIVED, Message, Slice
from postroom.storage.database import Tx
from postroom.storage.pages import PAGE_BYTES

AT_ONCE = 20  # messages whose files are read by one query


class ShownAttachment(Struct, rename="camel", frozen=True):
    filename: str
    content_type: str
    size_bytes: int
    url: str
    parsed_text: str | UnsetType = UNSET
    extraction_method: str | UnsetType = UNSET


class Links(Struct, frozen=True):
    """Makes the links of a message's attachments, valid from `now`."""

    base_url: str
    secret: bytes
    now: int

    def url(self, message_id: str, filename: str) -> str:
        return attachments.signed_url(self.base_url, self.secret, message_id, filename, self.now)


def to_page(tx: Tx, found: Slice, links: Links) -> tuple[list[bytes], bool]:
    """As many as fit into a page, and whether some were left out. The text of files counts too."""
    shown: list[bytes] = []
    given = 0
    for start in range(0, len(found.messages), AT_ONCE):
        for document in to_json(tx, found.messages[start : start + AT_ONCE], links):
            given += len(document)
            if shown and given > PAGE_BYTES:
                return shown, True
            shown.append(document)
    return shown, found.is_cut


def to_json(tx: Tx, found: Sequence[Message], links: Links) -> list[bytes]:
    """The stored bytes, with what changes or expires put in at the end."""
    files = attachments.list_of_messages(tx, [message.id for message in found if message.has_attachments])
    held = holds.list_of_messages(tx, [message.id for message in found if message.has_hold])
    return [_complete(message, files.get(message.id, []), held.get(message.id), links) for message in found]


def _complete(message: Message, files: Sequence[Attachment], hold: Hold | None, links: Links) -> bytes:
    shown = msgspec.json.encode([_show(message.id, file, links) for file in files])
    why = b"" if hold is None else b',"hold":%s' % msgspec.json.encode(holds.show(hold))
    why += b',"captured":true' if message.is_captured else b""
    blocked = b"true" if message.is_blocked else b"false"
    are_read = b"true" if _are_read(message, files) else b"false"
    return b'%s,"status":"%s","blocked":%s%s,"attachmentsRead":%s,"attachments":%s}' % (
        *(message.document[:-1], message.status.encode(), blocked, why, are_read, shown),
    )


def _are_read(message: Message, files: Sequence[Attachment]) -> bool:
    """Whether the text of each file is there, or why there is none. Files that are sent are not read."""
    return message.status != RECEIVED or all(file.extraction_method is not None for file in files)


def _show(message_id: str, file: Attachment, links: Links) -> ShownAttachment:
    return ShownAttachment(
        filename=file.filename,
        content_type=file.content_type,
        size_bytes=file.size_bytes,
        url=links.url(message_id, file.filename),
        parsed_text=UNSET if file.parsed_text is None else file.parsed_text,
        extraction_method=UNSET if file.extraction_method is None else file.extraction_method,
    )
