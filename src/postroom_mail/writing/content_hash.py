"""The hash of an email's content: an approval names it, and what is sent is checked against it.

It is always made from the bytes of the email, so that what was shown and what is sent are read alike.
"""

import hashlib
import re
from collections.abc import Sequence

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from postroom_mail.mime import headers
from postroom_mail.mime.address import parse_list
from postroom_mail.mime.headers import Block
from postroom_mail.mime.parse import ParsedAttachment, ParsedMail, parse_mail
from postroom_mail.writing import passed_on

_OWN_FIELD = re.compile(rb"^(X-[!-9;-~]*|AI-Disclosure):((?:[^\r\n]|\r\n[ \t])*)", re.M | re.I)


class HashedFile(Struct, rename="camel", frozen=True):
    content_type: str
    filename: str
    sha256: str


class Content(Struct, rename="camel", frozen=True, kw_only=True):
    """The content to be sent, without Date and Message-ID."""

    attachments: list[HashedFile]
    bcc: list[str]
    body_html: str
    body_text: str
    cc: list[str]
    sender: str = msgspec.field(name="from")
    headers: dict[str, str]
    in_reply_to: str | None
    references: list[str]
    reply_to: str | None
    source: str | UnsetType = UNSET  # SHA-256 of all bytes of an email that is redirected as it came
    subject: str
    to: list[str]


def content_hash(raw: bytes, bcc: Sequence[str]) -> str:
    return hash_of(read_content(raw, bcc))


def hash_of(content: Content) -> str:
    """Return the lower-case hex SHA-256 of canonical JSON: keys sorted, no spaces, UTF-8."""
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def lasting_hash(content: Content) -> str:
    """Return the hash without what changes in each composing: the id and the stamp of an appointment."""
    files = [
        replace(file, sha256="") if file.content_type.startswith("text/calendar") else file
        for file in content.attachments
    ]
    return hash_of(replace(content, attachments=files))


def lasting_hash_of(raw: bytes, bcc: Sequence[str]) -> str:
    return lasting_hash(read_content(raw, bcc))


def read_content(raw: bytes, bcc: Sequence[str]) -> Content:
    """Read the content of an email written here; Bcc is in no email, and is given."""
    return content_of(parse_mail(raw), headers.split(raw, 0), raw, bcc)


def content_of(mail: ParsedMail, block: Block, raw: bytes, bcc: Sequence[str]) -> Content:
    reply_to = [str(address) for address in parse_list(block.headers.joined("reply-to"))]
    return Content(
        attachments=[_hash_file(file) for file in mail.attachments],
        bcc=list(bcc),
        body_html=mail.body_html.removesuffix("\n"),
        body_text=mail.body_text.removesuffix("\n"),
        cc=[str(address) for address in mail.cc],
        sender=mail.from_addr,
        headers=_own_fields(raw[: block.body_start]),
        in_reply_to=mail.in_reply_to[0] if mail.in_reply_to else None,
        references=list(mail.references),
        reply_to=", ".join(reply_to) or None,
        source=hashlib.sha256(raw).hexdigest() if passed_on.is_passed_on(block.headers) else UNSET,
        subject=mail.subject,
        to=[str(address) for address in mail.to],
    )


def _own_fields(head: bytes) -> dict[str, str]:
    return {
        found[1].decode(): headers.decode_words(headers.unfold(found[2]))
        for found in _OWN_FIELD.finditer(head)
    }


def _hash_file(file: ParsedAttachment) -> HashedFile:
    return HashedFile(file.content_type, file.filename, hashlib.sha256(file.content).hexdigest())
