"""The depositing end of a journal: puts mail into inboxes in order and in batches, with the place reached."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import structs

from postroom import log
from postroom.errors import is_out_of_space, is_passing
from postroom.inward.arrival_spans import record_received
from postroom.inward.deposit import deposit
from postroom.inward.journal import positions
from postroom.inward.journal.entries import Held, Journaled, JournalProgress
from postroom.inward.mails import AcceptedMail
from postroom.inward.receive import accept, simpler
from postroom.mailbox import inboxes
from postroom.processes import analysis, pools
from postroom.resources import Resources
from postroom.storage import segments
from postroom.storage.database import Tx
from postroom.storage.segments import DamagedSegment, SegmentPosition

BATCH = 100
# A long queue writes fewer pages for each email this way, and other writers wait up to half a second.
# Its emails come in several messages of the worker: from `MANY` on, all that are here are one batch.
LARGE_BATCH, MANY = 500, 250
# A commit writes the last page of every tree. So where more than a few came together, emails wait for others,
# the longer the more came.
FEW = 16
GATHER_SECONDS_A_MAIL = 0.003
LONGEST_GATHER_SECONDS = 0.15
PAUSE_SECONDS = 1.0

Report = Callable[[JournalProgress | Held], None]


class Depositor:
    """Deposits the emails of one journal. `report` reports progress to its current reader."""

    def __init__(self, resources: Resources, folder: Path, place: SegmentPosition) -> None:
        self._resources = resources
        self.folder = folder
        self.place = place
        self.report: Report = lambda _: None
        self._mails: deque[Journaled] = deque()
        self._has_mail = asyncio.Event()
        self._has_batch = asyncio.Event()
        self._is_at_rest = asyncio.Event()
        self._is_at_rest.set()

    def add(self, mail: Journaled) -> None:
        self._mails.append(mail)
        self._has_mail.set()
        if len(self._mails) >= BATCH:
            self._has_batch.set()
        self._is_at_rest.clear()

    async def settle(self) -> SegmentPosition:
        """After its reader died: waits until its emails are deposited. Returns where the next begins."""
        await self._is_at_rest.wait()
        return self.place

    async def run(self) -> None:
        """Runs until cancelled."""
        loop, last, done_at = asyncio.get_running_loop(), 0, 0.0
        while True:
            await self._has_mail.wait()
            if last > FEW and loop.time() - done_at < LONGEST_GATHER_SECONDS:
                await self._wait_for_batch(gather_seconds(last))
            batch = [self._mails.popleft() for _ in range(batch_size(len(self._mails)))]
            last = len(batch)
            await self._deposit(batch)
            done_at = loop.time()
            if not self._mails:
                self._has_mail.clear()
                self._is_at_rest.set()

    async def _wait_for_batch(self, seconds: float) -> None:
        if len(self._mails) >= BATCH:
            return
        self._has_batch.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._has_batch.wait()

    async def _deposit(self, batch: Sequence[Journaled]) -> None:
        """If a batch fails, halves it until the email to set aside is found; the order stays."""
        while True:
            try:
                await self._store(batch)
                break
            except Exception as error:
                if is_passing(error):
                    await self._hold(error)
                elif len(batch) > 1:
                    middle = len(batch) // 2
                    await self._deposit(batch[:middle])
                    await self._deposit(batch[middle:])
                    return
                elif await self._store_simpler(batch[0]) or await self._set_aside(batch[0], error):
                    break
        self._advance(SegmentPosition(*batch[-1].end))

    async def _store(self, batch: Sequence[Journaled]) -> None:
        resources, end = self._resources, SegmentPosition(*batch[-1].end)
        accepted = [await accept(resources, each.read) for each in batch if each.read is not None]
        if len(accepted) < len(batch):
            raise UnreadableMail("; ".join(each.failure for each in batch if each.read is None))
        bells = await resources.db.write(deposit_up_to, self.folder.name, end, accepted)
        analysis.count(reader for mail in accepted for reader in mail.read.failed)
        record_received(resources, accepted)
        resources.db.ring(*bells)

    async def _store_simpler(self, mail: Journaled) -> bool:
        """Returns False if it cannot be stored with less of it read either."""
        for read in [] if mail.read is None else await pools.READING.run(list, simpler(mail.read)):
            while True:
                try:
                    await self._store([structs.replace(mail, read=read)])
                except Exception as error:
                    if not is_passing(error):
                        break
                    await self._hold(error)
                else:
                    return True
        return False

    async def _hold(self, error: Exception) -> None:
        self._resources.loops.failed("journal", error)
        self.report(Held(str(error)[:200], is_out_of_space(error)))
        await asyncio.sleep(PAUSE_SECONDS)

    async def _set_aside(self, mail: Journaled, error: Exception) -> bool:
        """Returns False if the place cannot be noted either: then the email is not to blame."""
        end = SegmentPosition(*mail.end)
        try:
            kept = await pools.FILES.run(keep_unstored, self.folder, mail)
            await self._resources.db.write(positions.note, self.folder.name, end)
        except Exception as second:
            await self._hold(second)
            return False
        if kept.name == positions.ASIDE:
            reason = f"{type(error).__name__}: {error}"[:500]
            log.get().error("an email could not be stored and was set aside", folder=str(kept), reason=reason)
        else:
            log.get().error(
                "a journal is damaged: whole emails around it are stored", reason=mail.failure, kept=str(kept)
            )
        return True

    def _advance(self, place: SegmentPosition) -> None:
        self.place = place
        self._resources.loops.works("journal")
        self.report(JournalProgress(place))


def keep_unstored(folder: Path, mail: Journaled) -> Path:
    """Return the folder of emails set aside, or the new file if the bytes are damaged."""
    start, end = SegmentPosition(*mail.start), SegmentPosition(*mail.end)
    if not mail.is_damage:
        aside = folder.parent / positions.ASIDE
        try:
            segments.set_aside(folder, start, aside)
        except DamagedSegment:  # since it was read
            pass
        else:
            return aside
    return segments.keep_damage(folder, start, end, folder.parent / positions.DAMAGED)


def gather_seconds(last_batch: int) -> float:
    return min(last_batch * GATHER_SECONDS_A_MAIL, LONGEST_GATHER_SECONDS)


class UnreadableMail(Exception):
    """An email of the journal could not be read; the message says why."""


def deposit_up_to(tx: Tx, journal: str, place: SegmentPosition, mails: list[AcceptedMail]) -> list[str]:
    """Stores emails and the place behind them in one transaction: after a crash none is deposited twice.

    The same holds if an earlier commit succeeded although it seemed to fail.
    """
    if positions.find(tx, journal) >= place:
        return []
    there = inboxes.find_existing(
        tx, {to.inbox_id for mail in mails for to in mail.read.origin.destinations if to.review is None}
    )
    bells = deposit(tx, [without_removed(mail, there) for mail in mails])
    positions.note(tx, journal, place)
    return list(dict.fromkeys(bell for rung in bells for bell in rung))


def without_removed(mail: AcceptedMail, there: set[str]) -> AcceptedMail:
    """Leaves out inboxes that were deleted since the 250: the email to them is dropped."""
    origin = mail.read.origin
    left = tuple(to for to in origin.destinations if to.inbox_id in there or to.needs_no_inbox)
    if len(left) == len(origin.destinations):
        return mail
    read = structs.replace(mail.read, origin=structs.replace(origin, destinations=left))
    return structs.replace(mail, read=read)


def batch_size(waiting: int) -> int:
    """Return how many of so many emails to deposit at once."""
    return min(LARGE_BATCH if waiting >= MANY else BATCH, waiting)
