"""The health of a domain: all checks run concurrently, and none can fail the others."""

import asyncio

from postroom.accounts import dkim_keys, domains
from postroom.accounts.domains import Domain
from postroom.config import Config
from postroom.deliverability import server_checks
from postroom.deliverability.findings import HealthCheck
from postroom.deliverability.zone_checks import ZONE_CHECKS, Questions, WantedRecords, answered
from postroom.external_mailboxes import connections
from postroom.net.dns import ThreadResolver
from postroom.queue import statistics
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.authentication import dkim, mta_sts

NEEDED = ("MX", "SPF", "DKIM")  # without one of these a domain is broken


def own_policy(config: Config) -> str:
    return mta_sts.write_policy(config.mta_sts, [config.domain])


def find_wanted(tx: Tx, domain: Domain, config: Config) -> WantedRecords:
    keys = dkim_keys.list_active(tx, domain.account_id, domain.name)
    return WantedRecords(
        domain=domain.name,
        host=config.domain,
        comes_by_mx=not connections.has_posts(tx, domain.account_id),
        leaves_by_mx=config.outbound == "mx" and domain.outbound is None,
        dkim=tuple((key.name_below(domain.name), dkim.public_record(key.private_key)) for key in keys),
        spf=domains.spf_record(domain.name, config.domain),
        dmarc=domains.dmarc_record(domain.name),
        policy=own_policy(config),
    )


async def check(resources: Resources, wanted: WantedRecords) -> list[HealthCheck]:
    resolver = resources.resolver
    addresses = await server_checks.find_addresses(resolver, resources.config.domain)
    ask = Questions(resolver, ThreadResolver(resolver, asyncio.get_running_loop()), addresses)
    of_zone = asyncio.gather(*(answered(name, look(wanted, ask)) for name, look in ZONE_CHECKS))
    of_server = check_server(resources, addresses)
    return [each for found in await asyncio.gather(of_zone, of_server) for each in found]


async def check_server(resources: Resources, addresses: tuple[str, ...]) -> list[HealthCheck]:
    config, resolver = resources.config, resources.resolver
    outside = await resources.db.read(statistics.outside_answers, resources.now())
    reverse, coming, *lists = await asyncio.gather(
        answered("reverse name", server_checks.check_reverse_names(resolver, config.domain, addresses)),
        server_checks.check_port_in(config.domain, addresses),
        *(
            answered(f"block list {zone}", server_checks.check_block_list(resolver, zone, addresses))
            for zone in config.block_lists
        ),
    )
    leaving = server_checks.check_port_out(config.outbound == "mx", outside)
    return [reverse, coming, leaving, *(lists or [server_checks.NO_LISTS])]


def problems(found: list[HealthCheck]) -> tuple[str, ...]:
    """Checks that fail the domain; unknown ones do not."""
    return tuple(each.name for each in found if each.name in NEEDED and each.state in ("missing", "wrong"))


def unanswered(found: list[HealthCheck]) -> tuple[str, ...]:
    """Checks that could fail the domain but have no answer."""
    return tuple(each.name for each in found if each.name in NEEDED and each.state == "unknown")
