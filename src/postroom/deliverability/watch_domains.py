"""The daily check of every verified domain, by one node at a time."""

import asyncio

from postroom.accounts.actors import THE_SERVER
from postroom.accounts.domains import SERVICE, SERVICE_ID, Domain
from postroom.accounts.scope import Scope, default_pod
from postroom.clock import MINUTE
from postroom.deliverability import check_domain, domain_health
from postroom.deliverability.switch_keys import switch_keys
from postroom.queue import leader_leases
from postroom.resources import Resources
from postroom.storage.database import Tx

PAUSE_SECONDS = 60.0
AT_ONCE = 8
LEASE = "domain health"
LEASE_HELD = 10 * MINUTE


async def watch_domains(resources: Resources) -> None:
    """Runs until cancelled."""
    await leader_leases.lead(resources, LEASE, LEASE_HELD, look_at_all, PAUSE_SECONDS)


async def look_at_all(resources: Resources) -> None:
    while await look_at_some(resources):
        pass


async def look_at_some(resources: Resources) -> int:
    """Returns how many were due, up to a limit."""
    config, now = resources.config, resources.now()
    due = await resources.db.read(domain_health.list_due, config.domain, now, AT_ONCE)
    await asyncio.gather(*(look_at(resources, domain) for domain in due))
    return len(due)


async def look_at(resources: Resources, domain: Domain) -> None:
    where = Scope(domain.account_id, domain.pod_id or default_pod(domain.account_id))
    await switch_keys(resources, owned(domain), THE_SERVER, where)
    wanted = await resources.db.read(check_domain.find_wanted, owned(domain), resources.config)
    found = await check_domain.check(resources, wanted)
    problems, unanswered = check_domain.problems(found), check_domain.unanswered(found)
    base_url, now = resources.config.base_url, resources.now()
    await resources.db.write(record_if_there, domain, problems, unanswered, base_url, now)


def owned(domain: Domain) -> Domain:
    """Return the domain with its owner.

    The first account watches the server's own domain, whose keys are the service's.
    """
    if domain.id != SERVICE_ID:
        return domain
    return Domain(domain.id, SERVICE, domain.name, domain.verified_at, domain.created_at, None)


def record_if_there(
    tx: Tx, domain: Domain, problems: tuple[str, ...], unanswered: tuple[str, ...], base_url: str, now: int
) -> None:
    """Record the result, if the domain still exists: it may have been deleted during the DNS query."""
    is_there = tx.one("select 1 as found from domains where id = :id", id=domain.id)
    if is_there or domain.id == SERVICE_ID:
        domain_health.record(tx, domain, problems, unanswered, base_url, now)
