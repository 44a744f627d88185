"""Sending over REST, and what became of a sent mail."""

from starlette.responses import Response

from postroom.errors import BadRequest, NothingToDo
from postroom.mail.writing.compose import DraftError
from postroom.outward.holding import decide
from postroom.outward.orders import Order, SendAnswer
from postroom.outward.send import send_mail
from postroom.queue import deliveries, suppressions
from postroom.web.api.mailbox.messages import get_message
from postroom.web.api.outward.approvals import ruling_of
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.send_body import SendBody, require_idempotency_key, to_order
from postroom.web.interface.shapes import shapes


async def send_message(call: Call, inbox_id: str, body: SendBody) -> shapes.RawReceipt:
    """Send a mail, or reply inside a thread"""
    order = await to_order(inbox_id, require_idempotency_key(call.request), body)
    return to_response(await accept_order(call, order))


async def accept_order(call: Call, order: Order) -> SendAnswer:
    try:
        return await send_mail(call.resources, call.caller, order, call.inbox, call.is_remembered)
    except DraftError as error:
        raise BadRequest(f"This cannot be written into a mail: {error}", field=error.field) from None


def to_response(answer: SendAnswer) -> Response:
    headers = {"Idempotent-Replayed": "true"} if answer.is_replay else None
    return Response(answer.content, media_type="application/json", headers=headers)


async def retry_message(call: Call, message_id: str) -> shapes.RawMessage:
    """Try again now: what failed or waits is due at once"""

    def work(tx: Tx) -> None:
        addresses = decide.retry(tx, call.reach, message_id, call.now())
        if not addresses:
            raise NothingToDo("No recipient of this message failed or waits.")
        suppressions.require_none(tx, [(call.account_id, address) for address in addresses])

    await call.resources.db.write(work)
    call.resources.db.ring(deliveries.BELL)
    return await get_message(call, message_id)


async def cancel_message(call: Call, message_id: str) -> shapes.RawMessage:
    """Give up on the recipients that have not accepted yet, for good"""
    bells = await call.resources.db.write(decide.cancel, call.reach, message_id, ruling_of(call))
    call.resources.db.ring(*bells)
    return await get_message(call, message_id)
