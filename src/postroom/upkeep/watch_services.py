"""Tells when a service that the server asks about email stops answering, and when it answers again.

Each node notes what it finds; the event is recorded once, by whichever node comes first.
"""

import asyncio
from collections.abc import Collection

from postroom import ids
from postroom.accounts import accounts
from postroom.accounts.scope import default_pod
from postroom.clock import MINUTE
from postroom.config import Config
from postroom.events.announce import announce_notice
from postroom.events.kinds import SERVICE_FAILED, SERVICE_MENDED
from postroom.events.notice_subjects import EventService
from postroom.events.payload import SystemNotice
from postroom.inward import scanning
from postroom.inward.junk import lists, services
from postroom.resources import Resources, ServiceFaults
from postroom.storage.database import Tx, insert_new

PAUSE_SECONDS = 20.0
LASTING = MINUTE  # nobody is notified of a shorter fault
FORGOTTEN = 3 * MINUTE  # what a node found that has not found it again since, as one that ended


async def watch_services(resources: Resources) -> None:
    """Runs until cancelled, on every node: one may reach a service that another does not."""
    node = ids.trace()
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        await look(resources, node)


async def look(resources: Resources, node: str) -> None:
    now, found = resources.now(), resources.services
    is_any_lasting = any(now - each.since >= LASTING for each in found.found.values())
    if is_any_lasting or await resources.db.read(is_any_recorded):
        await resources.db.write(record, node, found, names_asked(resources.config), now)


def names_asked(config: Config) -> list[str]:
    """Return the services of the settings, by the names of their faults."""
    asked = {
        scanning.CLAMD: config.clamd,
        services.RSPAMD: config.rspamd_url,
        services.SPAMASSASSIN: config.spamd,
    }
    zones = dict.fromkeys(zone for zone, _ in (*config.address_lists, *config.link_lists))
    return [*(name for name, place in asked.items() if place), *map(lists.name_of, zones)]


def is_any_recorded(tx: Tx) -> bool:
    return tx.one("select 1 as found from service_faults limit 1") is not None


def record(tx: Tx, node: str, found: ServiceFaults, asked: Collection[str], now: int) -> None:
    """Record what this node finds, and what has changed for all nodes."""
    noted = {row["name"] for row in tx.all("select distinct name from service_faults")}
    for name in sorted(noted.difference(asked)):
        tx.run("delete from service_faults where name = :name", name=name)
    for name in asked:
        fault = found.found.get(name)
        if fault is not None and now - fault.since >= LASTING:
            _record(tx, name, node, fault.since, now)
            if insert_new(tx, "service_faults", name=name, node="", since=fault.since, seen_at=now):
                _announce(tx, SERVICE_FAILED, EventService(name, fault.words), now)
        elif fault is None and name in noted and name in found.answered and _is_repaired(tx, name, node, now):
            _announce(tx, SERVICE_MENDED, EventService(name, None), now)


def _record(tx: Tx, name: str, node: str, since: int, now: int) -> None:
    tx.run(
        "insert into service_faults (name, node, since, seen_at) values (:name, :node, :since, :now)"
        " on conflict (name, node) do update set seen_at = excluded.seen_at",
        name=name,
        node=node,
        since=since,
        now=now,
    )


def _is_repaired(tx: Tx, name: str, node: str, now: int) -> bool:
    """Return whether no other node still finds it away, and none has announced it yet."""
    tx.run(
        "delete from service_faults where name = :name and node <> ''"
        " and (node = :node or seen_at < :earlier)",
        name=name,
        node=node,
        earlier=now - FORGOTTEN,
    )
    left = tx.one(
        "select 1 as found from service_faults where name = :name and node <> '' limit 1", name=name
    )
    return (
        left is None and tx.run("delete from service_faults where name = :name and node = ''", name=name) == 1
    )


def _announce(tx: Tx, kind: str, about: EventService, now: int) -> None:
    """Announce it to the server's first account only: its owner runs the server."""
    first = accounts.find_first(tx)
    if first is not None:
        announce_notice(tx, SystemNotice(first.id, default_pod(first.id), kind, now, service=about))
