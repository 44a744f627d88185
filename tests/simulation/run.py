"""One run: a seed, some minutes of use and faults, then quiet, then the promises."""

import asyncio
import contextlib
import io
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from postroom import ids
from postroom.accounts import accounts, keys
from postroom.accounts.keys import Caller
from postroom.events import webhooks
from postroom.inward.receive import warm_up
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.processes.pools import Pool
from postroom.queue import queue_loop
from postroom.queue.recording import Recorder
from postroom.storage.database import Tx
from tests import memory_folder
from tests.doubles import START
from tests.migrated import put_migrated_sqlite
from tests.simulation import promises
from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster
from tests.simulation.faults import Faults
from tests.simulation.faulty_database import SharedDatabase
from tests.simulation.virtual_loop import VirtualLoop, run_virtually

SERVICE = "postroom.localhost"
BUSY_SECONDS = 600.0
QUIET_SECONDS = 3 * 3600.0  # longer than the first six waits of a mail
QUIET_IDLE_SECONDS = 20.0  # who looks at a table that nobody rings for
INBOXES = 4
FOLLOWED = 5
INVITED = 4
MOST_NODES = 3


@dataclass(frozen=True)
class Result:
    seed: int
    broken: list[str]
    told: list[str]
    mails: int
    sends: int
    seconds: float  # of virtual time


def run(
    seed: int, mails: int = 20, sends: int = 24, rate: float = 0.15, kind: type[Recorder] = Recorder
) -> Result:
    """The same seed gives the same run."""
    ids._random.seed(seed)
    ids._last_moment = ids._sequence = 0
    random.seed(seed)
    faults = Faults(seed, rate)
    warm_up()
    threads = mock.patch.object(Pool, "run", run_virtually)
    with _folder() as folder, threads, contextlib.redirect_stderr(io.StringIO()):
        loop = VirtualLoop(faults.answer_seconds)
        try:
            return loop.run_until_complete(_run(folder, faults, mails, sends, kind))
        finally:
            _end(loop)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=memory_folder.choose()) as folder:
        yield Path(folder)


def _end(loop: VirtualLoop) -> None:
    """What dead nodes still wait for is dropped, in rounds: a loop that ends ends its own work."""
    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks, timeout=60))
    loop.close()


async def _run(folder: Path, faults: Faults, mails: int, sends: int, kind: type[Recorder]) -> Result:
    put_migrated_sqlite(folder)
    shared = SharedDatabase(folder / "postroom.db")
    caller, owned = shared.run(_furnish, commits=True)
    nodes = faults.random.randint(1, MOST_NODES)
    with contextlib.closing(Cluster(folder, shared, faults, nodes, kind)) as cluster:
        clients = Clients(cluster, caller, owned)
        misbehaving = asyncio.create_task(cluster.misbehave())
        using = [
            *(clients.hand_in(number, faults.random.uniform(0, BUSY_SECONDS)) for number in range(mails)),
            *(clients.send(number, faults.random.uniform(0, BUSY_SECONDS)) for number in range(sends)),
            *(clients.follow_up(number, faults.random.uniform(0, 300)) for number in range(FOLLOWED)),
            *(clients.invite(number, faults.random.uniform(0, BUSY_SECONDS)) for number in range(INVITED)),
        ]
        working = asyncio.gather(*using)
        await asyncio.sleep(BUSY_SECONDS)
        await _mend(cluster, misbehaving)
        await working
        with _rarely_looking():
            await _until_quiet(cluster)
        found = await promises.broken(cluster, clients)
        shared.close()
    return Result(
        faults.seed,
        found,
        faults.told,
        len(clients.mails),
        len(clients.sends),
        asyncio.get_running_loop().time(),
    )


async def _mend(cluster: Cluster, misbehaving: asyncio.Task[None]) -> None:
    """From here on nothing fails any more, and every node lives."""
    misbehaving.cancel()
    await asyncio.gather(misbehaving, return_exceptions=True)
    cluster.faults.rate = 0.0
    cluster.shared.is_away = False
    for number, node in enumerate(cluster.nodes):
        if node.db.is_cut_off:
            node.db.join_again()
        if node.is_stopping:
            await node.stop()
        if node.db.is_dead:
            cluster.nodes[number] = cluster._start(number)


async def _until_quiet(cluster: Cluster) -> None:
    """What waits for its next try gets it; what never comes to an end is told by the promises."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + QUIET_SECONDS
    while loop.time() < ends_at:
        await asyncio.sleep(60.0)
        if not list(promises.everything_had_its_end(cluster.shared.read_tx)):
            return


@contextlib.contextmanager
def _rarely_looking() -> Iterator[None]:
    usual, queue_loop.IDLE_SECONDS = queue_loop.IDLE_SECONDS, QUIET_IDLE_SECONDS
    try:
        yield
    finally:
        queue_loop.IDLE_SECONDS = usual


def _furnish(tx: Tx) -> tuple[Caller, list[Inbox]]:
    """An account with its key, some inboxes and a webhook."""
    account = accounts.add(tx, "simulated", "developer", START)
    keys.add(tx, account.id, None, "key", "pr_simulated", START)
    caller = keys.find_caller(tx, "pr_simulated", START)
    assert caller is not None
    webhooks.put(tx, account.id, account.id, "http://127.0.0.1:9/hook", None, "whsec_c2VjcmV0", START)
    owned = [
        inboxes.add(tx, account.id, f"box{number}", None, None, SERVICE, START) for number in range(INBOXES)
    ]
    return caller, owned
