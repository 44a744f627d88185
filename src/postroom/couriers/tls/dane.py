"""TLSA records of the servers of a domain (RFC 7672 section 2.2), asked of a resolver that validates."""

from msgspec import Struct

from postroom.mail.proof import dane
from postroom.mail.proof.dane import TlsaRecord
from postroom.net.dns import Resolver


class DaneNeed(Struct, frozen=True):
    """What a server must prove. Without usable records: that it encrypts, to whatever certificate."""

    records: tuple[TlsaRecord, ...]
    usable: tuple[TlsaRecord, ...]
    names: tuple[str, ...]  # one of which a certificate below an anchor is for (section 3.2.2)

    def is_met_by(self, chain: list[bytes]) -> bool:
        return dane.proves(chain, self.usable, self.names)


async def find_need(resolver: Resolver, domain: str, host: str, port: int) -> DaneNeed | None:
    """None where DNSSEC proves nothing of the way there. Raises DnsTemporary: then the host must wait."""
    if not resolver.trusts_proofs or not await resolver.proves(domain, "MX"):
        return None
    for base in await _bases(resolver, host):
        name = f"_{port}._tcp.{base}"
        records = await resolver.tlsa(name)
        if records and await resolver.proves(name, "TLSA"):
            names = tuple(dict.fromkeys((base, host, domain)))
            return DaneNeed(records, dane.usable(records), names)
    return None


async def _bases(resolver: Resolver, host: str) -> list[str]:
    """Where its TLSA records may stand: at the end of a proved alias, then at the name in the MX record.

    Where its addresses are not proved nobody is asked for more: many such servers cannot answer it.
    """
    if await _has_proved_address(resolver, host):
        return list(dict.fromkeys((await resolver.canonical(host), host)))
    is_alias = await resolver.canonical(host) != host
    return [host] if is_alias and await resolver.proves(host, "CNAME") else []


async def _has_proved_address(resolver: Resolver, host: str) -> bool:
    """Both answers: also that there are no addresses of a kind is proved in a signed zone."""
    return await resolver.proves(host, "A") and await resolver.proves(host, "AAAA")
