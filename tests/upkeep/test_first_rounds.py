"""Loops that do their first round by themselves, soon after the start."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from postroom.accounts import accounts, domains
from postroom.clock import DAY
from postroom.deliverability.watch_domains import watch_domains
from postroom.net.dns import Resolver
from postroom.outward.notices.tls_reports import write_reports
from postroom.queue import leader_leases, tls_sessions
from postroom.queue.tls_sessions import TlsPolicyKept, TlsSession
from postroom.resources import Resources
from postroom.storage.blobs import LocalBlobs
from postroom.storage.database import Database, Tx
from postroom.upkeep import integrity
from postroom.upkeep.integrity import watch_integrity
from tests.conftest import settings
from tests.doubles import START, FakeClock
from tests.doubles_dns import DnsServer
from tests.mail.keys import signing_key
from tests.waiting import LIMIT_SECONDS, until

Loop = Callable[[Resources], Awaitable[None]]
IsDone = Callable[[Resources, DnsServer], bool]


def has_checked_database(resources: Resources, _dns: DnsServer) -> bool:
    return resources.damage.found == ""


def has_checked_domain(_resources: Resources, dns: DnsServer) -> bool:
    return dns.queries["mail.ours.example", "MX"] > 0


def has_looked_for_readers_of_report(_resources: Resources, dns: DnsServer) -> bool:
    return dns.queries["_smtp._tls.there.example", "TXT"] > 0


def add_work(tx: Tx) -> None:
    """A verified domain, and a TLS session of yesterday."""
    account = accounts.add(tx, accounts.FIRST, "free", START - DAY)
    domain = domains.add(tx, account.id, "mail.ours.example", signing_key(), START - DAY)
    domains.mark_verified(tx, domain, START - DAY)
    session = TlsSession("there.example", TlsPolicyKept("no-policy-found"), "success")
    tls_sessions.add_all(tx, [session], START - DAY)


@pytest.mark.sqlite_alone
@pytest.mark.parametrize(
    ("loop", "is_done"),
    [
        (watch_integrity, has_checked_database),
        (watch_domains, has_checked_domain),
        (write_reports, has_looked_for_readers_of_report),
    ],
)
async def test_a_loop_does_its_first_round_by_itself(
    loop: Loop,
    is_done: IsDone,
    db: Database,
    tmp_path: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_leases, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(integrity, "FIRST_SECONDS", 0.01)
    await db.write(add_work)
    async with DnsServer() as dns:
        resolver = Resolver([dns.address], deadline_seconds=LIMIT_SECONDS)
        blobs = LocalBlobs(tmp_path / "blobs")
        resources = Resources(settings(tmp_path), db, blobs, clock, resolver, asyncio.Event())
        resources.damage.found = "what the last check found"
        running = asyncio.ensure_future(loop(resources))
        await until(lambda: running.done() or is_done(resources, dns))
        assert not running.done(), "a loop runs until it is cancelled"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
