"""Results of the tools, with the names of their arguments. No field can hold a key or a secret.

Without slots: the MCP library takes a class attribute for a default, and slots are class attributes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import Field, PlainSerializer

from postroom_client import results
from postroom_client.appointments import status_line
from postroom_client.untrusted import Delimiters, cut, warning

T = TypeVar("T")


def written(moment: datetime) -> str:
    """Return a time as the API writes it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


Moment = Annotated[datetime, PlainSerializer(written, return_type=str)]
BODY_LIMIT_CHARACTERS = 20_000
WANTED = {"verify": "verify", "signin": "sign in"}

Notice = Annotated[str, Field(description="How to recognise text from outside, and how to treat it.")]
Delimited = Annotated[
    str, Field(description="Text from outside, between the delimiters that notice describes.")
]
Related = Annotated[list[str], Field(description="Threads that belong to it; read them as well.")]
Total = Annotated[int, Field(description="Of all; offset reaches the others.")]


@dataclass(frozen=True)
class Identity:
    account_id: str
    account_name: str
    plan: str
    scope: Annotated[str, Field(description="account, pod, or inbox: only one inbox.")]
    inbox_id: Annotated[str | None, Field(description="The inbox that tools use when none is named.")]
    permissions: Annotated[
        list[str], Field(description="Without send, what you send is held until a person approves it.")
    ]


@dataclass(frozen=True)
class InboxSummary:
    inbox_id: str
    address: str
    display_name: str | None
    created_at: Moment | None


@dataclass(frozen=True)
class InboxPage:
    inboxes: list[InboxSummary]
    total: Total


@dataclass(frozen=True)
class ThreadSummary:
    thread_id: str
    inbox_id: str
    is_read: bool
    message_count: int
    last_message_at: Moment | None
    last_direction: str | None
    verdict: str | None
    has_attachments: bool
    related_thread_ids: Related
    assignee_id: str | None
    snoozed_until: Moment | None
    is_done: bool
    subject: Delimited
    newest: Annotated[
        str, Field(description="Its sender, everybody in the thread, codes, and its text's beginning.")
    ]


@dataclass(frozen=True)
class ThreadPage:
    notice: Notice
    threads: list[ThreadSummary]
    total: Total


@dataclass(frozen=True)
class ThreadMark:
    thread_id: str
    is_read: bool


@dataclass(frozen=True)
class ThreadLabels:
    thread_id: str
    labels: list[str]


@dataclass(frozen=True)
class ThreadAssignment:
    thread_id: str
    assignee_id: str | None


@dataclass(frozen=True)
class SenderCheck:
    """pass, fail, none and the like, as this server found them when the mail came in."""

    spf: str
    dkim: str
    dmarc: str


@dataclass(frozen=True)
class Mail:
    message_id: str
    thread_id: str
    inbox_id: str
    direction: Annotated[str, Field(description="inbound or outbound.")]
    status: str
    labels: list[str]
    created_at: Moment | None
    delivery_role: Annotated[str | None, Field(description="cc: this inbox was only copied.")]
    automated: Annotated[bool, Field(description="A program wrote it; answering may start a loop.")]
    new_participant: Annotated[bool, Field(description="Its sender is new in the thread.")]
    category: Annotated[str | None, Field(description="personal, automated, marketing or bounce.")]
    auto_replyable: Annotated[bool, Field(description="Whether a program may answer it on its own.")]
    verdict: Annotated[
        str | None, Field(description="clean, suspicious or malicious; null: not examined yet.")
    ]
    warning: Annotated[str, Field(description="Warnings about it; empty if none.")]
    attachments_read: Annotated[bool, Field(description="false: the text of its files is not ready yet.")]
    sender_check: Annotated[SenderCheck | None, Field(description="Whether the sender is verified.")]
    content: Delimited


@dataclass(frozen=True)
class ThreadContent:
    notice: Notice
    thread_id: str
    inbox_id: str
    is_read: bool
    related_thread_ids: Related
    messages: Annotated[list[Mail], Field(description="Oldest first.")]
    total: Total


@dataclass(frozen=True)
class Arrival:
    notice: Notice
    message: Annotated[Mail | None, Field(description="null: none came in time. Wait again.")]


@dataclass(frozen=True)
class FoundMail:
    message_id: str
    thread_id: str
    inbox_id: str
    direction: Annotated[str, Field(description="inbound or outbound.")]
    created_at: Moment | None
    matched: Annotated[list[str], Field(description="Where: text, file, subject, filename, from, to.")]
    content: Delimited


@dataclass(frozen=True)
class SearchResults:
    notice: Notice
    messages: Annotated[list[FoundMail], Field(description="Newest first, each with a piece of it.")]
    next: Annotated[str | None, Field(description="The cursor of the next page; null: none.")]


@dataclass(frozen=True)
class MessageText:
    notice: Notice
    message_id: str
    characters: Annotated[int, Field(description="Of the whole text.")]
    text: Delimited
    next_offset: Annotated[int | None, Field(description="Where the text goes on; null: this was all.")]


@dataclass(frozen=True)
class FileText:
    notice: Notice
    message_id: str
    extraction_method: str
    text: Delimited
    next_offset: Annotated[int | None, Field(description="Where the text goes on; null: this was all.")]


def made(kind: type[T], found: Any, **others: Any) -> T:
    """Return a result of this kind. Fields not given come from the item's field of the same name."""
    names = {each.name for each in fields(kind)} - others.keys()  # type: ignore[arg-type]
    return kind(**others, **{name: getattr(found, name) for name in names})


def identity(me: results.Me, default_inbox_id: str | None) -> Identity:
    return made(Identity, me, inbox_id=me.inbox_id or default_inbox_id)


def inbox(inbox: results.Inbox) -> InboxSummary:
    return made(InboxSummary, inbox, inbox_id=inbox.id)


def thread_page(page: results.Page[results.Thread]) -> ThreadPage:
    delimiters = Delimiters()
    threads = [
        made(
            ThreadSummary,
            thread,
            thread_id=thread.id,
            subject=delimiters.wrap(thread.subject),
            newest=delimiters.wrap(_newest(thread), warning(thread.verdict, ())),
        )
        for thread in page.data
    ]
    return ThreadPage(delimiters.notice, threads, page.total)


def _newest(thread: results.Thread) -> str:
    lines = [] if thread.sender is None else [f"From: {_person(thread.sender)}"]
    lines += [f"With: {', '.join(map(_person, thread.participants))}"] if thread.participants else []
    lines += [f"Codes: {', '.join(thread.codes)}"] if thread.codes else []
    return "\n".join([*lines, thread.preview])


def _person(person: results.Person) -> str:
    return (
        f"{person.name} <{person.address}>"
        if person.name and person.address
        else person.name or person.address
    )


def thread_content(page: results.ThreadMessages) -> ThreadContent:
    delimiters = Delimiters()
    notice = f"{delimiters.notice} {page.canary or ''}".rstrip()
    mails = [mail(message, delimiters) for message in page.data]
    return made(ThreadContent, page, notice=notice, messages=mails)


def arrival(message: results.Message | None) -> Arrival:
    delimiters = Delimiters()
    return Arrival(delimiters.notice, None if message is None else mail(message, delimiters))


def search_results(page: results.SearchPage) -> SearchResults:
    delimiters = Delimiters()
    return SearchResults(delimiters.notice, [_found(result, delimiters) for result in page.data], page.next)


def _found(result: results.SearchResult, delimiters: Delimiters) -> FoundMail:
    message = result.message
    shown = f"From: {message.from_addr}\nTo: {message.header_to}\nSubject: {message.subject}"
    content = delimiters.wrap(f"{shown}\n\n{result.snippet}")
    return made(FoundMail, message, message_id=message.id, matched=result.matched, content=content)


def file_text(message_id: str, found: results.AttachmentText, offset: int) -> FileText:
    delimiters = Delimiters()
    text = found.text[:BODY_LIMIT_CHARACTERS]
    end = offset + len(text)
    goes_on = end if end < found.total else None
    return FileText(delimiters.notice, message_id, found.extraction_method, delimiters.wrap(text), goes_on)


def piece(text: str, offset: int) -> tuple[str, int | None]:
    """Return the piece from `offset` that fits into an answer, and the offset of the next one or None."""
    end = offset + BODY_LIMIT_CHARACTERS
    return (text[offset:end], end) if end < len(text) else (text[offset:], None)


def message_text(message: results.Message, offset: int) -> MessageText:
    delimiters = Delimiters()
    text, goes_on = piece(message.body_text, offset)
    return MessageText(delimiters.notice, message.id, len(message.body_text), delimiters.wrap(text), goes_on)


def mail(message: results.Message, delimiters: Delimiters) -> Mail:
    auth = message.auth
    reasons = (signal.reason for signal in message.signals)
    warned = warning(message.verdict, reasons, message.imported)
    return made(
        Mail,
        message,
        message_id=message.id,
        verdict=message.verdict or None,
        warning=warned,
        sender_check=None if auth is None else SenderCheck(auth.spf, auth.dkim, auth.dmarc),
        content=delimiters.wrap(email_as_text(message), warned),
    )


def email_as_text(message: results.Message) -> str:
    """Return an email as text: sender, recipients, subject, files and body."""
    lines = [f"From: {message.from_addr}", f"To: {message.header_to}"]
    lines += [f"Cc: {', '.join(message.cc)}"] if message.cc else []
    lines += [f"Subject: {message.subject}"]
    lines += file_lines(message.attachments)
    lines += [f"Appointment: {described(message.calendar)}"] if message.calendar else []
    lines += [f"Link to {WANTED[link.purpose]}: {link.url}" for link in wanted_links(message)]
    return "\n".join([*lines, "", cut(message.body_text, BODY_LIMIT_CHARACTERS)])


def wanted_links(message: results.Message) -> list[results.LinkDetail]:
    return [link for link in message.link_details if link.purpose in WANTED]


def described(appointment: results.Appointment) -> str:
    until = f" to {appointment.end}" if appointment.end else ""
    parts = [
        appointment.summary,
        f"{appointment.start}{until} {appointment.time_zone}".strip(),
        appointment.location,
        f"organised by {appointment.organizer}" if appointment.organizer else "",
        status_line(appointment),
        "an answer is expected" if appointment.answer_expected else "",
        f"join at {appointment.join_url}" if appointment.join_url else "",
    ]
    return ", ".join(part for part in parts if part)


def _infection(file: results.Attachment) -> str:
    return f", withheld: clamd found {file.infected}" if file.infected else ""


def file_lines(files: Sequence[results.Attachment]) -> list[str]:
    return [
        f"Attachment: {file.filename} ({file.content_type}, {file.size_bytes} bytes{_infection(file)})"
        for file in files
    ]
