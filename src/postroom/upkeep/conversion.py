"""Conversion: brings rows of earlier versions into today's form, in small steps while the server runs."""

import asyncio
from collections.abc import Callable

from postroom import ids, log
from postroom.clock import SECOND
from postroom.events import events
from postroom.mailbox import messages
from postroom.queue import duties
from postroom.resources import Resources
from postroom.storage.database import Tx

STEP_ROWS = 100
PAUSE_SECONDS = 0.05
RETRY_SECONDS = 60.0
DUTY = "conversion"
DUTY_HELD = 30 * SECOND

# By the name of their progress: a function that converts the rows after an id, and gives the last one it saw.
CONVERSIONS: dict[str, Callable[[Tx, str, int], str | None]] = {
    "events": events.convert_after,
    "messages": messages.convert_after,
}


async def convert_old_rows(resources: Resources) -> None:
    """Ends when nothing is left to do. One node does it; a restart goes on where it was."""
    is_done, me = False, ids.trace()
    while not is_done:
        try:
            now = resources.now()
            if await resources.db.write(duties.take, DUTY, me, now + DUTY_HELD, now):
                is_done = await resources.db.write(convert_some)
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                await asyncio.sleep(DUTY_HELD / SECOND)
        except Exception as error:
            log.get().error("old rows could not be converted", reason=str(error))
            await asyncio.sleep(RETRY_SECONDS)


def convert_some(tx: Tx) -> bool:
    """One step; whether there is nothing more to do."""
    row = tx.one("select name, cursor from conversions order by name limit 1")
    if row is None:
        return True
    last = CONVERSIONS[row["name"]](tx, row["cursor"], STEP_ROWS)
    if last is None:
        tx.run("delete from conversions where name = :name", name=row["name"])
    else:
        tx.run("update conversions set cursor = :last where name = :name", last=last, name=row["name"])
    return False
