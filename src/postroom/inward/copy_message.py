"""Copies a received message into another inbox of its account, with what was found out about it."""

from msgspec.structs import replace

from postroom.inward.deposit import deposit
from postroom.inward.mails import UNKNOWN_PEER, Arrival, Destination, Origin, trace_inside
from postroom.inward.receive import accept, read_mail
from postroom.mailbox import attachments, documents, raw_mails
from postroom.mailbox.messages import Message
from postroom.processes import analysis, pools
from postroom.resources import Resources


async def copy_message(resources: Resources, message: Message, target_id: str) -> bool:
    """Copy a message to another inbox, durably. False if the inbox has the email already.

    The policy and the rules of the other inbox apply as to any email. Nothing that the email reports is done
    a second time.
    """
    now = resources.now()
    raw = await raw_mails.read(resources, message.id, with_trace=False)
    trace = trace_inside(resources.config.domain, f"id {message.id}", now)
    origin = Origin((Destination(target_id),), trace, UNKNOWN_PEER, "", "")
    read = await pools.READING.run(read_mail, Arrival(origin, raw, counts_once=True))
    files = (await resources.db.read(attachments.list_of_messages, [message.id])).get(message.id, [])
    read = replace(
        read,
        attachments=tuple(files),
        needs_examination=False,
        awaits_policy=False,
        findings=None,
        report=None,
        returned=None,
    )
    original = documents.decode(message.document)
    accepted = replace(await accept(resources, read, is_copy=True), original=original)
    bells = await resources.db.write_together(deposit, accepted)
    if not bells:
        await raw_mails.remove_blob(resources, accepted.blob)
    analysis.count(read.failed)
    resources.db.ring(*bells)
    return bool(bells)
