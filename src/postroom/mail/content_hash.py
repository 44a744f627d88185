"""The hash of what a mail will say: whoever approves it names this, and what leaves is held against it."""

import hashlib

import msgspec
from msgspec import Struct


class HashedFile(Struct, rename="camel", frozen=True):
    content_type: str
    filename: str
    sha256: str


class Content(Struct, rename="camel", frozen=True, kw_only=True):
    """As it will be written, without Date and Message-ID."""

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
    subject: str
    to: list[str]


def content_hash(content: Content) -> str:
    """Lower-case hex SHA-256 of canonical JSON: keys sorted, no spaces, UTF-8."""
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def hash_file(content_type: str, filename: str, content: bytes) -> HashedFile:
    return HashedFile(content_type, filename, hashlib.sha256(content).hexdigest())
