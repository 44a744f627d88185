"""Send over REST: an email, an answer to an invitation, or a redirected email."""

from collections.abc import Callable
from typing import Annotated

from msgspec import structs
from starlette.responses import Response

from postroom.errors import BadRequest
from postroom.operations.sending.address_fields import read_long_list
from postroom.operations.sending.calendar import CalendarAnswerBody
from postroom.operations.sending.send import RedirectBody, SendBody, to_order
from postroom.outward.invitations import to_answer
from postroom.outward.raw_submission.redirected_mail import redirect_mail
from postroom.outward.send import send_mail
from postroom.outward.send_stages import Order, SendAnswer, SendReceipt
from postroom.web.api.attached import are_named, send_named
from postroom.web.api.templates import order_from_template
from postroom.web.call import Call
from postroom.web.requests.request_body import require_idempotency_key
from postroom_mail.writing.header_words import DraftError

RawReceipt = Annotated[Response, SendReceipt]


async def send_message(call: Call, inbox_id: str, body: SendBody) -> RawReceipt:
    """Send an email, or reply inside a thread"""
    return to_response(await send_body(call, inbox_id, require_idempotency_key(call.request), body))


async def respond_to_invitation(call: Call, message_id: str, body: CalendarAnswerBody) -> RawReceipt:
    """Accept or decline a message's invitation; the organizer gets the answer by email"""
    key = require_idempotency_key(call.request)
    order = await to_answer(call.resources, call.scope, message_id, body.status, body.comment, key)
    return to_response(await accept_order(call, order))


async def redirect_message(call: Call, message_id: str, body: RedirectBody) -> RawReceipt:
    """Redirect an email unchanged, still from its author"""
    key, to = require_idempotency_key(call.request), await read_long_list("to", body.to)
    if not to:
        raise BadRequest("to has no recipient.", field="to")
    return to_response(await redirect_mail(call.resources, call.decider, message_id, to, key))


async def send_body(call: Call, inbox_id: str, key: str, body: SendBody) -> SendAnswer:
    async def send(whole: SendBody, complete: Callable[[Order], Order] = lambda order: order) -> SendAnswer:
        if whole.template is None:
            order: Order | SendAnswer = await to_order(inbox_id, key, whole)
        else:
            order = await order_from_template(call, inbox_id, key, whole)
        return order if isinstance(order, SendAnswer) else await accept_order(call, complete(order))

    if are_named(body.attachments):
        return await send_named(call, inbox_id, key, body, send)
    return await send(body)


async def accept_order(call: Call, order: Order) -> SendAnswer:
    origin = call.origin
    order = structs.replace(
        order, traceparent=origin.traceparent, address=origin.address, user_agent=origin.user_agent
    )
    try:
        return await send_mail(call.resources, call.caller, order, call.inbox, call.is_remembered)
    except DraftError as error:
        raise BadRequest(f"This cannot be written into an email: {error}", field=error.field) from None


def to_response(answer: SendAnswer) -> Response:
    headers = {"Idempotent-Replayed": "true"} if answer.is_replay else None
    return Response(answer.content, media_type="application/json", headers=headers)
