"""The writing tools for an agent: sending, replying, forwarding, drafts, and delivery results."""

from typing import Annotated, Any, Literal

from pydantic import Field

from postroom_client.calls import calls, sending, waiting
from postroom_client.limits import CALENDAR_COMMENT_CHARACTERS, SUBJECT_CHARACTERS
from postroom_client.mcp import outgoing
from postroom_client.mcp.api_caller import (
    Addresses,
    ApiCaller,
    Body,
    Ctx,
    IdempotencyKey,
    InboxId,
    Limit,
    MessageId,
    Offset,
    ReplyAll,
    ThreadId,
    Timeout,
)
from postroom_client.mcp.outgoing import DraftPage, DraftSummary, MessageStatus, SentMail
from postroom_client.mcp.send_fields import given, takes

DraftId = Annotated[str, Field(description="Id of the draft, drf_…", min_length=1)]
DraftVersion = Annotated[
    int,
    Field(description="The version you read: no other is sent. 0: any version.", ge=0),
]
BodyOrTemplate = Annotated[str, Field(description="Plain text or HTML.")]
ANSWERING = ("to", "subject", "thread_id", "forward_of")


class WritingTools:
    """Every public method is a tool; its docstring and its types are what the agent reads."""

    def __init__(self, api: ApiCaller) -> None:
        self._api = api

    @takes("send", but=("thread_id", "include_quote", "reply_all", "forward_of"))
    async def send_email(
        self,
        ctx: Ctx,
        to: Addresses,
        subject: Annotated[str, Field(max_length=SUBJECT_CHARACTERS)] = "",
        body: BodyOrTemplate = "",
        inbox_id: InboxId = "",
        **fields: Any,
    ) -> SentMail:
        """Start a thread with a new email. The result says whether it is held for approval."""
        found = await self._api.inbox_id(ctx, inbox_id)
        call = calls.send(found, to=to, **given({"subject": subject, "body": body, **fields}))
        return outgoing.sent_mail(await self._api.call(ctx, call))

    @takes("send", but=ANSWERING)
    async def reply_to_thread(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        body: BodyOrTemplate = "",
        reply_all: ReplyAll = False,
        **fields: Any,
    ) -> SentMail:
        """Answer the last received email of a thread, and mark the thread read."""
        reply = sending.reply_all if reply_all else sending.reply
        steps = reply(thread_id, **given({"body": body, **fields}))
        return outgoing.sent_mail(await self._api.call(ctx, steps))

    @takes("send", but=(*ANSWERING, "reply_all", "include_quote"))
    async def forward_message(
        self,
        ctx: Ctx,
        message_id: MessageId,
        to: Addresses,
        body: Body,
        subject: Annotated[
            str, Field(description="Empty: Fwd: and the old subject.", max_length=SUBJECT_CHARACTERS)
        ] = "",
        **fields: Any,
    ) -> SentMail:
        """Forward an email with all its files, its text below yours."""
        steps = sending.forward(message_id, to=to, body=body, subject=subject or None, **given(fields))
        return outgoing.sent_mail(await self._api.call(ctx, steps))

    @takes("create_draft")
    async def create_draft(self, ctx: Ctx, inbox_id: InboxId = "", **fields: Any) -> DraftSummary:
        """Write an email that send_draft or a person sends later. Every field is optional."""
        found = await self._api.inbox_id(ctx, inbox_id)
        call = calls.create_draft(found, **given(fields))
        return outgoing.draft_alone(await self._api.call(ctx, call))

    async def list_drafts(
        self, ctx: Ctx, inbox_id: InboxId = "", limit: Limit = 20, offset: Offset = 0
    ) -> DraftPage:
        """List the drafts of an inbox, newest first, with what they say."""
        found = await self._api.inbox_id(ctx, inbox_id)
        page = await self._api.call(ctx, calls.list_drafts(found, limit=limit, offset=offset))
        return outgoing.draft_page(page)

    async def send_draft(
        self, ctx: Ctx, draft_id: DraftId, version: DraftVersion = 0, idempotency_key: IdempotencyKey = ""
    ) -> SentMail:
        """Send a draft as it is, which ends the draft. It may be held."""
        key = idempotency_key or None
        call = calls.send_draft(draft_id, idempotency_key=key, version=version or None)
        return outgoing.sent_mail(await self._api.call(ctx, call))

    async def respond_to_invitation(
        self,
        ctx: Ctx,
        message_id: MessageId,
        status: Annotated[
            Literal["accepted", "declined", "tentative"], Field(description="The answer to the organizer.")
        ],
        comment: Annotated[
            str, Field(description="Message to the organizer.", max_length=CALENDAR_COMMENT_CHARACTERS)
        ] = "",
        idempotency_key: IdempotencyKey = "",
    ) -> SentMail:
        """Answer an email's invitation; the organizer gets the answer."""
        call = calls.respond_to_invitation(
            message_id, status, comment=comment, idempotency_key=idempotency_key or None
        )
        return outgoing.sent_mail(await self._api.call(ctx, call))

    async def get_message_status(self, ctx: Ctx, message_id: MessageId) -> MessageStatus:
        """Show whether a sent email is held, scheduled, delivered or failed, for each recipient."""
        return outgoing.message_status(await self._api.call(ctx, calls.get_message(message_id)))

    async def wait_for_decision(
        self, ctx: Ctx, message_id: MessageId, timeout_seconds: Timeout = 60
    ) -> MessageStatus:
        """Wait until a person approves or rejects a held email. Call it again if it stays held."""
        found = await self._api.call(ctx, waiting.wait_for_decision(message_id, timeout_seconds))
        return outgoing.message_status(found)

    async def cancel_message(self, ctx: Ctx, message_id: MessageId) -> MessageStatus:
        """Stop an email that is held, scheduled or still on its way. This cannot be undone."""
        return outgoing.message_status(await self._api.call(ctx, calls.cancel_message(message_id)))
