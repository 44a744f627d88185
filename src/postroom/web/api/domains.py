"""Make signing keys of domains and look up their records: what no transaction can do."""

import asyncio
from typing import Any

from postroom.accounts.domains import DnsRecord
from postroom.accounts.scope import Scope
from postroom.deliverability import check_domain
from postroom.deliverability.switch_keys import switch_keys
from postroom.deliverability.zone_checks import public_key
from postroom.events import notifications
from postroom.net.dns import Resolver
from postroom.operations import domains
from postroom.operations.domains import Domain, DomainHealth, NewDomain
from postroom.processes import pools
from postroom.resources import Resources
from postroom.web.call import Call
from postroom_mail.authentication import dkim
from postroom_mail.authentication.lookup import DnsTemporary


async def make_dkim_key(resources: Resources, body: NewDomain) -> dict[str, Any]:
    domains.read_name(body, resources.config)
    return {"private_key": await pools.KEYS.run(dkim.generate_key)}


async def verify_domain(call: Call, domain_id: str) -> Domain:
    """Look the records up in DNS; with MX and DKIM in place the domain is verified"""
    db, config = call.resources.db, call.resources.config
    domain, wanted = await db.read(domains.find_wanted, call.caller, domain_id, config, call.now())
    found = await asyncio.gather(*(is_set(call.resources.resolver, record) for record in wanted))
    is_proved = all(there for record, there in zip(wanted, found, strict=True) if record.is_required)
    if is_proved and domain.verified_at is None:
        domain = await db.write(domains.mark_verified, call.decider, domain, call.now())
    if not is_proved and domain.verified_at is not None and domain.pod_id is not None:
        page = f"{config.base_url}/app/settings/domains"
        await db.write(
            notifications.notify, call.account_id, notifications.DOMAIN_BROKEN, domain.name, page, call.now()
        )
    if domain.verified_at is not None:
        where = call.scope if domain.pod_id is None else Scope(domain.account_id, domain.pod_id)
        await switch_keys(call.resources, domain, call.caller.actor, where)
        _, wanted = await db.read(domains.find_wanted, call.caller, domain_id, config, call.now())
    keys, is_warming = await db.read(domains.keys_of, domain), await db.read(domains.is_warming_up, domain)
    return Domain.of(domain, wanted, keys, found, is_warming)


async def rotate_dkim(call: Call, domain_id: str) -> Domain:
    """Create new DKIM keys; they replace the old ones once their records are found"""
    db, config = call.resources.db, call.resources.config
    await db.read(domains.require_rotatable, call.decider, domain_id, config)
    private_key = await pools.KEYS.run(dkim.generate_key)
    return await db.write(domains.rotate_dkim, call.decider, domain_id, private_key, config, call.now())


async def get_domain_health(call: Call, domain_id: str) -> DomainHealth:
    """Check every record of a domain and whether others reach this server"""
    resources = call.resources
    wanted = await resources.db.read(domains.find_wanted_zone, call.caller, domain_id, resources.config)
    return DomainHealth(await check_domain.check(resources, wanted))


async def is_set(resolver: Resolver, record: DnsRecord) -> bool:
    try:
        if record.type == "MX":
            hosts = [host.rstrip(".").lower() for _, host in await resolver.mx(record.name)]
            return record.value.split()[-1].rstrip(".") in hosts
        texts = [text.decode("ascii", "replace") for text in await resolver.txt(record.name)]
    except DnsTemporary:
        return False
    return any(_means_the_same(record.value, text) for text in texts)


def _means_the_same(wanted: str, found: str) -> bool:
    """Return whether the record found is right. DKIM must have our key; any SPF or DMARC record counts."""
    if wanted.startswith("v=DKIM1"):
        return public_key(found) == public_key(wanted)
    return found.lower().startswith(wanted.split(" ")[0].rstrip(";").lower())
