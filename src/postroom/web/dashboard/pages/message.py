"""Actions on a message: retry, cancel, block; and the message in its sender's design."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.fields import ScopeFilter
from postroom.mailbox import documents, infected, messages, raw_mails
from postroom.mailbox.messages import Message
from postroom.operations import junk, policies, suppressions, threads
from postroom.operations import messages as message_operations
from postroom.operations.sending.calendar import CalendarAnswerBody
from postroom.operations.threads import ThreadChange
from postroom.outward.invitations import to_answer
from postroom.processes import pools
from postroom.web.api import messages as api_messages
from postroom.web.api.messages import DownloadQuery
from postroom.web.api.receipts import get_receipt
from postroom.web.api.send import accept_order
from postroom.web.dashboard import undo
from postroom.web.dashboard.actions import Action
from postroom.web.dashboard.display import mail_html
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.pages.mail import place_before
from postroom_mail.mime.address import parse_list
from postroom_mail.mime.parse import parse_mail


class LabelForm(Struct, frozen=True):
    add: str = ""
    remove: str = ""


class PreviewQuery(Struct, frozen=True):
    filename: str = ""


class PictureQuery(Struct, frozen=True):
    pictures: bool = False


def acts(operation: Callable[..., Any], said: str) -> Action:
    """Return a page that runs an operation on a message and shows it again, in the list it came from."""

    async def act(context: PageContext, message_id: str) -> Response:
        await context.run(operation, message_id=message_id)
        return await back_to(context, message_id, said)

    return act


retry = acts(message_operations.retry_message, "Retrying.")
release = acts(message_operations.release_message, "Released, as if it had just arrived.")
mark_junk = acts(junk.mark_junk, "Moved to Junk. The filter learns from it.")
mark_not_junk = acts(junk.mark_not_junk, "Not junk: it arrived as if it were new.")


async def cancel(context: PageContext, message_id: str) -> Response:
    said = f"Cancelled in {undo.SECONDS} seconds. What is not sent by then never will be."
    to = await page_of(context, message_id)
    return await undo.delay(context, message_operations.cancel_message, to, said, message_id=message_id)


async def respond(context: PageContext, message_id: str, body: CalendarAnswerBody) -> Response:
    """Answers once, however often the button is pressed."""
    key = f"page-{message_id}-{body.status}"
    order = await to_answer(
        context.call.resources, context.call.scope, message_id, body.status, body.comment, key
    )
    await accept_order(context.call, order)
    return await back_to(context, message_id, "The organizer gets your reply once nothing holds it.")


async def suppress_sender(context: PageContext, message_id: str) -> Response:
    message = await context.read(messages.get, context.call.scope, message_id)
    address = require_sender(message)
    await context.run(suppressions.add_suppression, body=suppressions.NewSuppression(address))
    return await back_to(context, message_id, f"Nothing is sent to {address} any more.")


async def block_sender(context: PageContext, message_id: str) -> Response:
    """Block the sender at the inbox that the email came to. The email itself stays."""
    message = await context.read(messages.get, context.call.scope, message_id)
    value = require_sender(message)
    rule = policies.NewRule(type="block", value=value, direction="inbound")
    await context.run(policies.add_policy_rule, query=ScopeFilter(inbox_id=message.inbox_id), body=rule)
    return await back_to(context, message_id, f"Mail from {value} to this inbox is blocked from now on.")


delete = undo.delayed(
    message_operations.delete_message, "/app/mail", "The message is deleted in {seconds} seconds."
)


delete_thread = undo.delayed(
    api_messages.delete_thread, "/app/mail", "The thread is deleted in {seconds} seconds."
)


async def label(context: PageContext, thread_id: str, body: LabelForm) -> Response:
    added, removed = [body.add] if body.add else [], [body.remove] if body.remove else []
    change = ThreadChange(add_labels=added, remove_labels=removed)
    await context.run(threads.change_thread, thread_id=thread_id, body=change)
    return go(link(f"/app/mail/{thread_id}", **place_before(context)))


def require_sender(message: Message) -> str:
    senders = parse_list(documents.decode(message.document).from_addr)
    if not senders:
        raise BadRequest("This message has no sender.")
    return senders[0].address


async def back_to(context: PageContext, message_id: str, notice: str) -> Response:
    return go(await page_of(context, message_id), notice)


async def page_of(context: PageContext, message_id: str) -> str:
    message: Message = await context.read(messages.get, context.call.scope, message_id)
    if not message.thread_id:  # blocked, or in Junk
        return f"/app/messages/{message_id}"
    return link(f"/app/mail/{message.thread_id}", message=message.id, **place_before(context))


async def show_html(context: PageContext, message_id: str, query: PictureQuery) -> Response:
    message: Message = await context.read(messages.get, context.call.scope, message_id)
    document = documents.decode(message.document)
    html, has_pictures = document.body_html, not infected.name_in(document)
    raw = b""
    if "cid:" in html and has_pictures:
        raw = await raw_mails.read(context.call.resources, message_id, with_trace=False)
    return await html_page(html, raw, query.pictures)


async def html_page(html: str, raw: bytes = b"", with_pictures: bool = False) -> Response:
    """Return a separate page for a frame. `raw` is the email, if its HTML shows embedded pictures."""
    page = await pools.READING.run(to_page, html, raw, with_pictures)
    return Response(page, media_type="text/html", headers=mail_html.headers(with_pictures))


def to_page(html: str, raw: bytes, with_pictures: bool) -> str:
    """Return the page, with pictures embedded in the email."""
    embedded = mail_html.Embedded(parse_mail(raw).attachments if raw else ())
    return mail_html.to_page(html, with_pictures, embedded)


async def show_preview(context: PageContext, message_id: str, query: PreviewQuery) -> Response:
    return await api_messages.get_attachment_preview(context.call, message_id, query.filename)


async def download_receipt(context: PageContext, message_id: str) -> Response:
    receipt = await context.perform(get_receipt, message_id=message_id)
    name = f"attachment; filename={message_id}.receipt.json"
    headers = {"Content-Disposition": name, "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(receipt), headers=headers, media_type="application/json")


async def download_raw(context: PageContext, message_id: str) -> Response:
    response = await api_messages.get_raw_message(context.call, message_id, DownloadQuery())
    response.headers["Content-Disposition"] = f"attachment; filename={message_id}.eml"
    response.headers["Cache-Control"] = "no-store"
    return response
