"""The receiving end of a journal.

Emails that wait together are appended with one sync, and then answered. After that they are read and handed
over in order to the depositor, which reports how far it has come.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from postroom import log
from postroom.inward.journal.entries import Held, Journaled, JournalProgress, decode, encode
from postroom.inward.journal.reading_budget import ReadingBudget, Share
from postroom.inward.journal.turns import PATIENCE_SECONDS, Backlogged, ReadingTurns
from postroom.inward.mails import Arrival
from postroom.inward.receive import Reader, read_bytes_alone
from postroom.processes.pools import Pool
from postroom.storage import segments
from postroom.storage.records import Record
from postroom.storage.segments import (
    DamagedSegment,
    FoundRecord,
    SegmentPosition,
    SegmentReader,
    SegmentWriter,
)

LARGEST_BYTES = 256 * 1024  # larger mail is stored before its 250: its bytes go into a blob, and not twice
# Limits of mail with a 250 that is in no inbox yet. Beyond, a 250 waits, and after a while it is a 451.
BACKLOG_BYTES = 64 * 1024 * 1024
BACKLOG_SECONDS = 30.0
# A client that sends few emails at a time finds each in its inbox when it gets the 250.
FEW = 4
PRESENT_SECONDS = 1.0
# Read and handed over, but not deposited yet: one large batch that is being deposited, and the next.
AHEAD = 1_000
AHEAD_BYTES = 8 * 1024 * 1024
# In a burst the 250s go first: while so many emails or bytes come within so short a time, none is read.
BURST = 50
BURST_BYTES = 2 * 1024 * 1024
BURST_WITHIN_SECONDS = 0.1
LONGEST_BURST_BYTES = 32 * 1024 * 1024
LONGEST_BURST_SECONDS = 2.0
LOOK_SECONDS = 0.01
# Behind a burst, clients get so many times as long as reading takes, while they keep the loop busy.
# What takes longer was read in a thread, next to them.
CLIENTS_SHARE = 3.0
LONGEST_READING_SECONDS = 0.01
IDLE_TURN_SECONDS = 30e-6
# Mail behind a burst is handed over in large groups: a commit for few writes as much as one for many.
TOGETHER = 50
LONG_QUEUE, LONG_QUEUE_TOGETHER = 1_000, 500
IDLE_SECONDS = 10.0  # after which a fully deposited segment is removed
CLOSE_SECONDS = 20.0
PAUSE_SECONDS = 1.0
DEADLY = 5  # readers that died at the same email; it is then delivered unread


class DepositFull(Exception):
    """There is no disk space for mail already accepted; the message is that of the full disk."""


class Waiting(NamedTuple):
    """An email that is in no inbox yet."""

    end: SegmentPosition
    size_bytes: int
    since: float


Pending = tuple[Record, Share, "asyncio.Future[SegmentPosition]"]


class MailJournal:
    """One folder of segments. `deaths`: how many readers died where this one begins."""

    def __init__(
        self,
        folder: Path,
        reached: SegmentPosition,
        reader: Reader,
        hand_over: Callable[[Journaled], None],
        deaths: int = 0,
    ) -> None:
        self._folder = folder
        self._reader = reader
        self._hand_over = hand_over
        self._deaths = deaths
        self._reached = reached
        self._tidied = reached.segment
        self._end = self._left_over = segments.prepare(folder, reached)
        self._segments = SegmentReader(folder, reached)
        self._writer = SegmentWriter(folder, max(reached, self._end).segment + 1)
        self._thread = Pool("journal", 1)
        self._pending: list[Pending] = []
        self.turns = ReadingTurns(ReadingBudget(), self._has_room)
        self._unread: deque[tuple[SegmentPosition, Share]] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._waiting: deque[Waiting] = deque()
        self._waiting_bytes = 0
        self._ahead: deque[tuple[SegmentPosition, int]] = deque()
        self._ahead_bytes = 0
        self._has_more = asyncio.Event()
        self._has_moved = asyncio.Event()
        self._held: Held | None = None
        self._read_mails: list[Journaled] = []  # read, but not handed over yet
        self._has_rested = False
        self._record_left_over()

    async def append(self, arrival: Arrival) -> None:
        """Durable on return. Raises OSError, Backlogged or DepositFull, and has then kept nothing."""
        if self._held is not None and self._held.is_full:
            raise DepositFull(self._held.reason)
        try:
            share = await self.turns.take(arrival, PATIENCE_SECONDS)
        except Backlogged as error:
            reason = self._held.reason if self._held else error.message
            raise Backlogged(f"{len(self._waiting)} emails wait: {reason}") from None
        written: asyncio.Future[SegmentPosition] = asyncio.get_running_loop().create_future()
        self._pending.append((encode(arrival), share, written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        try:
            end = await written
        finally:
            del written  # an error holds this frame, and would be held by it with the email
        if len(self._waiting) <= FEW:
            await self._wait_until(lambda: self._reached >= end, PRESENT_SECONDS)

    async def follow(self) -> None:
        """Reads and hands over emails until cancelled."""
        while True:
            try:
                await self._follow_one()
            except Exception:
                log.get().exception("the journal cannot be read")
                await asyncio.sleep(PAUSE_SECONDS)

    async def _follow_one(self) -> None:
        """Reads one email, and lets clients that still wait for their 250 go first."""
        await self._let_a_burst_pass()
        found = self._next()
        if found is None:
            self._hand_over_read()
            await self._rest()
            return
        started = time.perf_counter()
        self._read_mails.append(await self._read(found) if isinstance(found, FoundRecord) else found)
        seconds = time.perf_counter() - started
        if (
            not self._are_many_waiting()
            or len(self._read_mails) >= self._together
            or not self._may_go_ahead()
        ):
            self._hand_over_read()
        await self._let_clients_go_first(seconds)
        await self._wait_until(self._may_go_ahead)
        if self._reached.segment > self._tidied:
            self._tidied = self._reached.segment
            await self._thread.run(self._tidy)

    async def _let_clients_go_first(self, seconds: float) -> None:
        """Waits for an idle turn of the loop, but not for long compared with the reading."""
        if not self._are_many_waiting():
            await asyncio.sleep(0)
            return
        now = time.perf_counter()
        end = now + CLIENTS_SHARE * min(seconds, LONGEST_READING_SECONDS)
        while now < end:
            began = now
            await asyncio.sleep(0)
            now = time.perf_counter()
            if now - began < IDLE_TURN_SECONDS:
                return

    def note(self, news: JournalProgress | Held) -> None:
        """Takes a message from the depositor."""
        if isinstance(news, Held):
            self._held = news
        else:
            self._record_reached(SegmentPosition(*news.place))
        self._has_moved.set()

    def _record_reached(self, place: SegmentPosition) -> None:
        self._reached, self._held = place, None
        while self._waiting and self._waiting[0].end <= self._reached:
            self._waiting_bytes -= self._waiting.popleft().size_bytes
        while self._ahead and self._ahead[0][0] <= self._reached:
            self._ahead_bytes -= self._ahead.popleft()[1]
        self.turns.let_in()

    async def wait_until_deposited(self, seconds: float | None = PATIENCE_SECONDS) -> bool:
        """Waits for all mail that is here now."""
        end = self._end
        return await self._wait_until(lambda: self._reached >= end, seconds)

    async def close(self) -> None:
        """Called after the last append. What is not deposited in time is left for the next start."""
        await self.wait_until_deposited(CLOSE_SECONDS)
        if self._reached >= self._end:
            segments.remove_before(self._folder, self._reached, with_own=True)
        self._segments.close()
        self._writer.close()
        self._thread.close()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _record_left_over(self) -> None:
        size = segments.bytes_between(self._folder, self._reached, self._end)
        if size and self._reached < self._end:
            self._wait_for(Waiting(self._end, size, time.monotonic()))
            self._has_more.set()

    def _wait_for(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)
        self._waiting_bytes += waiting.size_bytes

    def _has_room(self) -> bool:
        if not self._waiting:
            return True
        is_recent = time.monotonic() - self._waiting[0].since < BACKLOG_SECONDS
        return is_recent and self._waiting_bytes < BACKLOG_BYTES

    async def _write(self) -> None:
        """All that wait share one sync; those that come meanwhile share the next."""
        while self._pending:
            pending, self._pending = self._pending, []
            try:
                ends = await self._thread.run(self._writer.append, [record for record, _, _ in pending])
            except BaseException as error:
                _fail(pending, error, self.turns)
                del pending
                continue
            now = time.monotonic()
            for (record, share, written), end in zip(pending, ends, strict=True):
                self._unread.append((end, share))
                self._wait_for(Waiting(end, sum(map(len, record)), now))
                if not written.done():
                    written.set_result(end)
            self._end = ends[-1]
            self._has_more.set()
        self._writing = None

    def _next(self) -> FoundRecord | Journaled | None:
        try:
            return self._segments.next(self._end)
        except DamagedSegment as error:
            return Journaled(error.start, error.end, None, str(error), is_damage=True)

    async def _read(self, found: FoundRecord) -> Journaled:
        self._ahead.append((found.end, len(found.record)))
        self._ahead_bytes += len(found.record)
        if self._deaths >= DEADLY:
            self._deaths = 0
            return self._as_bytes(found, "its readers died")
        started = time.perf_counter()
        try:
            return Journaled(found.start, found.end, await self._reader.read(decode(found.record)))
        except Exception as error:
            log.get().exception("an email of the journal cannot be read")
            return self._as_bytes(found, repr(error)[:200])
        finally:
            self._record_read(found.end, time.perf_counter() - started)

    def _record_read(self, end: SegmentPosition, seconds: float) -> None:
        """Makes room for others. Email that an earlier process left has no share."""
        while self._unread and self._unread[0][0] <= end:
            read_to, share = self._unread.popleft()
            self.turns.give_back(share, seconds if read_to == end else None)

    def _as_bytes(self, found: FoundRecord, failure: str) -> Journaled:
        """Hands over the bytes alone: an email with its 250 is delivered, whatever became of its readers."""
        try:
            read = read_bytes_alone(decode(found.record), ["email"])
        except Exception:  # no email: a record that this version does not know
            return Journaled(found.start, found.end, None, failure)
        return Journaled(found.start, found.end, read)

    @property
    def _together(self) -> int:
        return LONG_QUEUE_TOGETHER if len(self._waiting) >= LONG_QUEUE else TOGETHER

    def _hand_over_read(self) -> None:
        for mail in self._read_mails:
            self._hand_over(mail)
        self._read_mails.clear()

    async def _let_a_burst_pass(self) -> None:
        """Waits for a burst to end, but not again before its backlog is deposited."""
        if not self._are_many_waiting():
            self._has_rested = False
        elif not self._has_rested:
            while self._is_in_a_burst():
                self._has_rested = True
                await asyncio.sleep(LOOK_SECONDS)

    def _are_many_waiting(self) -> bool:
        return len(self._waiting) > BURST or self._waiting_bytes > BURST_BYTES

    def _is_in_a_burst(self) -> bool:
        if not self._waiting or self._waiting_bytes > LONGEST_BURST_BYTES:
            return False
        now = time.monotonic()
        return now - self._waiting[0].since < LONGEST_BURST_SECONDS and self._came_many_since(
            now - BURST_WITHIN_SECONDS
        )

    def _came_many_since(self, moment: float) -> bool:
        size_bytes = 0
        for count, waiting in enumerate(reversed(self._waiting)):
            if waiting.since < moment:
                return False
            size_bytes += waiting.size_bytes
            if count >= BURST or size_bytes > BURST_BYTES:
                return True
        return False

    def _may_go_ahead(self) -> bool:
        """After a reader died, one email at a time, to find the email that kills it."""
        if self._deaths and self._ahead and self._ahead[-1][0] <= self._left_over:
            return False
        return len(self._ahead) < AHEAD and self._ahead_bytes < AHEAD_BYTES

    async def _rest(self) -> None:
        self._has_more.clear()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                await self._has_more.wait()
        except TimeoutError:
            await self._thread.run(self._tidy)

    def _tidy(self) -> None:
        """Runs in the writer's thread, so nothing is appended meanwhile."""
        is_all = self._reached >= max(self._end, self._writer.end)
        if is_all:
            self._writer.close()
        segments.remove_before(self._folder, self._reached, with_own=is_all)

    async def _wait_until(self, holds: Callable[[], bool], seconds: float | None = None) -> bool:
        if holds():
            return True
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._has_moved.clear()
                    await self._has_moved.wait()
        except TimeoutError:
            return False
        return True


def _fail(pending: list[Pending], error: BaseException, turns: ReadingTurns) -> None:
    for _, share, written in pending:
        turns.give_back(share)
        if not written.done():
            written.set_exception(error)
