"""What every part of the server shares: settings, database, blobs, clock and DNS resolver."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct, field

from postroom.clock import Clock, SystemClock
from postroom.config import Config
from postroom.net.dns import Resolver
from postroom.processes.loop_supervisor import LoopSupervisor
from postroom.storage.blobs import Blobs
from postroom.storage.database import Database, Overdue, Tx

__all__ = ["Blobs", "Overdue", "Resources", "Tx"]


class WorkerCounts(Struct):
    """The workers that take mail in: how many are expected and running, and how often one was replaced."""

    expected: int = 0
    running: int = 0
    restarts: int = 0


class Previews(Struct):
    """Makes a small picture of a file within so many seconds; set while children run that can."""

    make: Callable[[bytes, float], Awaitable[bytes | None]] | None = None


class OpenPorts(Struct):
    """On which ports the server listens, once it does: a setting may leave the choice to the system."""

    smtp: int = 0


class OtherWords(Struct):
    """Tells an event in those of another interface: pairs of an id and a body. Set by whoever has them."""

    tell: Callable[[Tx, Any, tuple[str, ...], str, int], list[tuple[str, bytes]]] | None = None


class Damage(Struct):
    """What was found damaged in the database, in the words of the engine; empty: nothing."""

    found: str = ""


class Resources(Struct, frozen=True):
    config: Config
    db: Database
    blobs: Blobs
    clock: Clock
    resolver: Resolver
    stopping: asyncio.Event  # set when the server begins to stop: requests that only wait end
    # Set before that: requests are still answered, but load balancers send no new ones.
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    loops: LoopSupervisor = field(default_factory=lambda: LoopSupervisor(SystemClock()))
    workers: WorkerCounts = field(default_factory=WorkerCounts)
    damage: Damage = field(default_factory=Damage)
    previews: Previews = field(default_factory=Previews)
    ports: OpenPorts = field(default_factory=OpenPorts)
    other_words: OtherWords = field(default_factory=OtherWords)
    gauges: dict[str, Callable[[], float]] = field(default_factory=dict)  # by the name of the metric

    def now(self) -> int:
        return self.clock.now()
