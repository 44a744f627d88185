"""What every part of the server shares: settings, database, blobs, clock and DNS resolver."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct, field

from postroom import ids
from postroom.clock import Clock, SystemClock
from postroom.config import Config
from postroom.net.asked_once import AskedOnce
from postroom.net.dns import Resolver
from postroom.processes.loop_supervisor import LoopSupervisor
from postroom.storage.blobs import Blobs
from postroom.storage.database import Database, Overdue, Tx
from postroom.tracing import Tracing

__all__ = ["Blobs", "Overdue", "Resources", "Tx"]


class WorkerCounts(Struct):
    """Workers that receive mail: how many are expected and running, and how often one was replaced."""

    expected: int = 0
    running: int = 0
    restarts: int = 0


class Previews(Struct):
    """Makes a small picture of a file within a time limit; set while the child processes run."""

    make: Callable[[bytes, float], Awaitable[bytes | None]] | None = None


class OpenPorts(Struct):
    """The ports in use, once the server listens: a setting may leave the choice to the system."""

    smtp: int = 0
    acme_http: int = 0


class EventTranslation(Struct):
    """Translates an event for another interface into pairs of id and body. Set when the server starts."""

    render: Callable[[Tx, Any, tuple[str, ...], str, int], list[tuple[str, bytes]]] | None = None


class Damage(Struct):
    """Damage found in the database, as the engine describes it; empty: none."""

    found: str = ""


class ServiceFault(Struct, frozen=True):
    """A service of the operator's choice that is not used: in words for anyone, and why, for the operator."""

    words: str
    reason: str
    since: int
    seen_at: int  # for the last time


class ServiceFaults(Struct):
    """Services that this process finds away or useless, by their name, and those that have answered."""

    found: dict[str, ServiceFault] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)  # when the last question with an answer was asked

    def record(self, name: str, words: str, reason: str, asked_at: int) -> None:
        """Record an answer. A failure is ignored if a question asked later has been answered already."""
        if asked_at < self.answered.get(name, 0):
            return
        since = self.found[name].since if name in self.found else asked_at
        self.found[name] = ServiceFault(words, reason, since, asked_at)

    def clear(self, name: str, asked_at: int) -> None:
        self.found.pop(name, None)
        self.answered[name] = max(asked_at, self.answered.get(name, 0))


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
    services: ServiceFaults = field(default_factory=ServiceFaults)
    service_answers: AskedOnce[Any] = field(default_factory=AskedOnce)  # of the junk filter's services
    previews: Previews = field(default_factory=Previews)
    ports: OpenPorts = field(default_factory=OpenPorts)
    event_translation: EventTranslation = field(default_factory=EventTranslation)
    node: str = field(default_factory=ids.trace)  # the id of this process among nodes
    is_alone: bool = False  # no other server can use the database: this one holds the lock of its folder
    tracing: Tracing | None = None  # set where spans are recorded
    gauges: dict[str, Callable[[], float]] = field(default_factory=dict)  # by the name of the metric

    def now(self) -> int:
        return self.clock.now()
