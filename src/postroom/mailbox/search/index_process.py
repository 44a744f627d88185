"""A process that indexes while much mail comes, so that the server keeps its processor for the mail.

Run as `python -m postroom.mailbox.search.index_process DATABASE HOLDER PARENT_PID`.
"""

import asyncio
import gc
import os
import sys
import time
from contextlib import closing
from pathlib import Path

from postroom.clock import SystemClock
from postroom.mailbox.search import indexing
from postroom.mailbox.search.indexing import IndexStep
from postroom.storage.database import IndexStore
from postroom.storage.engines.sqlite_indexer import SqliteIndexStore
from postroom_mail.files.child_limits import LOW_PRIORITY, close_other_files, die_with_parent

FEW = 32  # changes; fewer are indexed by the server itself
PAUSE_SECONDS = 1.0
STAYS_SECONDS = 20.0  # when there are but few


async def index_much(store: IndexStore, holder: str, stays_seconds: float = STAYS_SECONDS) -> None:
    """Runs until few changes have come for a while."""
    clock = SystemClock()
    busy_at = time.monotonic()
    while time.monotonic() - busy_at < stays_seconds:
        is_busy = await store.read(indexing.has_at_least, FEW)
        done = await indexing.step(store, holder, clock.now())
        if is_busy:
            busy_at = time.monotonic()
        if done is not IndexStep.PART and not await store.read(indexing.has_full_batch):
            await asyncio.sleep(PAUSE_SECONDS)


def main(database: str, holder: str, parent_pid: str) -> None:
    die_with_parent()
    if os.getppid() != int(parent_pid):
        return
    close_other_files()
    os.nice(LOW_PRIORITY)
    gc.freeze()  # everything loaded so far stays: no collection needs to look at it again
    with closing(SqliteIndexStore(Path(database))) as store:
        asyncio.run(index_much(store, holder))


if __name__ == "__main__":
    main(*sys.argv[1:4])
