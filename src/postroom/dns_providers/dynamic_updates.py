"""Dynamic updates (RFC 2136), signed with a shared key (TSIG, RFC 8945): BIND, Knot, PowerDNS."""

import base64
import contextlib
from collections.abc import Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from postroom.dns_providers.zone import TTL_SECONDS, DnsProviderError, Zone, from_text, to_text
from postroom.net.dns import DnsTemporary, Resolver

if TYPE_CHECKING:
    import dns.message

QUERY_SECONDS = 10.0
DEFAULT_ALGORITHM = "hmac-sha256"
REFUSED_KEYS = {  # by what dnspython raises (RFC 8945 section 5.2)
    "PeerBadKey": "it knows none of this name",
    "PeerBadSignature": "its secret or algorithm is another one",
    "PeerBadTime": "its clock and that of this machine differ",
}


class DynamicUpdates:
    """`key` is `name:secret` or `algorithm:name:secret`, as `nsupdate -y` takes it; "" signs nothing."""

    def __init__(self, resolver: Resolver, server: str, port: int, key: str) -> None:
        self._resolver, self._server, self._port = resolver, server, port
        self._signing = _read_key(key) if key else {}

    async def find_zone(self, name: str) -> Zone | None:
        """Find the zone. The server names it in its answer: it is the owner of the SOA record."""
        import dns.flags
        import dns.rdatatype

        answer = await self._query(name, "SOA")
        if not answer.flags & dns.flags.AA:
            return None
        for found in (*answer.answer, *answer.authority):
            zone = found.name.to_text(omit_final_dot=True).lower()
            if found.rdtype == dns.rdatatype.SOA and (name == zone or name.endswith(f".{zone}")):
                return Zone(zone, zone)
        return None

    async def read(self, zone: Zone, name: str, kind: str) -> tuple[str, ...]:
        import dns.rdatatype

        answer = await self._query(name, kind)
        wanted = dns.rdatatype.from_text(kind)
        return tuple(
            from_text(kind, record.to_text())
            for found in answer.answer
            if found.rdtype == wanted and found.name.to_text(omit_final_dot=True).lower() == name
            for record in found
        )

    async def write(self, zone: Zone, name: str, kind: str, values: Sequence[str]) -> None:
        import dns.rcode
        import dns.update

        update = dns.update.UpdateMessage(f"{zone.name}.", **self._signing)
        update.delete(f"{name}.", kind)
        for value in values:
            update.add(f"{name}.", TTL_SECONDS, kind, to_text(kind, value))
        answer = await self._ask(update)
        if answer.rcode() != dns.rcode.NOERROR:
            code = dns.rcode.to_text(answer.rcode())
            raise DnsProviderError(
                f"{self._server} refuses the update of {zone.name}: {code}. Check the key."
            )

    async def _query(self, name: str, kind: str) -> "dns.message.Message":
        import dns.message

        return await self._ask(dns.message.make_query(f"{name}.", kind))

    async def _ask(self, message: "dns.message.Message") -> "dns.message.Message":
        import dns.asyncquery
        import dns.exception
        import dns.tsig

        try:
            address = await self._find_address()
            return await dns.asyncquery.tcp(message, address, QUERY_SECONDS, self._port)
        except DnsTemporary:
            reason = "its name has no address"
        except dns.tsig.PeerError as error:
            why = REFUSED_KEYS.get(type(error).__name__, "it gives no reason")
            raise DnsProviderError(f"{self._server} refuses the key: {why}.") from error
        except (dns.exception.DNSException, OSError, EOFError, ValueError) as error:
            reason = str(error) or type(error).__name__
        raise DnsProviderError(f"{self._server} cannot be asked: {reason}")

    async def _find_address(self) -> str:
        with contextlib.suppress(ValueError):
            return str(ip_address(self._server))
        found = await self._resolver.addresses(self._server)
        if not found:
            raise DnsTemporary(self._server)
        return found[0]


def _read_key(key: str) -> dict[str, Any]:
    """Return the arguments that sign an update."""
    import dns.name
    import dns.tsigkeyring

    algorithm, name, secret = f"{DEFAULT_ALGORITHM}:{key}".split(":")[-3:]
    try:
        base64.b64decode(secret, validate=True)
        ring = dns.tsigkeyring.from_text({name: secret})
    except ValueError as error:
        raise DnsProviderError("The key for updates must be name:secret, its secret in Base64.") from error
    return {"keyring": ring, "keyalgorithm": dns.name.from_text(algorithm)}
