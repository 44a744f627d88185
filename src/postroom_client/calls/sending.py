"""Answering and passing on: whom a reply goes to (specification, Threading rules)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack
from urllib.parse import urlsplit

from postroom_client.calls import calls
from postroom_client.calls.arguments import UPLOAD_TIMEOUT_SECONDS, Addresses, read_file
from postroom_client.calls.calls import SendOptions
from postroom_client.errors import NotFound
from postroom_client.limits import LONGEST_PAGE
from postroom_client.results import CreatedUpload, Message, Sent, Thread, ThreadMessages
from postroom_client.transport.exchange import Call, OutgoingFile, Steps, nothing


def reply(thread_id: str, body: str | None = None, **options: Unpack[SendOptions]) -> Steps[Sent]:
    """Answer the last mail that came in this thread; the thread is then read."""
    page: ThreadMessages = yield calls.list_thread_messages(thread_id, limit=LONGEST_PAGE)
    offset = max(page.total - LONGEST_PAGE, 0)
    if offset:
        page = yield calls.list_thread_messages(thread_id, limit=LONGEST_PAGE, offset=offset)
    messages = list(page.data)
    while page.truncated and page.data:  # large emails make short pages
        page = yield calls.list_thread_messages(thread_id, limit=LONGEST_PAGE, offset=offset + len(messages))
        messages += page.data
    to = reply_recipients(messages)
    sent: Sent = yield calls.send(page.inbox_id, to=to, body=body, thread_id=thread_id, **options)
    return sent


def reply_all(
    thread_id: str, body: str | None = None, *, to: Addresses = (), **options: Unpack[SendOptions]
) -> Steps[Sent]:
    """Answer everybody whom the last mail that came in this thread names; whom you name is added."""
    thread: Thread = yield calls.get_thread(thread_id)
    sent: Sent = yield calls.send(
        thread.inbox_id, to=to, body=body, thread_id=thread_id, reply_all=True, **options
    )
    return sent


def forward(
    message_id: str,
    *,
    to: Addresses,
    body: str | None = None,
    subject: str | None = None,
    **options: Unpack[SendOptions],
) -> Steps[Sent]:
    """Pass an email on, with its text and its files."""
    message: Message = yield calls.get_message(message_id)
    sent: Sent = yield calls.send(
        message.inbox_id, to=to, body=body, subject=subject, forward_of=message_id, **options
    )
    return sent


def upload_file(inbox_id: str, file: OutgoingFile | Path | str) -> Steps[CreatedUpload]:
    """Upload a file; its id is attached as `{"uploadId": id}`, once, within the hour."""
    read = read_file(file)
    made: CreatedUpload = yield calls.create_upload(
        inbox_id, read.filename, read.content_type, len(read.content)
    )
    yield Call(
        "PUT",
        urlsplit(made.url).path,  # at the server that this client knows
        nothing,
        content=read.content,
        headers={"Content-Type": read.content_type},
        timeout_seconds=UPLOAD_TIMEOUT_SECONDS,
    )
    return made


def reply_recipients(messages: Sequence[Message]) -> str:
    """Return the last received email's sender or, if this inbox was only copied, its recipients."""
    if not messages:
        raise NotFound("The thread has no message to answer.")
    inbound = [message for message in messages if message.direction == "inbound"]
    if not inbound:
        return messages[-1].header_to
    return inbound[-1].header_to if inbound[-1].delivery_role == "cc" else inbound[-1].from_addr
