"""What waits for a decision, and the decisions, over REST."""

from msgspec import Raw

from postroom.mailbox import holds, inboxes, message_json, messages
from postroom.outward.holding import decide
from postroom.outward.holding.decide import Ruling
from postroom.web.api.mailbox.messages import get_message
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import ApprovalQuery, Approve, MessageChange, Reject
from postroom.web.interface.shapes import hold_shapes, shapes


async def list_approvals(call: Call, query: ApprovalQuery) -> hold_shapes.ApprovalPage:
    """List the sends that wait for a decision, oldest first; or those in another state, newest first"""

    def work(tx: Tx) -> hold_shapes.ApprovalPage:
        reach = inboxes.narrow(tx, call.reach, query.inbox_id, query.pod_id)
        if reach is None:
            return hold_shapes.ApprovalPage([], 0)
        found, total = holds.list_within(tx, reach, query.state, query.limit, query.offset)
        return hold_shapes.ApprovalPage(show(tx, call, found), total)

    return await call.resources.db.read(work)


def show(tx: Tx, call: Call, found: list[holds.Hold]) -> list[hold_shapes.HeldMessage]:
    there = [(hold, messages.find(tx, hold.message_id)) for hold in found]
    kept = [(hold, message) for hold, message in there if message is not None]
    shown = message_json.to_json(tx, [message for _, message in kept], call.links())
    return [
        hold_shapes.HeldMessage(Raw(document), holds.show(hold))
        for (hold, _), document in zip(kept, shown, strict=True)
    ]


async def approve_message(call: Call, message_id: str, body: Approve) -> shapes.RawMessage:
    """Let a held message go; contentHash says which content was seen"""
    bells = await call.resources.db.write(
        decide.approve,
        *(call.reach, call.caller, message_id, body.content_hash, ruling_of(call, body.note)),
    )
    call.resources.db.ring(*bells)
    return await get_message(call, message_id)


async def reject_message(call: Call, message_id: str, body: Reject) -> shapes.RawMessage:
    """Refuse a held message, for good"""
    bells = await call.resources.db.write(
        decide.reject, call.reach, call.caller, message_id, ruling_of(call, body.note)
    )
    call.resources.db.ring(*bells)
    return await get_message(call, message_id)


def ruling_of(call: Call, note: str | None = None) -> Ruling:
    """Of the caller, now."""
    return Ruling(
        call.caller.actor, call.resources.config.base_url, call.now(), note=note, address=call.address
    )


async def change_message(call: Call, message_id: str, body: MessageChange) -> shapes.RawMessage:
    """Give a scheduled message another moment"""
    bells = await call.resources.db.write(
        decide.reschedule, call.reach, message_id, body.moment(call.now()), ruling_of(call)
    )
    call.resources.db.ring(*bells)
    return await get_message(call, message_id)


async def get_inbox_limits(call: Call, inbox_id: str) -> hold_shapes.InboxLimits:
    """How much an inbox may send, and has sent"""

    def work(tx: Tx) -> hold_shapes.InboxLimits:
        inbox = inboxes.get(tx, call.reach, inbox_id)
        return hold_shapes.InboxLimits.of(inboxes.read_budget(tx, inbox, call.now()))

    return await call.resources.db.read(work)
