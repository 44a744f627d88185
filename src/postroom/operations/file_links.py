"""Operations on links for files: an upload that is attached later, a download that works once."""

from typing import Annotated

from msgspec import Meta, Struct

from postroom import limits
from postroom.accounts.keys import Caller
from postroom.clock import to_iso
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.fields import Timestamp
from postroom.mailbox import attachments, file_links, messages
from postroom.mailbox.attachments import Attachment
from postroom.mailbox.file_links import DOWNLOAD, UPLOAD, FileLink, NamedFile
from postroom.operations.inbox_fields import get_named
from postroom.storage.database import Tx
from postroom_mail.mime import filenames
from postroom_mail.writing.header_words import CONTROL

Url = Annotated[str, Meta(description="Works once, without a key.")]


class NewUpload(Struct, rename="camel", frozen=True):
    inbox_id: Annotated[
        str, Meta(max_length=limits.ADDRESS_CHARACTERS, description="The inbox that sends it.")
    ]
    filename: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=limits.FILENAME_CHARACTERS,
            description="Its name, as recipients see it.",
        ),
    ]
    content_type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=limits.CONTENT_TYPE_CHARACTERS,
            description="Its media type. A PUT with another one is refused.",
        ),
    ]
    size_bytes: Annotated[
        int, Meta(ge=0, le=limits.ATTACHMENTS_BYTES, description="Its exact size. No other size is stored.")
    ]


class CreatedUpload(Struct, rename="camel", frozen=True):
    """Send the file with one PUT to `url`; then name `id` as `uploadId` in `attachments`."""

    id: str
    url: Url
    expires_at: Timestamp


class DownloadLink(Struct, rename="camel", frozen=True):
    """One GET of `url` gives the file."""

    url: Url
    expires_at: Timestamp
    filename: str
    content_type: str
    size_bytes: int


def create_upload(tx: Tx, caller: Caller, body: NewUpload, config: Config, now: int) -> CreatedUpload:
    """Create an upload: a URL that takes one file once, to be attached later"""
    inbox_id = get_named(tx, caller.scope, body.inbox_id).id
    name = filenames.clean(body.filename)
    if not name:
        raise BadRequest("filename has no visible character. Give the file a name.", field="filename")
    if CONTROL.search(body.content_type) or not body.content_type.isascii():
        raise BadRequest("contentType is not a media type. Use one such as text/csv.", field="contentType")
    file = NamedFile(name, body.content_type, body.size_bytes)
    link, path = file_links.add(tx, caller, UPLOAD, inbox_id, file, now)
    return CreatedUpload(link.id, f"{config.base_url}{path}", to_iso(link.expires_at))


def create_download_link(
    tx: Tx, caller: Caller, message_id: str, filename: str, config: Config, now: int
) -> DownloadLink:
    """Create a link that gives an attachment once, without a key"""
    message = messages.get_outline(tx, caller.scope, message_id)
    known = attachments.require_clean(attachments.get(tx, message.id, filename))
    file = NamedFile(known.filename, known.content_type, known.size_bytes, message.id)
    link, path = file_links.add(tx, caller, DOWNLOAD, message.inbox_id, file, now)
    return _show(link, f"{config.base_url}{path}")


def take_download(tx: Tx, link: FileLink) -> Attachment:
    """Take a download from its link, which then ends, even if the client leaves early."""
    messages.require_visible(tx, link.message_id or "")
    file_links.use_up(tx, link)
    return attachments.require_clean(attachments.get(tx, link.message_id or "", link.filename))


def _show(link: FileLink, url: str) -> DownloadLink:
    return DownloadLink(url, to_iso(link.expires_at), link.filename, link.content_type, link.size_bytes)
