"""Lets emails in by turns while much reading time waits: those of a peer in their order.

An email that waits for its inbox holds up only the peer's later emails to that inbox.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from postroom.errors import Unavailable
from postroom.inward.journal.reading_budget import ALL, PEER, ReadingBudget, Share
from postroom.inward.mails import Arrival, ReadMail
from postroom.inward.receive import Reader
from postroom_mail.mime import parsing_cost

PATIENCE_SECONDS = 30.0


class Backlogged(Unavailable):
    """Too many emails wait for their inboxes: no more are accepted."""


class _Waiting(Struct, eq=False):
    """`share` is that of now: what is learned of a peer counts for its emails that wait."""

    share: Share
    is_in: "asyncio.Future[Share]"


class ReadingTurns:
    """`has_room` is a condition for all. A change of it calls `let_in`."""

    def __init__(self, budget: ReadingBudget, has_room: Callable[[], bool] = lambda: True) -> None:
        self._budget = budget
        self._has_room = has_room
        self._queues: dict[str, list[_Waiting]] = {}  # by peer: those that wait, in their order

    async def take(self, arrival: Arrival, seconds: float = PATIENCE_SECONDS) -> Share:
        """Returns once there is room; `give_back` makes it again. Raises Backlogged."""
        waiting = _Waiting(self._budget.share_of(arrival), asyncio.get_running_loop().create_future())
        peer = waiting.share.peer
        self._queues.setdefault(peer, []).append(waiting)
        self._let_in(peer)
        if waiting.is_in.done():
            return waiting.is_in.result()
        try:
            async with asyncio.timeout(seconds):
                return await waiting.is_in
        except BaseException as error:
            self._leave(waiting)
            if isinstance(error, TimeoutError):
                raise Backlogged("Too many emails wait to be read.") from None
            raise

    def give_back(self, share: Share, seconds: float | None = None) -> None:
        """Call after an email was read, with the time that it took, or when it will not be."""
        self._budget.give_back(share)
        if seconds is not None:
            self._budget.learn(share, seconds)
        self.let_in()

    def let_in(self) -> None:
        for peer in list(self._queues):
            self._let_in(peer)

    def _let_in(self, peer: str) -> None:
        queue, left, held = self._queues[peer], list[_Waiting](), set[str]()
        for number, waiting in enumerate(queue):
            share = waiting.share = self._budget.renewed(waiting.share)
            full = self._budget.find_full(share) if self._has_room() else {ALL}
            if full & {ALL, PEER}:
                left += queue[number:]
                break
            if full or not held.isdisjoint(share.inboxes):
                held.update(share.inboxes)
                left.append(waiting)
            elif not waiting.is_in.done():  # it was not cancelled
                self._budget.take(share)
                waiting.is_in.set_result(share)
        if len(left) == len(queue):
            return
        del self._queues[peer]
        if left:
            self._queues[peer] = left  # behind the other peers

    def _leave(self, waiting: _Waiting) -> None:
        """It waits no more: cancelled, or for too long. It may have been let in at the same moment."""
        if waiting.is_in.done() and not waiting.is_in.cancelled():
            self.give_back(waiting.is_in.result())
            return
        queue = self._queues.get(waiting.share.peer, [])
        queue[:] = [each for each in queue if each is not waiting]
        if queue:
            self._let_in(waiting.share.peer)
        else:
            self._queues.pop(waiting.share.peer, None)


class FairReader:
    """Reads by turns what may take long. For email that comes past a journal."""

    def __init__(self, reader: Reader, turns: ReadingTurns | None = None) -> None:
        self._reader = reader
        self._turns = turns or ReadingTurns(ReadingBudget())

    async def read(self, arrival: Arrival) -> ReadMail:
        """Raises TooManyHops, or Backlogged."""
        if parsing_cost.is_little(arrival.raw):
            return await self._reader.read(arrival)
        share = await self._turns.take(arrival)
        try:
            return await self._reader.read(arrival)
        finally:
            self._turns.give_back(share)
