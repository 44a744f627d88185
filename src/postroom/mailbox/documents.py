"""Documents: all of a message that neither changes nor expires, stored in the words of the interface."""

import msgspec
from msgspec import UNSET, Struct, UnsetType


class Verdicts(Struct, frozen=True):
    """What SPF, DKIM and DMARC say of the sender (RFC 8601 words)."""

    spf: str
    dkim: str
    dmarc: str
    domain: str


class Document(Struct, rename="camel", frozen=True):
    """All of a message that neither changes nor expires."""

    id: str
    thread_id: str
    inbox_id: str
    direction: str
    from_addr: str
    to_addr: str
    header_to: str
    delivery_role: str | None
    cc: list[str]
    subject: str
    body_text: str
    body_html: str
    created_at: str
    rfc_message_id: str
    reply_text: str
    auth: Verdicts | None
    automated: bool
    new_participant: bool
    codes: list[str]
    links: list[str]
    parse_error: str | UnsetType = UNSET
    metadata: dict[str, str] | UnsetType = UNSET  # of the sender's, never sent


def encode(document: Document) -> bytes:
    return msgspec.json.encode(document)


def decode(stored: bytes) -> Document:
    return msgspec.json.decode(stored, type=Document)
