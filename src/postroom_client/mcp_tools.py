"""The tools that an agent is given. Each is one call of the interface, or the few that belong together."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from postroom_client import calls, mcp_results, sending, waiting
from postroom_client.errors import PostroomError
from postroom_client.exchange import Call, OutgoingFile, Steps
from postroom_client.mcp_results import (
    Arrival,
    FileText,
    Identity,
    InboxPage,
    InboxSummary,
    SentMail,
    ThreadContent,
    ThreadMark,
    ThreadPage,
)
from postroom_client.results import Me, ThreadMessages

T = TypeVar("T")
Ctx = Context[Any, Any]

InboxId = Annotated[str, Field(description="Id of the inbox, inb_…; empty: the inbox that auth_me names.")]
ThreadId = Annotated[str, Field(description="Id of the thread, thr_…", min_length=1)]
MessageId = Annotated[str, Field(description="Id of the message, msg_…", min_length=1)]
Limit = Annotated[int, Field(description="How many at most.", ge=1, le=100)]
Offset = Annotated[int, Field(description="How many to skip.", ge=0)]
Addresses = Annotated[str | list[str], Field(description="One address, or a list of them.")]
Body = Annotated[str, Field(description="Plain text or HTML.", min_length=1)]
BodyHtml = Annotated[str, Field(description="HTML, where it must differ from body.")]
IdempotencyKey = Annotated[
    str,
    Field(description="The same key sends only once in 24 hours. Give one to be able to try again safely."),
]


@dataclass(frozen=True, slots=True)
class AttachedFile:
    filename: str
    data_base64: Annotated[str, Field(description="The content, in base64.")]
    content_type: str = "application/octet-stream"


Attachments = Annotated[
    list[AttachedFile] | None,
    Field(description="Files to attach, 3 MB in total; larger ones by the REST interface."),
]


class Carrier(Protocol):
    """Carries out a described call with the key of whoever asks."""

    def run(self, work: Call[T] | Steps[T]) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who uses the tools, and the inbox to use when none is named."""

    carrier: Carrier
    inbox_id: str | None = None


class Tools:
    """Every public method is a tool; its docstring and its types are what the agent reads."""

    def __init__(self, caller_of: Callable[[Ctx], Caller]) -> None:
        self._caller_of = caller_of

    async def auth_me(self, ctx: Ctx) -> Identity:
        """Say whose key this is, what it reaches, and which inbox is used when none is named."""
        me = await self._ask(ctx, calls.me())
        return mcp_results.identity(me, self._caller_of(ctx).inbox_id)

    async def list_inboxes(self, ctx: Ctx, limit: Limit = 50, offset: Offset = 0) -> InboxPage:
        """List the inboxes of the account, newest first. Needs a key of the account."""
        page = await self._ask(ctx, calls.list_inboxes(limit=limit, offset=offset))
        return InboxPage([mcp_results.inbox(inbox) for inbox in page.data], page.total)

    async def get_inbox(self, ctx: Ctx, inbox_id: InboxId = "") -> InboxSummary:
        """Show one inbox and its address."""
        found = await self._inbox_id(ctx, inbox_id)
        return mcp_results.inbox(await self._ask(ctx, calls.get_inbox(found)))

    async def create_inbox(
        self,
        ctx: Ctx,
        mailbox_name: Annotated[
            str, Field(description="The part before the @: 3 to 30 of a-z, 0-9, dot and hyphen.")
        ],
        display_name: Annotated[str, Field(description="The name that recipients see.")] = "",
        domain: Annotated[str, Field(description="A verified domain; empty: the server's own.")] = "",
    ) -> InboxSummary:
        """Create an inbox. It can send and receive at once."""
        call = calls.create_inbox(mailbox_name, display_name=display_name or None, domain=domain or None)
        return mcp_results.inbox(await self._ask(ctx, call))

    async def send_email(
        self,
        ctx: Ctx,
        to: Addresses,
        subject: Annotated[str, Field(min_length=1, max_length=998)],
        body: Body,
        cc: Addresses = "",
        bcc: Addresses = "",
        body_html: BodyHtml = "",
        attachments: Attachments = None,
        inbox_id: InboxId = "",
        idempotency_key: IdempotencyKey = "",
    ) -> SentMail:
        """Send a new mail, which starts a thread. To answer a mail use reply_to_thread."""
        call = sending.send(
            await self._inbox_id(ctx, inbox_id),
            to=to,
            subject=subject,
            body=body,
            cc=cc or (),
            bcc=bcc or (),
            body_html=body_html or None,
            attachments=_decode(attachments or ()),
            idempotency_key=idempotency_key or None,
        )
        return mcp_results.sent_mail(await self._ask(ctx, call))

    async def reply_to_thread(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        body: Body,
        cc: Addresses = "",
        body_html: BodyHtml = "",
        attachments: Attachments = None,
        include_quote: Annotated[bool, Field(description="Append a quoted copy of the last mail.")] = True,
        idempotency_key: IdempotencyKey = "",
    ) -> SentMail:
        """Answer the last mail that came in a thread, to whom an answer belongs; the thread is then read.

        That is its sender, or, when this inbox was only copied, those it was addressed to.
        """
        steps = sending.reply(
            thread_id,
            body,
            cc=cc or (),
            body_html=body_html or None,
            attachments=_decode(attachments or ()),
            include_quote=include_quote,
            idempotency_key=idempotency_key or None,
        )
        return mcp_results.sent_mail(await self._ask(ctx, steps))

    async def list_threads(
        self, ctx: Ctx, inbox_id: InboxId = "", limit: Limit = 20, offset: Offset = 0
    ) -> ThreadPage:
        """List the threads of an inbox, read and unread, newest first."""
        found = await self._inbox_id(ctx, inbox_id)
        page = await self._ask(ctx, calls.list_threads(found, limit=limit, offset=offset))
        return mcp_results.thread_page(page)

    async def list_unread_threads(
        self, ctx: Ctx, inbox_id: InboxId = "", limit: Limit = 20, offset: Offset = 0
    ) -> ThreadPage:
        """List the threads with work to do: what came in and is neither answered nor marked read."""
        found = await self._inbox_id(ctx, inbox_id)
        page = await self._ask(ctx, calls.list_threads(found, is_read=False, limit=limit, offset=offset))
        return mcp_results.thread_page(page)

    async def read_thread(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        limit: Limit = 10,
        offset: Annotated[int, Field(description="-1: the newest messages; 0: from the first.", ge=-1)] = -1,
    ) -> ThreadContent:
        """Read the messages of a thread, oldest first. Reading does not mark it read."""
        return mcp_results.thread_content(await self._ask(ctx, _page(thread_id, limit, offset)))

    async def mark_thread_read(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        is_read: Annotated[bool, Field(description="false marks it unread.")] = True,
    ) -> ThreadMark:
        """Mark a thread read, or unread. A reply marks it read by itself."""
        thread = await self._ask(ctx, calls.mark_thread(thread_id, is_read=is_read))
        return ThreadMark(thread.id, thread.is_read)

    async def wait_for_message(
        self,
        ctx: Ctx,
        inbox_id: InboxId = "",
        timeout_seconds: Annotated[float, Field(ge=0, le=waiting.LONGEST_WAIT_SECONDS)] = 30,
        from_addr: Annotated[str, Field(description="Only if this is part of the sender.")] = "",
        subject: Annotated[str, Field(description="Only if this is part of the subject.")] = "",
        thread_id: Annotated[str, Field(description="Only in this thread.")] = "",
        after: Annotated[str, Field(description="Also what came after this message, msg_…")] = "",
    ) -> Arrival:
        """Wait until a mail comes in, and read it. Without `after`, only what comes from now on counts."""
        steps = waiting.wait(
            await self._inbox_id(ctx, inbox_id),
            timeout=timeout_seconds,
            after=after or None,
            from_addr=from_addr or None,
            subject=subject or None,
            thread_id=thread_id or None,
        )
        return mcp_results.arrival(await self._ask(ctx, steps))

    async def get_attachment_text(
        self,
        ctx: Ctx,
        message_id: MessageId,
        filename: Annotated[str, Field(description="As read_thread shows it.", min_length=1)],
    ) -> FileText:
        """Read the text of an attachment: PDF, office files, CSV, HTML, plain text, scanned pages."""
        found = await self._ask(ctx, calls.get_attachment_text(message_id, filename))
        return mcp_results.file_text(message_id, found)

    async def _ask(self, ctx: Ctx, work: Call[T] | Steps[T]) -> T:
        try:
            return await self._caller_of(ctx).carrier.run(work)
        except PostroomError as error:
            raise ToolError(msgspec.json.encode(error.to_json()).decode()) from None

    async def _inbox_id(self, ctx: Ctx, asked: str) -> str:
        """The inbox that is named, else the caller's default, else the only one that the key reaches."""
        default = asked or self._caller_of(ctx).inbox_id
        if default:
            return default
        me: Me = await self._ask(ctx, calls.me())
        if me.inbox_id is None:
            raise ToolError("Name the inbox: pass inbox_id. list_inboxes shows them all.")
        return me.inbox_id


def _decode(files: Sequence[AttachedFile]) -> list[OutgoingFile]:
    try:
        return [
            OutgoingFile(file.filename, base64.b64decode(file.data_base64, validate=True), file.content_type)
            for file in files
        ]
    except (binascii.Error, ValueError):
        raise ToolError("data_base64 of an attachment is not base64.") from None


def _page(thread_id: str, limit: int, offset: int) -> Steps[ThreadMessages]:
    page: ThreadMessages = yield calls.list_thread_messages(thread_id, limit=limit, offset=max(offset, 0))
    if offset >= 0:
        return page
    start = max(page.total - limit, 0)
    if start:
        page = yield calls.list_thread_messages(thread_id, limit=limit, offset=start)
    while page.truncated and page.data:  # large mails make short pages; the last one has the newest
        start += len(page.data)
        page = yield calls.list_thread_messages(thread_id, limit=limit, offset=start)
    return page
