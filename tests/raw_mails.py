"""Raw mails for tests, as another server would hand them over, and strict readers of what the API shows."""

import email.message
import email.policy
import json
from typing import Any

import msgspec

from postroom.events.payload import Payload
from postroom.operations.messages import Message


def raw_mail(text: str = "Hello", **fields: str) -> bytes:
    """A plain mail; `in_reply_to="<a@b>"` is the field In-Reply-To."""
    given = {"from": "Alice <alice@example.com>", "to": "hello@postroom.localhost", "subject": "Hi"} | fields
    head = "".join(f"{name.replace('_', '-').title()}: {value}\r\n" for name, value in given.items())
    return f"{head}\r\n{text}\r\n".encode()


def raw_mail_with_files(*files: tuple[str, str, bytes], text: str = "See below", **fields: str) -> bytes:
    """Each file is a name, a type and its bytes."""
    mail = email.message.EmailMessage(policy=email.policy.SMTP)
    mail["From"] = fields.get("sender", "alice@example.com")
    mail["Subject"] = fields.get("subject", "Files")
    if "message_id" in fields:
        mail["Message-ID"] = fields["message_id"]
    mail.set_content(text)
    for name, content_type, content in files:
        maintype, _, subtype = content_type.partition("/")
        mail.add_attachment(content, maintype=maintype, subtype=subtype, filename=name)
    return mail.as_bytes()


def html_mail(html: str, **fields: str) -> bytes:
    return raw_mail(html, mime_version="1.0", content_type="text/html; charset=utf-8", **fields)


def assert_is_exactly(kind: Any, raw: bytes) -> None:
    """Every field of the type is there with its type, and no other field."""
    assert msgspec.to_builtins(msgspec.json.decode(raw, type=kind)) == json.loads(raw)


def assert_is_message(raw: bytes) -> None:
    assert_is_exactly(Message, raw)


def assert_is_payload(raw: bytes) -> None:
    assert_is_exactly(Payload, raw)
