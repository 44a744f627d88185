"""Attachments: the files of a message, the text found in them, and links that expire."""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from postroom import limits
from postroom.accounts import secret_values
from postroom.clock import MINUTE, SECOND
from postroom.errors import Infected, InvalidSignature, NoText, no_such
from postroom.storage.database import Row, Tx, all_of
from postroom_mail.files.extraction import MAX_TEXT_CHARS

LINK_LIFETIME = limits.ATTACHMENT_LINK_MINUTES * MINUTE
LINKS = "attachment-links"
# Without the rest of a cut text: only a reader who continues pays for it.
_COLUMNS = (
    "message_id, filename, position, content_type, size_bytes, extraction_method, parsed_text, filename_raw,"
    " text_rest is not null as is_text_cut, infected, scanned"
)


class Attachment(Struct, frozen=True):
    filename: str
    position: int
    content_type: str
    size_bytes: int
    extraction_method: str | None = None
    parsed_text: str | None = None
    filename_raw: str | None = None  # as given, if that is not the name
    is_text_cut: bool = False  # the text goes on behind `parsed_text`
    rest: str | None = None  # the text after it, if it was just read
    infected: str | None = None  # what clamd found in it
    scanned: bool = False  # whether clamd has looked at it

    @classmethod
    def from_row(cls, row: Row) -> "Attachment":
        return cls(
            row["filename"],
            row["position"],
            row["content_type"],
            row["size_bytes"],
            row["extraction_method"],
            row["parsed_text"],
            row["filename_raw"],
            bool(row["is_text_cut"]),
            None,
            row["infected"],
            bool(row["scanned"]),
        )

    def with_text(self, method: str, text: str | None) -> "Attachment":
        """Return the attachment with the extracted text. A message shows only the beginning of a long one."""
        rest = text[MAX_TEXT_CHARS:] if text is not None else ""
        return replace(
            self,
            extraction_method=method,
            parsed_text=text if text is None else text[:MAX_TEXT_CHARS],
            is_text_cut=rest != "",
            rest=rest or None,
        )


def add_all(tx: Tx, found: Iterable[tuple[str, Attachment]]) -> None:
    """Stores pairs of message and attachment."""
    tx.many(
        "insert into attachments (message_id, filename, position, content_type, size_bytes,"
        " extraction_method, parsed_text, filename_raw, text_rest, infected, scanned) values :rows",
        [
            (
                message_id,
                attachment.filename,
                attachment.position,
                attachment.content_type,
                attachment.size_bytes,
                attachment.extraction_method,
                attachment.parsed_text,
                attachment.filename_raw,
                attachment.rest,
                attachment.infected,
                int(attachment.scanned),
            )
            for message_id, attachment in found
        ],
    )


def set_text(tx: Tx, message_id: str, attachment: Attachment) -> None:
    tx.run(
        "update attachments set extraction_method = :method, parsed_text = :text,"
        " text_rest = coalesce(:rest, text_rest), infected = :infected, scanned = :scanned"
        " where message_id = :message_id and filename = :filename",
        method=attachment.extraction_method,
        text=attachment.parsed_text,
        rest=attachment.rest,
        infected=attachment.infected,
        scanned=int(attachment.scanned),
        message_id=message_id,
        filename=attachment.filename,
    )


def list_of_messages(
    tx: Tx, message_ids: Sequence[str], *, with_text: bool = True
) -> dict[str, list[Attachment]]:
    """Return the attachments of a whole page of messages, by one query."""
    columns = _COLUMNS if with_text else _COLUMNS.replace("parsed_text", "null as parsed_text")
    rows = all_of(
        tx,
        f"select {columns} from attachments where :wanted order by message_id, position",
        "message_id",
        message_ids,
    )
    found: dict[str, list[Attachment]] = {}
    for row in rows:
        found.setdefault(row["message_id"], []).append(Attachment.from_row(row))
    return found


def get(tx: Tx, message_id: str, filename: str) -> Attachment:
    row = tx.one(
        f"select {_COLUMNS} from attachments where message_id = :message_id and filename = :filename",
        message_id=message_id,
        filename=filename,
    )
    if row is None:
        raise no_such("attachment")
    return Attachment.from_row(row)


def require_clean(attachment: Attachment) -> Attachment:
    """Raise Infected if clamd found something in it: then nothing gives it away unasked."""
    if attachment.infected is not None:
        raise Infected(
            f"clamd found {attachment.infected} in {attachment.filename}. A key with the permission manage"
            " can download it with ?infected=yes."
        )
    return attachment


def require_text(attachment: Attachment) -> str:
    if attachment.parsed_text is None:
        raise NoText(f"There is no text for this file ({attachment.extraction_method or 'not read yet'}).")
    return attachment.parsed_text


class PieceOfText(Struct, frozen=True):
    """A part of the text of a file: where it begins, and the total number of characters."""

    text: str
    offset: int
    total: int


def piece_of_text(tx: Tx, message_id: str, attachment: Attachment, offset: int) -> PieceOfText:
    """Return as much text from `offset` on as a message shows; empty past the end."""
    start = require_text(attachment)
    piece = start[offset : offset + MAX_TEXT_CHARS]
    if not attachment.is_text_cut:
        return PieceOfText(piece, offset, len(start))
    row = tx.one(
        "select length(text_rest) as total, substr(text_rest, :first, :most) as text from attachments"
        " where message_id = :message_id and filename = :filename",
        first=max(offset - len(start), 0) + 1,
        most=MAX_TEXT_CHARS - len(piece),
        message_id=message_id,
        filename=attachment.filename,
    )
    assert row is not None
    return PieceOfText(piece + row["text"], offset, len(start) + row["total"])


def path(message_id: str, filename: str) -> str:
    return f"/v1/attachments/{message_id}/{quote(filename, safe='')}"


def link_secret(tx: Tx) -> bytes:
    return secret_values.get(tx, LINKS)


def signed_url(base_url: str, secret: bytes, message_id: str, filename: str, now: int) -> str:
    expires = (now + LINK_LIFETIME) // SECOND
    signature = _sign(secret, message_id, filename, str(expires))
    return f"{base_url}{path(message_id, filename)}?expires={expires}&signature={signature}"


def signed_raw_url(base_url: str, secret: bytes, message_id: str, now: int) -> str:
    """Return a link to the raw email. It signs an empty filename, which no file has."""
    expires = (now + LINK_LIFETIME) // SECOND
    signature = _sign(secret, message_id, "", str(expires))
    return f"{base_url}/v1/messages/{message_id}/raw?expires={expires}&signature={signature}"


def require_signed_link(
    secret: bytes, message_id: str, filename: str, expires: str, signature: str, now: int
) -> None:
    expected = _sign(secret, message_id, filename, expires)
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise InvalidSignature("This link is not valid. Read the message again for a new one.")
    if int(expires) * SECOND <= now:
        raise InvalidSignature("This link has expired. Read the message again for a new one.")


def _sign(secret: bytes, message_id: str, filename: str, expires: str) -> str:
    signed = "\n".join((message_id, filename, expires)).encode()
    return hmac.new(secret, signed, hashlib.sha256).hexdigest()
