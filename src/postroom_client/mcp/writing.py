"""The writing tools for an agent: sending, replying, forwarding, drafts, and delivery results."""

from typing import Annotated, Any, Literal

from pydantic import Field

from postroom_client.calls import calls, sending
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
    ThreadId,
)
from postroom_client.mcp.outgoing import DraftPage, DraftSummary, MessageStatus, SentMail
from postroom_client.mcp.send_fields import given, takes

DraftId = Annotated[str, Field(description="Id of the draft, drf_…", min_length=1)]
DraftVersion = Annotated[
    int,
    Field(description="The version you read: another one is not sent. 0: any version.", ge=0),
]
BodyOrTemplate = Annotated[str, Field(description="Plain text or HTML.")]
TemplateName = Annotated[str, Field(description="A template, instead of subject and body.")]
TemplateFields = Annotated[dict[str, str] | None, Field(description="Values of its fields.")]
ANSWERING = ("to", "subject", "thread_id", "reply_all", "forward_of")


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
        template: TemplateName = "",
        template_fields: TemplateFields = None,
        **fields: Any,
    ) -> SentMail:
        """Send a new mail, which starts a thread. To answer a mail use reply_to_thread.

        It may be held for approval: the result says so, and what happens next.
        """
        found = await self._api.inbox_id(ctx, inbox_id)
        said = {"subject": subject, "body": body, "template": template, "fields": template_fields}
        call = calls.send(found, to=to, **given({**said, **fields}))
        return outgoing.sent_mail(await self._api.call(ctx, call))

    @takes("send", but=ANSWERING)
    async def reply_to_thread(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        body: BodyOrTemplate = "",
        template: TemplateName = "",
        template_fields: TemplateFields = None,
        **fields: Any,
    ) -> SentMail:
        """Answer the last received mail of a thread; the thread is then read.

        It goes to its sender, or, when this inbox was only copied, to those it was addressed to.
        """
        said = {"body": body, "template": template, "fields": template_fields}
        steps = sending.reply(thread_id, **given({**said, **fields}))
        return outgoing.sent_mail(await self._api.call(ctx, steps))

    @takes("send", but=ANSWERING)
    async def reply_all(self, ctx: Ctx, thread_id: ThreadId, body: Body, **fields: Any) -> SentMail:
        """Answer everybody on the last mail of a thread; the thread is then read."""
        steps = sending.reply_all(thread_id, body, **given(fields))
        return outgoing.sent_mail(await self._api.call(ctx, steps))

    @takes("send", but=(*ANSWERING, "include_quote"))
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
        """Forward a mail, with its text below yours and all its files."""
        steps = sending.forward(message_id, to=to, body=body, subject=subject or None, **given(fields))
        return outgoing.sent_mail(await self._api.call(ctx, steps))

    @takes("create_draft")
    async def create_draft(
        self,
        ctx: Ctx,
        inbox_id: InboxId = "",
        template: TemplateName = "",
        template_fields: TemplateFields = None,
        **fields: Any,
    ) -> DraftSummary:
        """Write a mail without sending it. Any field may be missing; a person or send_draft sends it."""
        found = await self._api.inbox_id(ctx, inbox_id)
        said = {"template": template, "fields": template_fields}
        call = calls.create_draft(found, **given({**said, **fields}))
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
        """Send a draft as it is; it is then deleted, and the mail may be held."""
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
        """Answer a mail's invitation; the organizer gets the answer."""
        call = calls.respond_to_invitation(
            message_id, status, comment=comment, idempotency_key=idempotency_key or None
        )
        return outgoing.sent_mail(await self._api.call(ctx, call))

    async def get_message_status(self, ctx: Ctx, message_id: MessageId) -> MessageStatus:
        """Show the state of a sent mail: held, scheduled, on its way, sent or failed, for each recipient."""
        return outgoing.message_status(await self._api.call(ctx, calls.get_message(message_id)))

    async def cancel_message(self, ctx: Ctx, message_id: MessageId) -> MessageStatus:
        """Cancel a mail that is held, scheduled or still on its way. This cannot be undone."""
        return outgoing.message_status(await self._api.call(ctx, calls.cancel_message(message_id)))
