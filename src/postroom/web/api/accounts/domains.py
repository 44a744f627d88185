"""Custom domains over REST."""

import asyncio

from postroom.accounts import domains, pods
from postroom.accounts.domains import DkimKey, DnsRecord, Domain
from postroom.accounts.reach import Reach
from postroom.errors import InvalidDomain
from postroom.fields import PageQuery
from postroom.mail.proof import dkim
from postroom.mail.proof.lookup import DnsTemporary
from postroom.net.dns import Resolver
from postroom.processes import pools
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import DOMAIN_NAME, NewDomain
from postroom.web.interface.shapes import shapes


async def create_domain(call: Call, body: NewDomain) -> shapes.Domain:
    """Add a domain of your own; the answer lists the DNS records to set"""
    name = body.domain.lower()
    if not DOMAIN_NAME.fullmatch(name) or name == call.resources.config.domain:
        raise InvalidDomain("domain must be a name such as mail.example.com, and not this service's own.")
    private_key = await pools.KEYS.run(dkim.generate_key)

    def work(tx: Tx) -> Domain:
        pod_id = pods.choose(tx, call.reach, body.pod_id)
        domain = domains.add(tx, call.account_id, name, private_key, call.now(), pod_id)
        record(tx, call, "domain.added", domain)
        return domain

    domain = await call.resources.db.write(work)
    return shapes.Domain.of(domain, records_of(call, domain, DkimKey(domains.SELECTOR, private_key)))


def record(tx: Tx, call: Call, action: str, domain: Domain) -> None:
    where = Reach(domain.account_id, domain.pod_id)
    call.record(tx, action, domain.id, within=where, after={"domain": domain.name})


async def list_domains(call: Call, query: PageQuery) -> shapes.DomainPage:
    """List your domains, newest first"""

    def work(tx: Tx) -> tuple[list[shapes.Domain], int]:
        found, total = domains.list_within(tx, call.reach, query.limit, query.offset)
        return [show(tx, call, domain) for domain in found], total

    return shapes.DomainPage(*await call.read_page(query.offset, work))


async def get_domain(call: Call, domain_id: str) -> shapes.Domain:
    """Get a domain and its DNS records"""
    return await call.resources.db.read(lambda tx: show(tx, call, domains.get(tx, call.reach, domain_id)))


async def delete_domain(call: Call, domain_id: str) -> None:
    """Delete a domain that no inbox uses"""

    def work(tx: Tx) -> None:
        record(tx, call, "domain.removed", domains.remove(tx, call.reach, domain_id))

    await call.resources.db.write(work)


async def verify_domain(call: Call, domain_id: str) -> shapes.Domain:
    """Look the records up in DNS; with MX and DKIM in place the domain is verified"""
    domain = await call.resources.db.read(domains.get, call.reach, domain_id)
    key = await call.resources.db.read(domains.find_key, call.account_id, domain.name)
    assert key is not None
    wanted = records_of(call, domain, key)
    found = await asyncio.gather(*(is_set(call.resources.resolver, record) for record in wanted))
    is_proved = all(there for record, there in zip(wanted, found, strict=True) if record.is_required)
    if is_proved and domain.verified_at is None:
        domain = await call.resources.db.write(mark_verified, call, domain)
    return shapes.Domain.of(domain, wanted, found)


def mark_verified(tx: Tx, call: Call, domain: Domain) -> Domain:
    verified = domains.mark_verified(tx, domain, call.now())
    record(tx, call, "domain.verified", verified)
    return verified


def show(tx: Tx, call: Call, domain: Domain) -> shapes.Domain:
    key = domains.find_key(tx, call.account_id, domain.name)
    assert key is not None
    return shapes.Domain.of(domain, records_of(call, domain, key))


def records_of(call: Call, domain: Domain, key: DkimKey) -> list[DnsRecord]:
    return domains.records(domain.name, call.resources.config.domain, key)


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
    """DKIM must be our very key; of SPF and DMARC any record of the kind is the owner's choice."""
    if wanted.startswith("v=DKIM1"):
        return _public_key(found) == _public_key(wanted)
    return found.lower().startswith(wanted.split(" ")[0].rstrip(";").lower())


def _public_key(record: str) -> str:
    """The p= tag, without the white space that a zone may have inside it (RFC 6376 section 3.6.1)."""
    tags = (tag.partition("=") for tag in record.split(";"))
    return next(("".join(value.split()) for name, _, value in tags if name.strip() == "p"), "")
