"""Sending and replying: the request of a send, and whom a reply goes to (specification, Threading rules)."""

import mimetypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from postroom_client import calls
from postroom_client.errors import NotFound, PayloadTooLarge
from postroom_client.exchange import Call, OutgoingFile, Steps, decoded, path
from postroom_client.results import Message, Sent, ThreadMessages

ATTACHMENT_LIMIT_BYTES = 25 * 1024 * 1024
UPLOAD_TIMEOUT_SECONDS = 120.0
PAGE = 100

Addresses = str | Sequence[str]
File = OutgoingFile | Path | str


def send(
    inbox_id: str,
    *,
    to: Addresses,
    body: str,
    subject: str | None = None,
    cc: Addresses = (),
    bcc: Addresses = (),
    body_html: str | None = None,
    thread_id: str | None = None,
    include_quote: bool = True,
    reply_to: str | None = None,
    attachments: Sequence[File] = (),
    automated: bool = False,
    idempotency_key: str | None = None,
) -> Call[Sent]:
    """Send a mail. Another call with the same `idempotency_key` sends nothing more."""
    fields = {
        "to": _listed(to),
        "subject": subject,
        "body": body,
        "cc": _listed(cc) or None,
        "bcc": _listed(bcc) or None,
        "bodyHtml": body_html,
        "threadId": thread_id,
        "includeQuote": None if include_quote else False,
        "replyTo": reply_to,
        "automated": automated or None,
    }
    files = _read_files(attachments)
    return Call(
        "POST",
        path("v1", "inboxes", inbox_id, "send"),
        decoded(Sent),
        json=None if files else calls.given(fields),
        form=_as_form(fields) if files else {},
        files=files,
        headers={"Idempotency-Key": idempotency_key or str(uuid4())},
        timeout_seconds=UPLOAD_TIMEOUT_SECONDS if files else 30,
    )


def reply(
    thread_id: str,
    body: str,
    *,
    cc: Addresses = (),
    bcc: Addresses = (),
    body_html: str | None = None,
    include_quote: bool = True,
    reply_to: str | None = None,
    attachments: Sequence[File] = (),
    automated: bool = False,
    idempotency_key: str | None = None,
) -> Steps[Sent]:
    """Answer the last mail that came in this thread; the thread is then read."""
    page: ThreadMessages = yield calls.list_thread_messages(thread_id, limit=PAGE)
    offset = max(page.total - PAGE, 0)
    if offset:
        page = yield calls.list_thread_messages(thread_id, limit=PAGE, offset=offset)
    messages = list(page.data)
    while page.truncated and page.data:  # large mails make short pages
        page = yield calls.list_thread_messages(thread_id, limit=PAGE, offset=offset + len(messages))
        messages += page.data
    sent: Sent = yield send(
        page.inbox_id,
        to=reply_recipients(messages),
        body=body,
        cc=cc,
        bcc=bcc,
        body_html=body_html,
        thread_id=thread_id,
        include_quote=include_quote,
        reply_to=reply_to,
        attachments=attachments,
        automated=automated,
        idempotency_key=idempotency_key,
    )
    return sent


def reply_recipients(messages: Sequence[Message]) -> str:
    """Of the last mail that came: its sender, or, when this inbox was only copied, whom it was sent to."""
    if not messages:
        raise NotFound("The thread has no message to answer.")
    inbound = [message for message in messages if message.direction == "inbound"]
    if not inbound:
        return messages[-1].header_to
    return inbound[-1].header_to if inbound[-1].delivery_role == "cc" else inbound[-1].from_addr


def read_file(source: File) -> OutgoingFile:
    if isinstance(source, OutgoingFile):
        return source
    place = Path(source)
    kind = mimetypes.guess_type(place.name)[0] or "application/octet-stream"
    return OutgoingFile(place.name, place.read_bytes(), kind)


def _read_files(sources: Sequence[File]) -> tuple[OutgoingFile, ...]:
    files = tuple(read_file(source) for source in sources)
    if sum(len(file.content) for file in files) > ATTACHMENT_LIMIT_BYTES:
        raise PayloadTooLarge("The attachments are over 25 MB in total.")
    return files


def _listed(addresses: Addresses) -> list[str]:
    return [addresses] if isinstance(addresses, str) else list(addresses)


def _as_form(fields: Mapping[str, object]) -> dict[str, list[str]]:
    """In multipart a list is a repeated part."""
    return {
        name: [str(item) for item in value] if isinstance(value, list) else [_spell(value)]
        for name, value in fields.items()
        if value is not None
    }


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
