"""Passing a mail on as it came, over REST."""

from postroom.errors import BadRequest
from postroom.outward.finished.redirected_mail import redirect_mail
from postroom.web.api.outward.send import to_response
from postroom.web.call import Call
from postroom.web.interface.bodies.address_fields import read_addresses
from postroom.web.interface.bodies.redirect_body import RedirectBody
from postroom.web.interface.bodies.send_body import require_idempotency_key
from postroom.web.interface.shapes import shapes


async def redirect_message(call: Call, message_id: str, body: RedirectBody) -> shapes.RawReceipt:
    """Pass a mail on as it came, in the name of its author"""
    key, to = require_idempotency_key(call.request), read_addresses("to", body.to)
    if not to:
        raise BadRequest("to names no recipient.", field="to")
    return to_response(await redirect_mail(call.resources, call.caller, message_id, to, key))
