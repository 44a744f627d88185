"""Which provider receives an email: the organization of the domain's first MX, or of the relay."""

from postroom.config import CAPTURE
from postroom.external_mailboxes.connections import WayOut
from postroom.net.dns import DnsTemporary, Resolver
from postroom.net.relay import Relay, parse_ways
from postroom.outward.delivering.mail_job import Receiver
from postroom.queue.providers.names import provider_of


class Receivers:
    """Uses the resolver's cache of MX records: the courier asks for the same ones next."""

    def __init__(self, resolver: Resolver, outbound: str) -> None:
        self._resolver = resolver
        self._outbound = outbound

    async def find(self, domain: str, way: WayOut) -> Receiver:
        """Has no provider if mail is captured, or the relay is not known yet."""
        ways = way.outbound or self._outbound
        if way.needs_token or ways == CAPTURE:
            return Receiver()
        relay = _first_relay(ways)
        if relay is not None:
            return Receiver(provider_of(relay.host), is_relay=True)
        return Receiver(await self._by_mx(domain.lower()))

    async def _by_mx(self, domain: str) -> str:
        """Return the provider; the domain itself if it has no MX record, or DNS does not answer."""
        try:
            records = await self._resolver.mx(domain)
        except DnsTemporary:
            records = ()
        hosts = [host for _, host in sorted(records) if host]
        return provider_of(hosts[0] if hosts else domain)


def _first_relay(ways: str) -> Relay | None:
    try:
        return parse_ways(ways)[0]
    except ValueError:
        return None
