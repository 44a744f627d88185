"""Journals read and deposited in this process: its own, and those that nobody writes any more."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from postroom import log
from postroom.inward.journal import positions
from postroom.inward.journal.depositor import Depositor
from postroom.inward.journal.mail_journal import MailJournal
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader, Reader
from postroom.processes import pools
from postroom.resources import Resources


async def open_depositor(resources: Resources, folder: Path) -> Depositor:
    return Depositor(resources, folder, await resources.db.read(positions.find, folder.name))


@contextlib.asynccontextmanager
async def running_journal(resources: Resources, folder: Path, reader: Reader) -> AsyncIterator[MailJournal]:
    """Mail appended inside the block is deposited at its end, or by the next start."""
    depositor = await open_depositor(resources, folder)
    journal = MailJournal(folder, depositor.place, reader, depositor.add)
    depositor.report = journal.note
    tasks = [asyncio.create_task(depositor.run()), asyncio.create_task(journal.follow())]
    try:
        yield journal
    finally:
        await journal.close()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def deposit_others(resources: Resources, used: Sequence[Path]) -> None:
    """Deposits them once, then waits until cancelled, as a supervised loop must."""
    for folder in await pools.FILES.run(positions.others, resources.config.data_dir, used):
        async with running_journal(resources, folder, OwnReader(AT_ONCE_BYTES)) as journal:
            await journal.wait_until_deposited(None)
        await resources.db.write(positions.remove, folder.name)
        await pools.FILES.run(shutil.rmtree, folder)
        log.get().info("a journal no longer in use was stored", journal=folder.name)
    await asyncio.Event().wait()
