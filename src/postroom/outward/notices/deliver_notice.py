"""A claimed notice: to a reviewer of a held mail, or a letter to a user."""

from postroom import ids
from postroom.outward import reviewers
from postroom.outward.deliver_mail import Outbound
from postroom.outward.notices import letters
from postroom.queue.deliveries import Delivery
from postroom.queue.outcomes import TriedDelivery
from postroom.resources import Resources


async def deliver_notice(resources: Resources, outbound: Outbound, delivery: Delivery) -> None:
    if ids.is_id(ids.LETTER, delivery.message_id):
        await letters.deliver_letter(resources, outbound, delivery)
    else:
        await reviewers.deliver_notice(resources, outbound, delivery)


async def write_tried(resources: Resources, tried: TriedDelivery) -> list[str]:
    """What an earlier run has left to be written."""
    if ids.is_id(ids.LETTER, tried.delivery.message_id):
        return await letters.write_tried(resources, tried)
    return await reviewers.write_tried(resources, tried)
