"""What the standard library reads of an email on the wire, and the content hash computed from that."""

import hashlib
import json
import re
from collections.abc import Iterator
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses
from itertools import zip_longest
from typing import Any

from postroom_mail.mime.address import parse_list

OWN_FIELDS = {
    *("from", "to", "cc", "reply-to", "subject", "date", "message-id", "in-reply-to", "references"),
    *("auto-submitted", "mime-version", "content-type", "content-transfer-encoding", "content-disposition"),
    *("dkim-signature", "content-class"),
}
ENCODED_LINE = re.compile(r"[A-Za-z0-9+/=]{59,}")
URL = re.compile(r"https?://[^\s\"'<>]+")


def content_of(wire: bytes, bcc: list[str], names: list[str]) -> dict[str, Any]:
    """Return the fields that the content hash covers. `names` are given to files that have none."""
    message = message_from_bytes(wire)
    text, html, files = _bodies(message)
    references = (message.get("References") or "").split()
    reply_to = ", ".join(_people(message, "Reply-To")) or None
    return {
        "attachments": [_file(part, name) for part, name in zip_longest(files, names[: len(files)])],
        "bcc": bcc,
        "bodyHtml": "" if html is None else _text(html),
        "bodyText": "" if text is None else _text(text),
        "cc": _people(message, "Cc"),
        "from": ", ".join(_people(message, "From")),
        "headers": {name: decoded(value) for name, value in message.items() if name.lower().startswith("x-")},
        "inReplyTo": message.get("In-Reply-To"),
        "references": references,
        "replyTo": reply_to,
        "subject": decoded(message.get("Subject", "")).strip(),
        "to": _people(message, "To"),
    }


def hash_of(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def bytes_of(attached: Message) -> bytes:
    """Return the bytes of an attached message, encoded or not."""
    content = attached.get_payload(decode=True)
    if isinstance(content, bytes):
        return content
    inner = attached.get_payload(0)
    assert isinstance(inner, Message)
    return inner.as_bytes()


def unexpected_fields(wire: bytes) -> list[str]:
    """Return header fields that no approver sees, and those that are there twice."""
    names = [name.lower() for name in message_from_bytes(wire)]
    strange = [name for name in names if name not in OWN_FIELDS and not name.startswith("x-")]
    repeated = [name for name in set(names) if names.count(name) > 1 and name != "dkim-signature"]
    return [*strange, *repeated]


def addresses_of(wire: bytes) -> set[str]:
    """Return every address that a recipient's mail client may show as sender or recipient."""
    message = message_from_bytes(wire)
    values = [
        value for name in ("From", "To", "Cc", "Reply-To", "Sender") for value in message.get_all(name, [])
    ]
    return {address for _, address in getaddresses(map(str, values))}


def urls_of(wire: bytes) -> set[str]:
    """Return the addresses of the web in every part that a mail client may show."""
    parts = [part for part in message_from_bytes(wire).walk() if part.get_content_maintype() == "text"]
    shown = [part for part in parts if part.get_filename() is None]
    return {url for part in shown for url in URL.findall(_text(part))}


def plain_text_of(raw: bytes) -> str:
    """Return the header and every text that is not encoded, as a person reads the source.

    Words with characters of another charset become words that are no ASCII; encoded lines are left out.
    """
    message = message_from_bytes(raw)
    head = " ".join(f"{name} {value}" for name, value in message.items())
    texts = [
        _text(part)
        for part in leaves(message)
        if part.get_content_maintype() == "text" and not part.get("Content-Transfer-Encoding")
    ]
    lines = "\n".join([head, *texts]).replace("\ufffd", "\u00e9").splitlines()
    return " ".join(line for line in lines if not ENCODED_LINE.fullmatch(line))


def leaves(message: Message) -> Iterator[Message]:
    if message.is_multipart() and message.get_content_maintype() == "multipart":
        for child in message.get_payload():
            assert isinstance(child, Message)
            yield from leaves(child)
    else:
        yield message


def _bodies(message: Message) -> tuple[Message | None, Message | None, list[Message]]:
    """The text, the HTML, and all else: an attachment."""
    found: dict[str, Message] = {}
    files = []
    for part in leaves(message):
        kind = part.get_content_type()
        is_body = part.get_filename() is None and part.get_content_disposition() != "attachment"
        if is_body and kind in ("text/plain", "text/html") and kind not in found:
            found[kind] = part
        else:
            files.append(part)
    return found.get("text/plain"), found.get("text/html"), files


def _file(part: Message, name: str | None) -> dict[str, str]:
    content = part.get_payload(decode=True) or b""
    assert isinstance(content, bytes)
    return {
        "contentType": part.get_content_type(),
        "filename": decoded(part.get_filename() or name or ""),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _text(part: Message) -> str:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    try:
        text = content.decode(part.get_content_charset() or "utf-8", "replace")
    except LookupError:  # no charset that anybody knows
        text = content.decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def decoded(value: str) -> str:
    return str(make_header(decode_header(str(value).replace("\r\n", ""))))


def _people(message: Message, name: str) -> list[str]:
    return [str(each) for each in parse_list(str(message.get(name) or "").replace("\r\n", ""))]
