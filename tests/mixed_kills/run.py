"""One run: a server under the whole load, killed so many times; then quiet, and then the promises."""

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

from postroom.clock import SystemClock
from postroom.storage.database import Tx
from postroom.storage.opening import open_database
from tests import warm_start
from tests.api.endpoint import running_endpoint
from tests.conftest import settings
from tests.connections.dovecot import running_dovecot
from tests.couriers.smtp_peer import SmtpPeer
from tests.mixed_kills import oracle
from tests.mixed_kills.load import Load
from tests.mixed_kills.oracle import Peers
from tests.mixed_kills.server import VICTIMS, WORKER, KilledServer
from tests.outbound import relay_to

LONGEST_LIFE_SECONDS = 1.2
HELD_SECONDS = 0.3
FAILING_ANSWERS = 3
LONGEST_RUN_SECONDS = 900
LONGEST_KILL_SECONDS = 30


@dataclass(frozen=True)
class Summary:
    kills: dict[str, int]
    mails: int
    sends: int
    holds: int
    webhooks: int
    events: int
    flags: int
    repeated: int  # mails and webhooks that went again, since a death took what came of them

    def __str__(self) -> str:
        killed = ", ".join(f"{count} of {victim}" for victim, count in self.kills.items())
        return (
            f"{killed}: {self.mails} mails, {self.sends} sends, {self.holds} holds, {self.webhooks} webhooks,"
            f" {self.events} events, {self.flags} flags by IMAP; {self.repeated} repeated after a death"
        )


async def run(folder: Path, kills: int, seed: int, database_url: str = "") -> Summary:
    """Raises AssertionError with the promise that does not hold. The folder keeps everything."""
    async with (
        asyncio.timeout(LONGEST_RUN_SECONDS + kills * LONGEST_KILL_SECONDS),
        running_dovecot() as dovecot,
        running_endpoint() as endpoint,
        SmtpPeer(hold=open_gate()) as smtp,
    ):
        server = KilledServer(folder / "data", database_url, relay_to(smtp))
        await server.start()
        load = Load(server, dovecot, endpoint.url, seed)
        peers = Peers(smtp, endpoint)
        try:
            await load.furnish()
            await load.start()
            killed = await kill_again_and_again(server, load, peers, kills, random.Random(seed))
            await load.finish()
            rows = await oracle.until_quiet(server, load)
            deaths = sum(count for victim, count in killed.items() if victim != WORKER)
            await oracle.require_all_promises(rows, load, peers, deaths)
        finally:
            await load.close()
            await server.stop()
    await require_verified(server)
    return summarise(killed, load, peers, rows)


def open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


async def kill_again_and_again(
    server: KilledServer, load: Load, peers: Peers, kills: int, dice: random.Random
) -> dict[str, int]:
    killed = dict.fromkeys(VICTIMS, 0)
    for number in range(kills):
        victim = VICTIMS[number % len(VICTIMS)] if kills <= len(VICTIMS) else dice.choice(VICTIMS)
        await asyncio.sleep(dice.uniform(0, LONGEST_LIFE_SECONDS))
        peers.endpoint.answers = [b"500 Not now"] * dice.randrange(FAILING_ANSWERS)
        is_last = number == kills - 1  # then nobody wants to wait for what a dead server held
        await die(server, load, peers, victim, dice, ends_leases=is_last or dice.random() < 0.5)
        load.require_nobody_failed()
        killed[victim] += 1
    return killed


async def die(
    server: KilledServer, load: Load, peers: Peers, victim: str, dice: random.Random, ends_leases: bool
) -> None:
    gate = peers.smtp.hold
    assert gate is not None
    if dice.random() < 0.3:  # the other server has mails whole, and has not answered
        gate.clear()
        await asyncio.sleep(HELD_SECONDS)
    await server.kill(victim)
    gate.set()
    if victim == WORKER:
        return
    await peers.smtp.hang_up()
    rows = await oracle.look(server)
    peers.note_settled(rows.delivered)
    oracle.require_nothing_left_unapproved(rows, load, peers)
    if ends_leases:
        await end_leases(server)
    await server.start()


async def end_leases(server: KilledServer) -> None:
    """What a dead server held comes due when its leases end: now, as if that time had passed."""

    def end(tx: Tx) -> None:
        tx.run("update deliveries set due_at = 0 where state = 'pending'")
        tx.run("update examinations set due_at = 0")
        tx.run("update connections set leased_until = 0")

    db = await open_database(
        settings(server.folder, DATABASE_URL=server.database_url), SystemClock().now(), may_create=False
    )
    try:
        await db.write(end)
    finally:
        await db.close()


async def require_verified(server: KilledServer) -> None:
    """`postroom verify` looks at everything that is stored."""
    done = await asyncio.to_thread(warm_start.run, ["verify", "--json"], server.environment)
    assert done.returncode == 0, done.stdout


def summarise(killed: dict[str, int], load: Load, peers: Peers, rows: oracle.Rows) -> Summary:
    arrivals = peers.arrivals()
    return Summary(
        killed,
        len(rows.subjects),
        len(load.known.sends),
        len(load.known.held),
        sum(name == "webhook" for name, _ in arrivals),
        len(load.known.events),
        len(load.known.flagged),
        sum(arrivals.values()) - len(arrivals),
    )
