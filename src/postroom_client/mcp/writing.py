"""The tools for writing that an agent is given: sending, answering, passing on, drafts, and their fate."""

from typing import Annotated, Any

from pydantic import Field

from postroom_client.calls import calls, sending
from postroom_client.mcp import outgoing
from postroom_client.mcp.asking import (
    Addresses,
    Asker,
    Attachments,
    Body,
    BodyHtml,
    Ctx,
    IdempotencyKey,
    InboxId,
    Limit,
    MessageId,
    Offset,
    ThreadId,
    decode_files,
)
from postroom_client.mcp.outgoing import DraftPage, DraftSummary, MessageStatus, SentMail

DraftId = Annotated[str, Field(description="Id of the draft, drf_…", min_length=1)]
SendAt = Annotated[
    str, Field(description="Not before this moment, with its zone: 2026-11-14T10:05:00Z. Empty: now.")
]


class WritingTools:
    """Every public method is a tool; its docstring and its types are what the agent reads."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

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
        send_at: SendAt = "",
        idempotency_key: IdempotencyKey = "",
    ) -> SentMail:
        """Send a new mail, which starts a thread. To answer a mail use reply_to_thread.

        It may be held for a person to approve: the answer says so, and what happens next.
        """
        call = calls.send(
            await self._asker.inbox_id(ctx, inbox_id),
            to=to,
            subject=subject,
            body=body,
            cc=cc or (),
            bcc=bcc or (),
            body_html=body_html or None,
            attachments=decode_files(attachments),
            send_at=send_at or None,
            idempotency_key=idempotency_key or None,
        )
        return outgoing.sent_mail(await self._asker.ask(ctx, call))

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
            attachments=decode_files(attachments),
            include_quote=include_quote,
            idempotency_key=idempotency_key or None,
        )
        return outgoing.sent_mail(await self._asker.ask(ctx, steps))

    async def reply_all(
        self,
        ctx: Ctx,
        thread_id: ThreadId,
        body: Body,
        cc: Addresses = "",
        body_html: BodyHtml = "",
        attachments: Attachments = None,
        idempotency_key: IdempotencyKey = "",
    ) -> SentMail:
        """Answer everybody whom the last mail of a thread names; the thread is then read.

        Use reply_to_thread unless all of them need the answer.
        """
        steps = sending.reply_all(
            thread_id,
            body,
            cc=cc or (),
            body_html=body_html or None,
            attachments=decode_files(attachments),
            idempotency_key=idempotency_key or None,
        )
        return outgoing.sent_mail(await self._asker.ask(ctx, steps))

    async def forward_message(
        self,
        ctx: Ctx,
        message_id: MessageId,
        to: Addresses,
        body: Body,
        subject: Annotated[str, Field(description="Empty: Fwd: and the old subject.", max_length=998)] = "",
        cc: Addresses = "",
        idempotency_key: IdempotencyKey = "",
    ) -> SentMail:
        """Pass a mail on to others, with its text below yours and all of its files."""
        steps = sending.forward(
            message_id,
            to=to,
            body=body,
            subject=subject or None,
            cc=cc or (),
            idempotency_key=idempotency_key or None,
        )
        return outgoing.sent_mail(await self._asker.ask(ctx, steps))

    async def create_draft(
        self,
        ctx: Ctx,
        to: Addresses = "",
        subject: Annotated[str, Field(max_length=998)] = "",
        body: Annotated[str, Field(description="Plain text or HTML.")] = "",
        cc: Addresses = "",
        bcc: Addresses = "",
        thread_id: Annotated[str, Field(description="Answer in this thread, thr_…")] = "",
        reply_all: Annotated[bool, Field(description="With thread_id: to everybody.")] = False,
        attachments: Attachments = None,
        inbox_id: InboxId = "",
    ) -> DraftSummary:
        """Write a mail without sending it. Any field may be missing; a person or send_draft sends it."""
        fields: dict[str, Any] = {}
        if to:
            fields["to"] = to
        if cc:
            fields["cc"] = cc
        if bcc:
            fields["bcc"] = bcc
        if subject:
            fields["subject"] = subject
        if body:
            fields["body"] = body
        if thread_id:
            fields["thread_id"] = thread_id
        if reply_all:
            fields["reply_all"] = True
        if attachments:
            fields["attachments"] = decode_files(attachments)
        found = await self._asker.inbox_id(ctx, inbox_id)
        return outgoing.draft_alone(await self._asker.ask(ctx, calls.create_draft(found, **fields)))

    async def list_drafts(
        self, ctx: Ctx, inbox_id: InboxId = "", limit: Limit = 20, offset: Offset = 0
    ) -> DraftPage:
        """List the drafts of an inbox, newest first, with what they say."""
        found = await self._asker.inbox_id(ctx, inbox_id)
        page = await self._asker.ask(ctx, calls.list_drafts(found, limit=limit, offset=offset))
        return outgoing.draft_page(page)

    async def send_draft(self, ctx: Ctx, draft_id: DraftId, idempotency_key: IdempotencyKey = "") -> SentMail:
        """Send a draft as it is; it is then gone. It may be held for a person to approve."""
        call = calls.send_draft(draft_id, idempotency_key=idempotency_key or None)
        return outgoing.sent_mail(await self._asker.ask(ctx, call))

    async def get_message_status(self, ctx: Ctx, message_id: MessageId) -> MessageStatus:
        """Say what became of a sent mail: held, scheduled, on its way, sent or failed, for each recipient."""
        return outgoing.message_status(await self._asker.ask(ctx, calls.get_message(message_id)))

    async def cancel_message(self, ctx: Ctx, message_id: MessageId) -> MessageStatus:
        """Give up a mail that is held, scheduled or still on its way. It cannot be revived."""
        return outgoing.message_status(await self._asker.ask(ctx, calls.cancel_message(message_id)))
