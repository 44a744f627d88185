"""TLSA records of the servers of a domain (RFC 7672 section 2.2), from a validating resolver."""

from msgspec import Struct

from postroom.net.dns import Resolver
from postroom_mail.authentication import dane
from postroom_mail.authentication.dane import TlsaRecord


class DaneNeed(Struct, frozen=True):
    """What a server must prove. Without usable records: only that it encrypts, with any certificate."""

    records: tuple[TlsaRecord, ...]
    usable: tuple[TlsaRecord, ...]
    names: tuple[str, ...]  # a certificate below an anchor must be for one of these (section 3.2.2)

    def is_met_by(self, chain: list[bytes]) -> bool:
        return dane.proves(chain, self.usable, self.names)


async def find_need(resolver: Resolver, domain: str, host: str, port: int) -> DaneNeed | None:
    """Return None if DNSSEC proves no TLSA records of the host. If DnsTemporary is raised, it must wait."""
    if not resolver.trusts_dnssec or not await resolver.proves(domain, "MX"):
        return None
    for base in await _bases(resolver, host):
        name = f"_{port}._tcp.{base}"
        records = await resolver.tlsa(name)
        if records and await resolver.proves(name, "TLSA"):
            names = tuple(dict.fromkeys((base, host, domain)))
            return DaneNeed(records, dane.usable(records), names)
    return None


async def _bases(resolver: Resolver, host: str) -> list[str]:
    """Names that may have TLSA records: the end of a validated alias, then the name in the MX record.

    If its addresses are not validated, no more is asked: many such servers cannot answer it.
    """
    if await _has_proved_address(resolver, host):
        return list(dict.fromkeys((await resolver.canonical(host), host)))
    is_alias = await resolver.canonical(host) != host
    return [host] if is_alias and await resolver.proves(host, "CNAME") else []


async def _has_proved_address(resolver: Resolver, host: str) -> bool:
    """Return whether both answers are validated; a signed zone also proves that there are no addresses."""
    return await resolver.proves(host, "A") and await resolver.proves(host, "AAAA")
