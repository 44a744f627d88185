"""Other mail servers and an endpoint for webhooks: they count what they took, whoever hears of it."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from postroom.outward.courier import DeliveryError, OutgoingMail, Receipt, WebhookAnswer
from tests.simulation.faults import Answer, Faults
from tests.simulation.faulty_database import FaultyDatabase

_MESSAGE_ID = re.compile(rb"^Message-ID: <([^>]+)>", re.MULTILINE | re.IGNORECASE)
HANG_SECONDS = (30.0, 300.0)


@dataclass
class Taken:
    """Something that a peer has, from whom, and when that one had written it down."""

    by: FaultyDatabase
    began_at: float
    is_unheard: bool = False
    recorded_at: float | None = None

    def may_go_again(self, is_alone: bool) -> bool:
        """As docs/reliability.md says: nobody heard the answer, or who heard it died before it was written,
        or could not reach the database while others could. A stop of the only node is no excuse."""
        if self.is_unheard:
            return True
        if self.recorded_at is None and self.by.is_dead:
            return self.by.has_crashed or not is_alone
        return not is_alone and self.by.was_cut_off(self.began_at, self.recorded_at)


@dataclass
class Peers:
    faults: Faults
    taken: dict[tuple[str, str], list[Taken]] = field(default_factory=dict)

    async def answer(self, name: tuple[str, str], db: FaultyDatabase) -> None:
        """Returns when it was taken and the answer came; else DeliveryError."""
        began_at = asyncio.get_running_loop().time()
        answer = self.faults.answer()
        await asyncio.sleep(self.faults.random.uniform(0.01, 2.0))
        if answer is Answer.HANGS:
            await asyncio.sleep(self.faults.random.uniform(*HANG_SECONDS))
        if answer in (Answer.PUT_OFF, Answer.HANGS):
            await db.stand_still_if_dead()
            raise DeliveryError("4.4.2 Try later.", permanent=False)
        if db.is_dead:  # before the peer has it: the connection is gone
            await db.stand_still_if_dead()
        is_unheard = answer is Answer.TAKEN_UNHEARD
        self.taken.setdefault(name, []).append(Taken(db, began_at, is_unheard))
        await asyncio.sleep(self.faults.random.uniform(0.0, 0.2))
        await db.stand_still_if_dead()
        if is_unheard:
            self.faults.tell(f"the answer to {name[1]} was lost")
            raise DeliveryError("4.4.2 The answer was lost.", permanent=False, unknown_outcome=True)


@dataclass(frozen=True)
class SimulatedCourier:
    """A node's way to other mail servers, and to endpoints."""

    peers: Peers
    db: FaultyDatabase

    async def deliver(self, mail: OutgoingMail) -> Receipt:
        found = _MESSAGE_ID.search(mail.raw)
        assert found is not None
        await self.peers.answer((found[1].decode(), mail.recipient), self.db)
        return Receipt(250, "2.0.0 taken", "mx.there.example")

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> WebhookAnswer:
        await self.peers.answer(("webhook", headers["X-Event-Id"]), self.db)
        return WebhookAnswer(200, 1, "")

    async def close(self) -> None: ...
