"""The reading tools for an agent. Each is one call of the interface, or a few together."""

from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from postroom_client.calls import calls, shortcuts, waiting
from postroom_client.limits import SEARCH_CHARACTERS
from postroom_client.mcp import results
from postroom_client.mcp.api_caller import (
    ApiCaller,
    Ctx,
    InboxId,
    Limit,
    MessageId,
    Offset,
    ThreadId,
    Timeout,
)
from postroom_client.mcp.results import (
    Arrival,
    FileText,
    Identity,
    InboxPage,
    InboxSummary,
    MessageText,
    SearchResults,
    ThreadAssignment,
    ThreadContent,
    ThreadLabels,
    ThreadMark,
    ThreadPage,
)
from postroom_client.results import ThreadMessages
from postroom_client.transport.exchange import Steps

Labels = list[str] | None
TextOffset = Annotated[int, Field(description="next_offset of the previous piece.", ge=0)]


ThreadState = Literal["open", "snoozed", "done", "awaiting", "overdue"]


class Tools:
    """Every public method is a tool; its docstring and its types are what the agent reads."""

    def __init__(self, api: ApiCaller) -> None:
        self._api = api

    async def auth_me(self, ctx: Ctx) -> Identity:
        """Show the key's account, its scope, and the inbox used when none is named."""
        me = await self._api.call(ctx, calls.me())
        return results.identity(me, self._api.default_inbox_id(ctx))

    async def list_inboxes(
        self,
        ctx: Ctx,
        pod_id: Annotated[str, Field(description="Only of this pod: its id or clientId.")] = "",
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> InboxPage:
        """List the inboxes that you can use, with their addresses, newest first."""
        call = calls.list_inboxes(pod_id=pod_id or None, limit=limit, offset=offset)
        page = await self._api.call(ctx, call)
        return InboxPage([results.inbox(inbox) for inbox in page.data], page.total)

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
        return results.inbox(await self._api.call(ctx, call))

    async def list_threads(
        self,
        ctx: Ctx,
        inbox_id: InboxId = "",
        unread_only: Annotated[
            bool, Field(description="true: only threads neither answered nor marked read.")
        ] = False,
        state: Annotated[
            ThreadState | None,
            Field(description="awaiting: no answer yet. overdue: no answer in time."),
        ] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> ThreadPage:
        """List the threads of an inbox, newest first."""
        found = await self._api.inbox_id(ctx, inbox_id)
        is_read = False if unread_only else None
        call = calls.list_threads(found, is_read=is_read, state=state, limit=limit, offset=offset)
        return results.thread_page(await self._api.call(ctx, call))

    async def read_thread(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        limit: Limit = 10,
        offset: Annotated[int, Field(description="-1: the newest messages; 0: from the first.", ge=-1)] = -1,
    ) -> ThreadContent:
        """Read the messages of a thread, oldest first. Reading does not mark it read."""
        return results.thread_content(await self._api.call(ctx, _page(thread_id, limit, offset)))

    async def mark_thread_read(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        is_read: Annotated[bool, Field(description="false marks it unread.")] = True,
    ) -> ThreadMark:
        """Mark a thread read or unread. A reply marks it read."""
        thread = await self._api.call(ctx, shortcuts.mark_thread(thread_id, is_read=is_read))
        return ThreadMark(thread.id, thread.is_read)

    async def label_thread(
        self, ctx: Ctx, thread_id: ThreadId, add: Labels = None, remove: Labels = None
    ) -> ThreadLabels:
        """Add labels to a thread, or remove some. Recipients never see them."""
        if not add and not remove:
            raise ToolError("Pass labels in add or remove.")
        call = shortcuts.label_thread(thread_id, add=add or (), remove=remove or ())
        thread = await self._api.call(ctx, call)
        return ThreadLabels(thread.id, list(thread.labels))

    async def assign_thread(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        assignee_id: Annotated[str, Field(description="Id of a person, usr_…; empty: nobody.")] = "",
    ) -> ThreadAssignment:
        """Assign a thread to a person of the team, who is notified."""
        call = calls.update_thread(thread_id, assignee_id=assignee_id or None)
        thread = await self._api.call(ctx, call)
        return ThreadAssignment(thread.id, thread.assignee_id)

    async def search_messages(
        self,
        ctx: Ctx,
        q: Annotated[
            str,
            Field(
                description='Words (all must be there), "a phrase", -not, a OR b, word*, from: to: subject:'
                " label: in: has:attachment is:unread is:sent before:YYYY-MM-DD after:YYYY-MM-DD",
                min_length=1,
                max_length=SEARCH_CHARACTERS,
            ),
        ],
        inbox_id: Annotated[str, Field(description="Only in this inbox; empty: in all.")] = "",
        limit: Limit = 10,
        cursor: Annotated[str, Field(description="`next` of the previous page.")] = "",
    ) -> SearchResults:
        """Find emails by words in them or in their files, newest first."""
        call = calls.search_page(q, inbox_id=inbox_id or None, limit=limit, cursor=cursor or None)
        return results.search_results(await self._api.call(ctx, call))

    async def wait_for_message(
        self,
        ctx: Ctx,
        inbox_id: InboxId = "",
        timeout_seconds: Timeout = 30,
        from_addr: Annotated[str, Field(description="Part of the sender.")] = "",
        subject: Annotated[str, Field(description="Part of the subject.")] = "",
        thread_id: Annotated[str, Field(description="Only in this thread.")] = "",
        after: Annotated[str, Field(description="Also what came after this message, msg_…")] = "",
    ) -> Arrival:
        """Wait until an email arrives, and read it. Without `after`, only email from now on counts."""
        steps = waiting.wait(
            await self._api.inbox_id(ctx, inbox_id),
            timeout=timeout_seconds,
            after=after or None,
            from_addr=from_addr or None,
            subject=subject or None,
            thread_id=thread_id or None,
        )
        return results.arrival(await self._api.call(ctx, steps))

    async def get_attachment_text(
        self,
        ctx: Ctx,
        message_id: MessageId,
        filename: Annotated[str, Field(description="As read_thread shows it.", min_length=1)],
        offset: TextOffset = 0,
    ) -> FileText:
        """Read the text of an attached file, scanned pages too."""
        found = await self._api.call(ctx, calls.get_attachment_text(message_id, filename, offset=offset))
        return results.file_text(message_id, found, offset)

    async def read_message(self, ctx: Ctx, message_id: MessageId, offset: TextOffset = 0) -> MessageText:
        """Read the text of one email from where read_thread cut it."""
        return results.message_text(await self._api.call(ctx, calls.get_message(message_id)), offset)


def _page(thread_id: str, limit: int, offset: int) -> Steps[ThreadMessages]:
    page: ThreadMessages = yield calls.list_thread_messages(thread_id, limit=limit, offset=max(offset, 0))
    if offset >= 0:
        return page
    start = max(page.total - limit, 0)
    if start:
        page = yield calls.list_thread_messages(thread_id, limit=limit, offset=start)
    while page.truncated and page.data:  # large emails make short pages; the last one has the newest
        start += len(page.data)
        page = yield calls.list_thread_messages(thread_id, limit=limit, offset=start)
    return page
