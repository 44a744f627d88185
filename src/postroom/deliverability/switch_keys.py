"""New DKIM keys of a domain sign as soon as their records are found; the old ones then stop."""

from postroom.accounts import audit, dkim_keys
from postroom.accounts.actors import Actor
from postroom.accounts.dkim_keys import DkimKey
from postroom.accounts.domains import Domain
from postroom.accounts.scope import Scope
from postroom.deliverability.findings import texts
from postroom.deliverability.zone_checks import public_key
from postroom.net.dns import DnsTemporary, Resolver
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.authentication import dkim

SWITCHED = "domain.dkim_switched"


async def switch_keys(resources: Resources, domain: Domain, actor: Actor, where: Scope) -> None:
    """Switch the keys. `domain` belongs to their owner; `where` is the account that is notified."""
    waiting = await resources.db.read(dkim_keys.list_waiting, domain.account_id, domain.name)
    found = [key.selector for key in waiting if await is_published(resources.resolver, domain.name, key)]
    if found:
        await resources.db.write(record_switch, domain, found, actor, where, resources.now())


def record_switch(tx: Tx, domain: Domain, selectors: list[str], actor: Actor, where: Scope, now: int) -> None:
    switched = dkim_keys.activate(tx, domain.account_id, domain.name, selectors, now)
    if switched:
        details = {"domain": domain.name, "selectors": switched}
        audit.record(tx, actor, SWITCHED, domain.id, where, now, after=details)


async def is_published(resolver: Resolver, domain: str, key: DkimKey) -> bool:
    try:
        found = texts(await resolver.txt(key.name_below(domain)))
    except DnsTemporary:
        return False
    wanted = public_key(dkim.public_record(key.private_key))
    return any(public_key(text) == wanted for text in found)
