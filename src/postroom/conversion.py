"""Conversion: brings rows of earlier versions into today's form, in small steps while the server runs."""

import asyncio
from collections.abc import Callable

from postroom import log
from postroom.events import events
from postroom.mailbox import messages
from postroom.resources import Resources
from postroom.storage.database import Tx

STEP_ROWS = 100
PAUSE_SECONDS = 0.05
RETRY_SECONDS = 60.0

# By the name of their progress: a function that converts the rows after an id, and gives the last one it saw.
CONVERSIONS: dict[str, Callable[[Tx, str, int], str | None]] = {
    "events": events.convert_after,
    "messages": messages.convert_after,
}


async def convert_old_rows(resources: Resources) -> None:
    """Ends when nothing is left to do. A restart goes on where it was."""
    is_done = False
    while not is_done:
        try:
            is_done = await resources.db.write(convert_some)
            await asyncio.sleep(PAUSE_SECONDS)
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
