"""Writing mail: a new one or a reply; sent now, later, or saved as a draft."""

import secrets
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, structs
from starlette.responses import Response

from postroom import limits
from postroom.errors import ApiError, BadRequest
from postroom.mailbox import documents, holds, inboxes, messages, raw_mails, thread_parts, threads
from postroom.operations import messages as messages_operations
from postroom.operations.drafts import NewDraft
from postroom.operations.sending.files import SentFile
from postroom.operations.sending.send import SendBody
from postroom.operations.templates import TemplateQuery, list_templates
from postroom.operations.writers import stop_writing
from postroom.outward.send_stages import SendReceipt
from postroom.processes import pools
from postroom.web.api import drafts as api
from postroom.web.api import send as api_send
from postroom.web.call import Tx
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.pages.mail import place_before
from postroom.web.dashboard.pages.teamwork import person_of
from postroom.web.dashboard.pages.thread import query_before, show_thread
from postroom.web.requests import cookies
from postroom_mail.mime.address import mailbox_of, parse_list
from postroom_mail.mime.parse import parse_mail
from postroom_mail.writing import light_markup

DRAFTS = "/app/drafts"
UNDO_SECONDS = 10
NEWER = 20  # messages in which a reply of somebody else is looked for
TEMPLATES_SHOWN = 100
LAST_INBOX = "postroom_last_inbox"  # the cookie with the id of the inbox that a new email was last sent from
REMEMBERED_SECONDS = 180 * 24 * 3600

Action = Literal["send", "draft", "schedule"]


class ComposeQuery(Struct, rename="camel", frozen=True):
    inbox_id: str = ""
    to: str = ""
    template: str = ""


class MailForm(Struct, rename="camel", frozen=True, kw_only=True):
    """`send_at` is UTC, unless the page's script gave the same time in `send_at_utc`. The values in
    `field_value` belong to the names in `field_name`, in order. `inbox_id` may name an alias behind a blank.
    """

    once: str = ""
    inbox_id: str = ""
    from_address: str = ""
    to: str = ""
    cc: str = ""
    bcc: str = ""
    subject: str = ""
    body: str = ""
    action: Action = "send"
    send_at: str = ""
    send_at_utc: str = ""
    formatted: bool = False
    template: str = ""
    field_name: list[str] = []
    field_value: list[str] = []
    attachments: list[SentFile] = []

    @property
    def fields(self) -> dict[str, str]:
        return dict(zip(self.field_name, self.field_value, strict=False))

    async def to_html(self) -> str | None:
        """Runs in a thread: a text may be long."""
        if self.template or not self.formatted:
            return None
        return await pools.COMPOSING.run(light_markup.to_html, self.body)


class AnswerForm(MailForm, rename="camel", frozen=True, kw_only=True):
    how: Literal["reply", "all", "forward"] = "reply"
    message: str = ""
    newest: str = ""  # the newest message that was on the page


def moment_of(form: MailForm) -> str | None:
    if form.action != "schedule":
        return None
    moment = form.send_at_utc or f"{form.send_at}:00Z"
    if not form.send_at:
        raise BadRequest("Choose a time, or send the email now.", field="sendAt")
    return moment


# --- a new mail


async def show_compose(context: PageContext, query: ComposeQuery) -> Response:
    form = MailForm(inbox_id=query.inbox_id, to=query.to, template=query.template, formatted=True)
    return await show_form(context, form)


async def show_form(context: PageContext, form: MailForm, error: ApiError | None = None) -> Response:
    """Show the form. Refused input is shown again; files have to be chosen again.

    If no inbox is named, it is sent from the one last used in this browser, or the person chooses.
    """
    form = structs.replace(form, inbox_id=form.inbox_id or cookies.find(context.call.request, LAST_INBOX))
    found = await context.run(list_templates, query=TemplateQuery(limit=TEMPLATES_SHOWN))
    chosen = [each for each in found.data if each.id == form.template]
    return await context.show(
        "compose.html",
        "mail",
        200 if error is None else error.status,
        title="New email",
        form=form,
        error=error,
        templates=found.data,
        template=chosen[0] if chosen else None,
        once=form.once or secrets.token_urlsafe(16),
    )


async def compose(context: PageContext, body: MailForm) -> Response:
    inbox_id, _, alias = body.inbox_id.partition(" ")
    body = structs.replace(body, inbox_id=inbox_id, from_address=alias)
    try:
        if not body.inbox_id:
            raise BadRequest("Choose the inbox to send from.", field="inboxId")
        if body.action == "draft":
            made = await api.create_draft(context.call, body.inbox_id, to_draft(body, await body.to_html()))
            return go(f"{DRAFTS}/{made.id}", "Saved as a draft.")
        wanted = SendBody(
            body=None if body.template else body.body,
            subject=body.subject or None,
            template=body.template or None,
            fields=body.fields,
            from_address=alias or None,
        )
        sent = await send(context, body.inbox_id, body, wanted)
    except ApiError as error:
        if error.status >= 500:
            raise
        return await show_form(context, body, error)
    response = to_thread(context, body, sent)
    response.set_cookie(
        LAST_INBOX, body.inbox_id, REMEMBERED_SECONDS, path="/app/compose", httponly=True, samesite="lax"
    )
    return response


def to_thread(context: PageContext, form: MailForm, sent: SendReceipt) -> Response:
    """Return to the thread. The email leaves a moment later, and can be undone until then."""
    path = link(f"/app/mail/{sent.thread_id}", **place_before(context))
    if form.action == "schedule":
        return go(path, "Scheduled. Until then you can reschedule or cancel the email in Drafts.")
    if sent.hold is not UNSET and sent.hold.state == holds.HELD:
        return go(path, "Held for approval.")
    said = f"Sending in {UNDO_SECONDS} seconds."
    return go(path, said, undo=f"/app/messages/{sent.id}/undo")


async def undo(context: PageContext, message_id: str) -> Response:
    """Turns what has not left yet back into a draft."""
    await context.run(messages_operations.cancel_message, message_id=message_id)
    draft_id = await copy_as_draft(context, message_id)
    return go(f"{DRAFTS}/{draft_id}", "Not sent. The email is a draft again.")


async def copy_as_draft(context: PageContext, message_id: str) -> str:
    """Create a draft with the sender, text, recipients and files of an email."""
    message = await context.read(messages.get, context.call.scope, message_id)
    inbox = await context.read(inboxes.get, context.call.scope, message.inbox_id)
    written = documents.decode(message.document)
    sender = mailbox_of(parse_list(written.from_addr)[0].address)
    raw = await raw_mails.read(context.call.resources, message.id, with_trace=False)
    files = (await pools.READING.run(parse_mail, raw)).attachments
    body = NewDraft(
        to=written.header_to or None,
        cc=written.cc or None,
        bcc=None if written.bcc is UNSET else written.bcc or None,
        subject=written.subject or None,
        body=written.body_text or None,
        body_html=written.body_html or None,
        thread_id=message.thread_id,
        include_quote=False,  # the text has the quote already
        from_address=sender if sender in inbox.own_addresses else UNSET,
        attachments=[SentFile(file.filename, file.content, file.content_type) for file in files],
    )
    return (await api.create_draft(context.call, message.inbox_id, body)).id


def to_draft(form: MailForm, body_html: str | None) -> NewDraft:
    return NewDraft(
        to=form.to or None,
        cc=form.cc or None,
        bcc=form.bcc or None,
        subject=form.subject or None,
        body=None if form.template else form.body or None,
        body_html=body_html,
        template=form.template or UNSET,
        fields=form.fields or UNSET,
        from_address=form.from_address or UNSET,
        attachments=form.attachments or UNSET,
    )


async def send(context: PageContext, inbox_id: str, form: MailForm, wanted: SendBody) -> SendReceipt:
    """Sends once, however often the button is pressed."""
    body = structs.replace(
        wanted,
        body_html=await form.to_html(),
        to=form.to,
        cc=form.cc,
        bcc=form.bcc,
        attachments=form.attachments,
        send_at=moment_of(form),
        undo_seconds=UNDO_SECONDS if form.action == "send" else 0,
    )
    require_text(body)
    answer = await api_send.send_body(context.call, inbox_id, f"page-{form.once}", body)
    return msgspec.json.decode(answer.content, type=SendReceipt)


def require_text(body: SendBody) -> None:
    """Check the limits of the body's type, for a body not read from JSON."""
    if body.template is None and not 1 <= len(body.body or "") <= limits.BODY_CHARACTERS:
        raise BadRequest(f"The text must have 1 to {limits.BODY_CHARACTERS:,} characters.", field="body")


# --- an answer


async def answer(context: PageContext, thread_id: str, body: AnswerForm) -> Response:
    thread = await context.read(threads.get, context.call.scope, thread_id)
    forwarded = body.message if body.how == "forward" else None
    wanted = SendBody(
        body=body.body,
        thread_id=None if forwarded else thread.id,
        reply_all=body.how == "all",
        forward_of=forwarded,
    )
    try:
        if body.action == "draft":
            kept = to_answer_draft(body, wanted, await body.to_html())
            made = await api.create_draft(context.call, thread.inbox_id, kept)
            return go(f"{DRAFTS}/{made.id}", "Saved as a draft.")
        if newer := await context.read(find_newer_reply, thread.id, body):
            query = query_before(context, how=body.how)
            return await show_thread(context, thread.id, query, form=body, newer=newer)
        sent = await send(context, thread.inbox_id, body, wanted)
    except ApiError as error:
        if error.status >= 500:
            raise
        query = query_before(context, message=body.message, how=body.how)
        return await show_thread(context, thread.id, query, form=body, error=error)
    await context.decide(stop_writing, thread.id, person_of(context))
    return to_thread(context, body, sent)


def find_newer_reply(tx: Tx, thread_id: str, form: AnswerForm) -> str:
    """Return when somebody else replied since the page was shown, or "". It asks once: then it is shown."""
    if not form.newest or form.how == "forward":
        return ""
    newer = thread_parts.count_newer(tx, thread_id, form.newest)
    for message in thread_parts.list_outlines(tx, thread_id, min(newer, NEWER), 0):
        document = documents.decode(message.document)
        if document.direction == messages.OUTBOUND and message.status != messages.FAILED:
            return document.created_at
    return ""


def to_answer_draft(form: AnswerForm, wanted: SendBody, body_html: str | None) -> NewDraft:
    return NewDraft(
        to=form.to or None,
        body=form.body or None,
        body_html=body_html,
        thread_id=wanted.thread_id,
        reply_all=wanted.reply_all or None,
        forward_of=wanted.forward_of,
        attachments=form.attachments or UNSET,
    )
