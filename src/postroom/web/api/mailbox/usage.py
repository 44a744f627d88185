"""Usage over REST."""

from datetime import date

from postroom.mailbox import inboxes, usage
from postroom.mailbox.usage import GroupUse
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.finding_body import FIRST_DAY, UsageQuery
from postroom.web.interface.shapes import finding_shapes as shapes

SECONDS = 10.0


async def get_usage(call: Call, query: UsageQuery) -> shapes.Usage:
    """What was received, sent and kept, by day, inbox or pod"""
    first, last = query.days(call.now())

    def work(tx: Tx) -> list[GroupUse]:
        reach = inboxes.narrow(tx, call.reach, query.inbox_id, query.pod_id)
        return [] if reach is None else usage.list_groups(tx, reach, query.group_by, first, last)

    found = await call.resources.db.read_long(work, SECONDS)
    return shapes.Usage(day_name(first), day_name(last), [show(each) for each in found])


def show(use: GroupUse) -> shapes.ShownUsage:
    group = day_name(use.group) if isinstance(use.group, int) else use.group
    return shapes.ShownUsage(group, **use.counts)


def day_name(number: int) -> str:
    return date.fromordinal(number + FIRST_DAY).isoformat()
