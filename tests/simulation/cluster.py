"""Nodes that run the real loops of the server on one database, and crash, stop and start again."""

import asyncio
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from postroom import config as configuration
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader
from postroom.mailbox.search import indexing
from postroom.net.dns import Resolver
from postroom.outward import deliver_mail, deliver_webhook, nudges
from postroom.outward.deliver import deliver_all
from postroom.outward.deliver_mail import Outbound
from postroom.outward.holding.watch_holds import watch_holds
from postroom.outward.sign_mail import Signers
from postroom.processes.loop_supervisor import LoopSupervisor
from postroom.queue.deliveries import MAIL, WEBHOOK
from postroom.queue.outcomes import TriedDelivery
from postroom.queue.recording import JOURNAL_NAME, Recorder, Write
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.journal import Journal
from postroom.upkeep.calendar_times import watch_calendars
from tests.doubles import START
from tests.simulation.faults import Faults
from tests.simulation.faulty_database import FaultyDatabase, SharedDatabase
from tests.simulation.peers import Peers, SimulatedCourier

SECRET = b"a secret of the simulation"
SKEW_MILLISECONDS = 800
INDEX_SECONDS = 0.5


@dataclass
class SkewedClock:
    skew: int

    def now(self) -> int:
        return START + int(asyncio.get_running_loop().time() * 1000) + self.skew


class ForgetfulRecorder(Recorder):
    """As a server would be that tries once to write an outcome down: the simulation must notice."""

    async def record(self, tried: TriedDelivery, write: Write, has_left: bool = True) -> None:
        await write()


class WatchedRecorder(Recorder):
    """Notes what was written down, so that a second delivery of it has no excuse."""

    def __init__(self, recorder: Recorder, peers: Peers, db: FaultyDatabase) -> None:
        self._recorder = recorder
        self._peers, self._db = peers, db
        self.catch_up = recorder.catch_up  # type: ignore[method-assign]

    async def record(self, tried: TriedDelivery, write: Write, has_left: bool = True) -> None:
        await self._recorder.record(tried, write, has_left)
        target = tried.delivery.event_id if tried.delivery.kind == WEBHOOK else tried.delivery.target
        for (_, name), taken in self._peers.taken.items():
            if name == target:
                for each in taken:
                    if each.by is self._db and each.recorded_at is None:
                        each.recorded_at = asyncio.get_running_loop().time()


class Node:
    """One life of a node, from a start to its end."""

    def __init__(
        self, folder: Path, shared: SharedDatabase, faults: Faults, peers: Peers, kind: type[Recorder]
    ) -> None:
        self.db = FaultyDatabase(shared, faults)
        clock = SkewedClock(faults.random.randint(-SKEW_MILLISECONDS, SKEW_MILLISECONDS))
        own = {"POSTROOM_DATA_DIR": str(folder), "POSTROOM_OUTBOUND": "smtp://127.0.0.1:9"}
        blobs = LocalBlobs(folder.parent / "blobs")
        loops = LoopSupervisor(clock)
        self.resources = Resources(
            configuration.load({**own, "POSTROOM_BASE_URL": "http://127.0.0.1:8025"}),
            cast(Any, self.db),
            blobs,
            clock,
            cast(Resolver, None),
            asyncio.Event(),
            loops=loops,
        )
        self.reader = OwnReader(AT_ONCE_BYTES)
        self.is_stopping = False
        recorder = WatchedRecorder(kind(self.resources, Journal(folder / JOURNAL_NAME)), peers, self.db)
        courier = SimulatedCourier(peers, self.db)
        outbound = Outbound(courier, cast(Signers, None), SECRET, self.reader, recorder)
        send = partial(deliver_mail.deliver_mail, self.resources, outbound)
        post = partial(deliver_webhook.deliver_webhook, self.resources, courier, recorder)
        self._loops = [
            loops.supervise(name, loop)
            for name, loop in (
                ("mail", partial(deliver_all, self.resources, recorder, MAIL, send)),
                ("webhooks", partial(deliver_all, self.resources, recorder, WEBHOOK, post)),
                ("holds", partial(watch_holds, self.resources)),
                ("follow-ups", partial(nudges.send_nudges, self.resources)),
                ("calendars", partial(watch_calendars, self.resources)),
                ("index", self._keep_indexed),
            )
        ]

    async def _keep_indexed(self) -> None:
        """The step of the real loop; its pace is by the processor's time, which no seed decides."""
        while True:
            if not await indexing.step(self.resources.db, "index", self.resources.now()):
                await asyncio.sleep(INDEX_SECONDS)

    def crash(self) -> None:
        """Whatever it does next waits for ever."""
        self.db.is_dead = self.db.has_crashed = True

    async def stop(self) -> None:
        """As a server stops: what is under way gets its time, and what is known is kept."""
        self.is_stopping = True
        self.drop()
        await asyncio.gather(*(loop.stop() for loop in self._loops))
        self.db.is_dead = True

    def drop(self) -> None:
        """None of its loops begins again."""
        for loop in self._loops:
            loop.cancel()


class Cluster:
    """`nodes` are those that live now; the folder of each outlives it."""

    def __init__(
        self, folder: Path, shared: SharedDatabase, faults: Faults, size: int, kind: type[Recorder]
    ) -> None:
        self.folder, self.shared, self.faults, self._kind = folder, shared, faults, kind
        self.peers = Peers(faults)
        self.nodes: list[Node] = []
        self._lives: list[Node] = []  # of them and of those before
        for number in range(size):
            (folder / f"node-{number}").mkdir()
            self.nodes.append(self._start(number))

    def _start(self, number: int) -> Node:
        folder = self.folder / f"node-{number}"
        self._lives.append(Node(folder, self.shared, self.faults, self.peers, self._kind))
        return self._lives[-1]

    def close(self) -> None:
        for node in self._lives:
            node.drop()

    def any_node(self) -> Node:
        return self.faults.random.choice(self.nodes)

    async def misbehave(self) -> None:
        """Runs until cancelled: every few seconds something large goes wrong, and is mended."""
        while True:
            await asyncio.sleep(self.faults.random.uniform(3.0, 40.0))
            await self.faults.random.choice([self._crash, self._stop, self._cut_off, self._go_away])()

    async def _crash(self) -> None:
        number = self.faults.random.randrange(len(self.nodes))
        self.faults.tell(f"node {number} crashes")
        self.nodes[number].crash()
        await asyncio.sleep(self.faults.random.uniform(0.1, 30.0))
        self.nodes[number] = self._start(number)

    async def _stop(self) -> None:
        number = self.faults.random.randrange(len(self.nodes))
        self.faults.tell(f"node {number} stops")
        await self.nodes[number].stop()
        await asyncio.sleep(self.faults.random.uniform(0.1, 30.0))
        self.nodes[number] = self._start(number)

    async def _cut_off(self) -> None:
        """One node alone, which others take for dead when it lasts."""
        node = self.any_node()
        self.faults.tell(f"node {self.nodes.index(node)} is cut off")
        node.db.cut_off()
        await asyncio.sleep(self.faults.random.uniform(1.0, 40.0))
        node.db.join_again()

    async def _go_away(self) -> None:
        """The database, for all of them."""
        self.faults.tell("the database is away")
        self.shared.is_away = True
        await asyncio.sleep(self.faults.random.uniform(0.5, 40.0))
        self.shared.is_away = False
        self.faults.tell("the database is back")
