"""Return the signed receipt of a sent message, whose bytes are hashed outside of the transaction."""

from postroom.mailbox import raw_mails
from postroom.operations import receipts
from postroom.operations.receipts import Receipt
from postroom.processes import pools
from postroom.web.call import Call


async def get_receipt(call: Call, message_id: str) -> Receipt:
    """Get the receipt of a sent message: what was shown, who decided and what left, signed"""
    db = call.resources.db
    bcc = await db.read(receipts.require_sent, call.caller, message_id)
    raw = await raw_mails.read(call.resources, message_id, with_trace=False)
    content = await pools.COMPOSING.run(receipts.read_content, raw, bcc)
    return await db.read(receipts.sign_receipt, call.caller, message_id, content, call.now())
