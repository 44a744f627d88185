"""Answers to invitations over REST."""

from postroom.outward.appointments import to_answer
from postroom.web.api.outward.send import accept_order, to_response
from postroom.web.call import Call
from postroom.web.interface.bodies.calendar_body import CalendarAnswerBody
from postroom.web.interface.bodies.send_body import require_idempotency_key
from postroom.web.interface.shapes import shapes


async def respond_to_invitation(call: Call, message_id: str, body: CalendarAnswerBody) -> shapes.RawReceipt:
    """Accept or decline the invitation that a message brought; its organizer is told by mail"""
    key = require_idempotency_key(call.request)
    order = await to_answer(call.resources, call.reach, message_id, body.status, body.comment, key)
    return to_response(await accept_order(call, order))
