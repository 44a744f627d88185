"""Writing mail: a new one or an answer; sent now, later, or kept as a draft."""

import secrets
from typing import Literal

import msgspec
from msgspec import UNSET, Struct
from starlette.responses import Response

from postroom.errors import ApiError, BadRequest
from postroom.mailbox import threads
from postroom.outward.orders import SendReceipt
from postroom.web.api.outward import drafts as api
from postroom.web.api.outward import send as api_send
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.pages.thread import ThreadPageQuery, show_thread
from postroom.web.interface.bodies.draft_body import DraftBody
from postroom.web.interface.bodies.send_body import SendBody, to_order
from postroom.web.interface.bodies.uploads import SentFile

PATH = "/app/compose"
DRAFTS = "/app/drafts"
BODY_CHARACTERS = 100_000

Action = Literal["send", "draft", "schedule"]


class ComposeQuery(Struct, rename="camel", frozen=True):
    inbox_id: str = ""
    to: str = ""


class MailForm(Struct, rename="camel", frozen=True, kw_only=True):
    """`send_at` is UTC, unless the script of the page said the same moment in `send_at_utc`."""

    once: str = ""
    inbox_id: str = ""
    to: str = ""
    cc: str = ""
    bcc: str = ""
    subject: str = ""
    body: str = ""
    action: Action = "send"
    send_at: str = ""
    send_at_utc: str = ""
    attachments: list[SentFile] = []


class AnswerForm(MailForm, rename="camel", frozen=True, kw_only=True):
    how: Literal["reply", "all", "forward"] = "reply"
    message: str = ""


def moment_of(form: MailForm) -> str | None:
    if form.action != "schedule":
        return None
    moment = form.send_at_utc or f"{form.send_at}:00Z"
    if not form.send_at:
        raise BadRequest("Say when it shall leave, or send it now.", field="sendAt")
    return moment


# --- a new mail


async def show_compose(desk: Desk, query: ComposeQuery) -> Response:
    return await show_form(desk, MailForm(inbox_id=query.inbox_id, to=query.to))


async def show_form(desk: Desk, form: MailForm, error: ApiError | None = None) -> Response:
    """What was written is there again when it was refused; files have to be chosen once more."""
    return await desk.show(
        "compose.html",
        "mail",
        200 if error is None else error.status,
        title="New mail",
        form=form,
        error=error,
        once=form.once or secrets.token_urlsafe(16),
    )


async def compose(desk: Desk, body: MailForm) -> Response:
    try:
        if body.action == "draft":
            made = await api.create_draft(desk.call, body.inbox_id, to_draft(body))
            return go(f"{DRAFTS}/{made.id}", "Kept as a draft.")
        thread_id = await send(desk, body.inbox_id, body, SendBody(body=body.body, subject=body.subject))
    except ApiError as error:
        if error.status >= 500:
            raise
        return await show_form(desk, body, error)
    return go(f"/app/mail/{thread_id}", accepted(body))


def accepted(form: MailForm) -> str:
    if form.action == "schedule":
        return "Accepted. It leaves at its time; until then Drafts can move or cancel it."
    return "Accepted. Delivery shows how far it has come."


def to_draft(form: MailForm) -> DraftBody:
    return DraftBody(
        to=form.to or None,
        cc=form.cc or None,
        bcc=form.bcc or None,
        subject=form.subject or None,
        body=form.body or None,
        attachments=form.attachments or UNSET,
    )


async def send(desk: Desk, inbox_id: str, form: MailForm, wanted: SendBody) -> str:
    """Once, however often the button is pressed. Gives the thread that it is in."""
    body = SendBody(
        body=wanted.body,
        subject=wanted.subject,
        to=form.to,
        cc=form.cc,
        bcc=form.bcc,
        attachments=form.attachments,
        thread_id=wanted.thread_id,
        reply_all=wanted.reply_all,
        forward_of=wanted.forward_of,
        send_at=moment_of(form),
    )
    require_text(body)
    order = await to_order(inbox_id, f"page-{form.once}", body)
    answer = await api_send.accept_order(desk.call, order)
    return msgspec.json.decode(answer.content, type=SendReceipt).thread_id


def require_text(body: SendBody) -> None:
    """What the type of a body says, for one that was not read from JSON."""
    if not body.body or len(body.body) > BODY_CHARACTERS:
        raise BadRequest(f"The text has 1 to {BODY_CHARACTERS:,} characters.", field="body")


# --- an answer


async def answer(desk: Desk, thread_id: str, body: AnswerForm) -> Response:
    thread = await desk.call.resources.db.read(threads.get, desk.call.reach, thread_id)
    forwarded = body.message if body.how == "forward" else None
    wanted = SendBody(
        body=body.body,
        thread_id=None if forwarded else thread.id,
        reply_all=body.how == "all",
        forward_of=forwarded,
    )
    try:
        if body.action == "draft":
            made = await api.create_draft(desk.call, thread.inbox_id, to_answer_draft(body, wanted))
            return go(f"{DRAFTS}/{made.id}", "Kept as a draft.")
        await send(desk, thread.inbox_id, body, wanted)
    except ApiError as error:
        if error.status >= 500:
            raise
        query = ThreadPageQuery(message=body.message, how=body.how)
        return await show_thread(desk, thread.id, query, form=body, error=error)
    return go(f"/app/mail/{thread.id}", accepted(body))


def to_answer_draft(form: AnswerForm, wanted: SendBody) -> DraftBody:
    return DraftBody(
        to=form.to or None,
        body=form.body or None,
        thread_id=wanted.thread_id,
        reply_all=wanted.reply_all or None,
        forward_of=wanted.forward_of,
        attachments=form.attachments or UNSET,
    )
