"""Sending and replying: the request of a send, and whom a reply goes to (specification, Threading rules)."""

import json
import mimetypes
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from postroom_client.calls import calls
from postroom_client.errors import NotFound, PayloadTooLarge
from postroom_client.results import Message, Sent, Thread, ThreadMessages
from postroom_client.transport.exchange import Call, OutgoingFile, Steps, decoded, path

ATTACHMENT_LIMIT_BYTES = 25 * 1024 * 1024
UPLOAD_TIMEOUT_SECONDS = 120.0
PAGE = 100

Addresses = str | Sequence[str]
File = OutgoingFile | Path | str


def send(
    inbox_id: str,
    *,
    to: Addresses = (),
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
    reply_all: bool = False,
    forward_of: str | None = None,
    headers: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
    send_at: datetime | str | None = None,
    undo_seconds: int = 0,
    idempotency_key: str | None = None,
) -> Call[Sent]:
    """Send a mail. Another call with the same `idempotency_key` sends nothing more."""
    fields = {
        "to": listed(to) or None,
        "subject": subject,
        "body": body,
        "cc": listed(cc) or None,
        "bcc": listed(bcc) or None,
        "bodyHtml": body_html,
        "threadId": thread_id,
        "includeQuote": None if include_quote else False,
        "replyTo": reply_to,
        "automated": automated or None,
        "replyAll": reply_all or None,
        "forwardOf": forward_of,
        "headers": headers or None,
        "metadata": metadata or None,
        "sendAt": None if send_at is None else spell_moment(send_at),
        "undoSeconds": undo_seconds or None,
    }
    files = read_files(attachments)
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


def reply_all(
    thread_id: str,
    body: str,
    *,
    to: Addresses = (),
    cc: Addresses = (),
    bcc: Addresses = (),
    body_html: str | None = None,
    include_quote: bool = True,
    reply_to: str | None = None,
    attachments: Sequence[File] = (),
    automated: bool = False,
    headers: Mapping[str, str] | None = None,
    metadata: Mapping[str, str] | None = None,
    send_at: datetime | str | None = None,
    undo_seconds: int = 0,
    idempotency_key: str | None = None,
) -> Steps[Sent]:
    """Answer everybody whom the last mail that came in this thread names; whom you name is added."""
    thread: Thread = yield calls.get_thread(thread_id)
    sent: Sent = yield send(
        thread.inbox_id,
        to=to,
        body=body,
        cc=cc,
        bcc=bcc,
        body_html=body_html,
        thread_id=thread_id,
        include_quote=include_quote,
        reply_to=reply_to,
        attachments=attachments,
        automated=automated,
        reply_all=True,
        headers=headers,
        metadata=metadata,
        send_at=send_at,
        undo_seconds=undo_seconds,
        idempotency_key=idempotency_key,
    )
    return sent


def forward(
    message_id: str,
    *,
    to: Addresses,
    body: str,
    subject: str | None = None,
    cc: Addresses = (),
    bcc: Addresses = (),
    attachments: Sequence[File] = (),
    idempotency_key: str | None = None,
) -> Steps[Sent]:
    """Pass a mail on, with its text and its files."""
    message: Message = yield calls.get_message(message_id)
    sent: Sent = yield send(
        message.inbox_id,
        to=to,
        body=body,
        subject=subject,
        cc=cc,
        bcc=bcc,
        attachments=attachments,
        forward_of=message_id,
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


def read_files(sources: Sequence[File]) -> tuple[OutgoingFile, ...]:
    files = tuple(read_file(source) for source in sources)
    if sum(len(file.content) for file in files) > ATTACHMENT_LIMIT_BYTES:
        raise PayloadTooLarge("The attachments are over 25 MB in total.")
    return files


def listed(addresses: Addresses) -> list[str]:
    return [addresses] if isinstance(addresses, str) else list(addresses)


def _as_form(fields: Mapping[str, object]) -> dict[str, list[str]]:
    """In multipart a list is a repeated part."""
    return {
        name: [str(item) for item in value] if isinstance(value, list) else [_spell(value)]
        for name, value in fields.items()
        if value is not None
    }


def spell_moment(moment: datetime | str) -> str:
    """A moment without a zone would be a guess."""
    if isinstance(moment, str):
        return moment
    if moment.tzinfo is None:
        raise ValueError("send_at needs a time zone: datetime.now(UTC) + …")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _spell(value: object) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
