"""Drafts and scheduled mail; and one draft, as it would be sent, to edit and send."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from postroom.errors import ApiError, DraftChanged, NotFound
from postroom.fields import PageQuery
from postroom.limits import PAGE_BYTES
from postroom.mailbox import holds as stored_holds
from postroom.mailbox import inboxes
from postroom.operations import drafts, holds, messages
from postroom.operations.drafts import DraftChange, DraftToSend, NewFiles, ShownDraft
from postroom.operations.holds import ApprovalQuery, HeldMessage
from postroom.operations.messages import MessageChange
from postroom.operations.sending.files import SentFile
from postroom.outward.send_stages import SendReceipt
from postroom.processes import pools
from postroom.web.api import drafts as api
from postroom.web.call import Call, Tx
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.page_context import INBOXES_SHOWN, PageContext, go, plain
from postroom.web.dashboard.pages.compose import UNDO_SECONDS
from postroom.web.dashboard.pages.message import html_page
from postroom_mail.writing import light_markup

PATH = "/app/drafts"
SHOWN = 50


class NewMoment(Struct, rename="camel", frozen=True):
    """UTC, unless the page's script gave the same time in `send_at_utc`."""

    send_at: str
    send_at_utc: str = ""


async def show_drafts(context: PageContext) -> Response:
    found, _ = await context.read(inboxes.list_within, context.call.scope, INBOXES_SHOWN, 0)
    shown: list[dict[str, Any]] = []
    for inbox in found:
        if sum(len(each.get("body") or "") + len(each.get("bodyHtml") or "") for each in shown) > PAGE_BYTES:
            break
        page = plain(await api.list_drafts(context.call, inbox.id, PageQuery(SHOWN, 0)))
        shown += [{**draft, "address": inbox.address} for draft in page["data"]]
    asked = ApprovalQuery("scheduled", None, None, SHOWN, 0)
    scheduled = (await context.ask(holds.list_approvals, query=asked))["data"]
    waiting = [each for each in scheduled if each["message"]["status"] == "pending"]
    paused = plain(await context.read(list_paused, context))
    return await context.show(
        "drafts.html", "drafts", title="Drafts", drafts=shown, scheduled=waiting + paused
    )


def list_paused(tx: Tx, context: PageContext) -> list[HeldMessage]:
    """List the emails held only by a pause: they need no decision, and are sent when it ends."""
    found, _ = stored_holds.list_within(
        tx, context.call.scope, stored_holds.HELD, SHOWN, 0, stored_holds.FOR_ITS_PAUSE
    )
    return holds.show(tx, holds.those_that_fit(tx, found), context.call.links())


cancel_scheduled = undo.delayed(messages.cancel_message, PATH, "Cancelling in {seconds} seconds.")


reschedule = runs(
    messages.change_message,
    PATH,
    "Rescheduled.",
    NewMoment,
    lambda form: {"body": MessageChange(form.send_at_utc or f"{form.send_at}:00Z")},
)


# --- one draft


class SeenDraft(Struct, frozen=True):
    """The version that the page showed: only that one is changed."""

    version: int


class SeenMail(SeenDraft, rename="camel", frozen=True):
    """With the hash of what the page showed: only that is sent."""

    content_hash: str


class FileForm(SeenDraft, frozen=True):
    filename: str


class DraftForm(Struct, rename="camel", frozen=True, kw_only=True):
    """`send_at` is UTC, unless the page's script gave the same time in `send_at_utc`."""

    version: int
    to: str = ""
    cc: str = ""
    bcc: str = ""
    reply_to: str = ""
    subject: str = ""
    body: str = ""
    send_at: str = ""
    send_at_utc: str = ""
    at_once: bool = False
    formatted: bool = False
    attachments: list[SentFile] = []


async def show_draft(
    context: PageContext, draft_id: str, error: ApiError | None = None, written: DraftForm | None = None
) -> Response:
    """Show a draft. Refused input stays in the form, unless the draft was changed meanwhile."""
    found = await api.view_draft(context.call, draft_id)
    draft = plain(found.draft)
    is_other = written is None or written.version != draft["version"]
    return await context.show(
        "draft.html",
        "drafts",
        200 if error is None else error.status,
        title="Draft",
        draft=draft,
        content=found.content,
        problem=found.problem,
        form=await pools.COMPOSING.run(to_form, draft) if is_other or written is None else written,
        lost=written if is_other else None,
        error=error,
    )


def to_form(draft: dict[str, Any]) -> DraftForm:
    return DraftForm(
        version=draft["version"],
        to=", ".join(draft["to"]),
        cc=", ".join(draft["cc"]),
        bcc=", ".join(draft["bcc"]),
        reply_to=draft["replyTo"] or "",
        subject=draft["subject"] or "",
        body=draft["body"] or "",
        formatted=draft["bodyHtml"] == light_markup.to_html(draft["body"] or ""),
    )


async def show_html(context: PageContext, draft_id: str) -> Response:
    """Show the draft as recipients would see it."""
    found = await api.view_draft(context.call, draft_id)
    if found.content is None:
        raise NotFound(found.problem)
    return await html_page(found.content.content.body_html)


async def change_draft(context: PageContext, draft_id: str, body: DraftForm) -> Response:
    try:
        await save(context, draft_id, body)
    except ApiError as error:
        if error.status >= 500 or isinstance(error, NotFound):
            raise
        return await show_draft(context, draft_id, error, body)
    return go(f"{PATH}/{draft_id}", "Saved. This is what will be sent.")


async def save(context: PageContext, draft_id: str, form: DraftForm) -> None:
    """Save a draft. If the text changed, its HTML is dropped or made from it: else they would differ."""
    draft = await api.get_draft(context.call, draft_id)
    fields = DraftChange(
        to=form.to or None,
        cc=form.cc or None,
        bcc=form.bcc or None,
        reply_to=form.reply_to or None,
        subject=form.subject or None,
        body=form.body or None,
        body_html=await pools.COMPOSING.run(html_of, form, draft),
        send_at=moment_of(form),
        version=form.version,
    )
    changed = await api.change_draft(context.call, draft_id, fields)
    if form.attachments:
        await api.add_draft_files(naming(context, changed.version), draft_id, NewFiles(form.attachments))


def html_of(form: DraftForm, draft: ShownDraft) -> str | UnsetType | None:
    """Return the HTML, unchanged if neither the text nor the formatting was changed."""
    was_formatted = draft.body_html == light_markup.to_html(draft.body or "")
    if is_same(form.body, draft.body or "") and form.formatted == was_formatted:
        return UNSET
    return light_markup.to_html(form.body) if form.formatted else None


def is_same(written: str, kept: str) -> bool:
    """Ignores the kind of line breaks: browsers send CR LF (HTML standard, 4.10.22.4)."""
    return written.splitlines() == kept.splitlines()


def moment_of(form: DraftForm) -> str | UnsetType | None:
    """Return the scheduled time. It stays, unless it was changed or the email is to go at once."""
    if form.at_once:
        return None
    return (form.send_at_utc or f"{form.send_at}:00Z") if form.send_at else UNSET


async def send_draft(context: PageContext, draft_id: str, body: SeenMail) -> Response:
    """Sends once, however often the button is pressed: the draft's id is the idempotency key."""
    call = naming(context, body.version, (b"idempotency-key", f"page-{draft_id}".encode()))
    try:
        answer = await api.send_draft(
            call, draft_id, DraftToSend(), seen_hash=body.content_hash, undo_seconds=UNDO_SECONDS
        )
    except DraftChanged as error:
        return await show_draft(context, draft_id, error)
    return notice_of(msgspec.json.decode(bytes(answer.body), type=SendReceipt))


def notice_of(sent: SendReceipt) -> Response:
    """Return the notice. As after a new email: it leaves a moment later, and can be undone until then."""
    hold = sent.hold
    if hold is UNSET or hold.state == stored_holds.HELD:
        return go(PATH, "Sending now." if hold is UNSET else "Held for approval.")
    return go(PATH, "Sending in 10 seconds.", undo=f"/app/messages/{sent.id}/undo")


delete_draft = undo.delayed(
    drafts.delete_draft,
    PATH,
    "Deleting the draft in {seconds} seconds.",
    SeenDraft,
    lambda form: {"version": form.version},
)


async def remove_file(context: PageContext, draft_id: str, body: FileForm) -> Response:
    await api.delete_draft_file(naming(context, body.version), draft_id, body.filename)
    return go(f"{PATH}/{draft_id}", f"{body.filename} is removed.")


def naming(context: PageContext, version: int, *more: tuple[bytes, bytes]) -> Call:
    """Return the page's call, like that of a client that has seen this version."""
    scope = context.call.request.scope
    headers = [(b"if-match", f'"{version}"'.encode()), *more, *scope["headers"]]
    return replace(context.call, request=Request({**scope, "headers": headers}))
