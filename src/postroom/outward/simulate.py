"""Handles an email to the simulator: its character's reaction, as a receipt or a delivery error."""

import asyncio

from postroom.clock import DAY
from postroom.inward.mails import AcceptedMail, Arrival, Destination, Origin, trace_inside
from postroom.inward.receive import Reader, accept
from postroom.mailbox.messages import Message
from postroom.outward import simulator
from postroom.outward.courier import DeliveryError, Receipt
from postroom.outward.simulator import Answer, Sent
from postroom.processes import pools
from postroom.queue.deliveries import Delivery
from postroom.resources import Resources
from postroom_mail.mime.parse import parse_mail
from postroom_mail.writing.return_path import BouncePath


async def simulate(
    resources: Resources, reader: Reader, message: Message, delivery: Delivery, sender: str, raw: bytes
) -> Receipt:
    """Answers are part of the receipt: stored in the inbox when it is recorded, or not at all."""
    mail = await pools.READING.run(parse_mail, raw)
    sent = Sent(mail, sender, delivery.target, delivery.id, delivery.created_at)
    reaction = simulator.react(sent)
    await asyncio.sleep(reaction.wait_seconds)
    refusal = reaction.refusal
    if refusal is not None:
        raise DeliveryError(refusal.text, permanent=True, code=refusal.code, enhanced=refusal.enhanced)
    path = BouncePath(message.id, delivery.position, resources.now() // DAY)
    arrivals = [to_arrival(resources, message.inbox_id, path, answer) for answer in reaction.answers]
    answers = [await read(resources, reader, arrival) for arrival in arrivals]
    return Receipt(250, "2.0.0 Accepted by the simulator.", answers=tuple(answers))


async def read(resources: Resources, reader: Reader, arrival: Arrival) -> AcceptedMail:
    return await accept(resources, await reader.read(arrival))


def to_arrival(resources: Resources, inbox_id: str, path: BouncePath, answer: Answer) -> Arrival:
    return Arrival(
        origin=Origin(
            destinations=(Destination(inbox_id, path if answer.is_to_return_path else None),),
            trace=trace_inside(resources.config.domain, "from the simulator", resources.now()),
            peer_ip="",
            helo="",
            mail_from=answer.mail_from,
        ),
        raw=answer.raw,
    )
