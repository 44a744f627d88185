"""Pauses over REST: stopping all that leaves an account, a pod or an inbox."""

from postroom.accounts.rules import pauses
from postroom.fields import Boundary
from postroom.outward.holding import decide
from postroom.queue import deliveries
from postroom.web.api.outward.approvals import ruling_of
from postroom.web.boundaries import required
from postroom.web.call import Call, Tx
from postroom.web.interface.shapes import hold_shapes


async def get_pause(call: Call, query: Boundary) -> hold_shapes.Paused:
    """Whether sending is paused"""

    def work(tx: Tx) -> hold_shapes.Paused:
        reach = required(tx, call.reach, query.inbox_id, query.pod_id)
        return hold_shapes.Paused.of(pauses.find(tx, pauses.scope_of(reach)))

    return await call.resources.db.read(work)


async def put_pause(call: Call, query: Boundary) -> hold_shapes.Paused:
    """Hold every send, new and waiting, until the pause ends"""

    def work(tx: Tx) -> tuple[list[str], hold_shapes.Paused]:
        reach = required(tx, call.reach, query.inbox_id, query.pod_id)
        bells = decide.begin_pause(tx, reach, ruling_of(call))
        call.record(tx, "pause.begun", pauses.scope_of(reach), within=reach)
        return bells, hold_shapes.Paused.of(pauses.find(tx, pauses.scope_of(reach)))

    bells, shown = await call.resources.db.write(work)
    call.resources.db.ring(*bells)
    return shown


async def delete_pause(call: Call, query: Boundary) -> hold_shapes.Paused:
    """End the pause; what nothing else holds goes"""

    def work(tx: Tx) -> None:
        reach = required(tx, call.reach, query.inbox_id, query.pod_id)
        decide.end_pause(tx, reach, call.now())
        call.record(tx, "pause.ended", pauses.scope_of(reach), within=reach)

    await call.resources.db.write(work)
    call.resources.db.ring(deliveries.HOLDS_BELL)
    return hold_shapes.Paused.of(None)
