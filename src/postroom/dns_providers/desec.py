"""deSEC's API: record sets with values as in zone files."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from postroom.dns_providers.asking import JsonProvider, segment
from postroom.dns_providers.zone import TTL_SECONDS, DnsProviderError, Zone, below, from_text, to_text
from postroom.external_mailboxes.fetching import Fetcher

BASE = "https://desec.io/api/v1"


class OwnedDomain(Struct, frozen=True):
    name: str


class SetRecords(Struct, frozen=True):
    records: tuple[str, ...]


class Desec:
    def __init__(self, fetcher: Fetcher, token: str, base: str = BASE) -> None:
        self._api = JsonProvider("deSEC", fetcher, base, f"Token {token}")

    async def find_zone(self, name: str) -> Zone | None:
        """Find the zone. The provider itself says which of the domains is responsible for a name."""
        asked = urlencode({"owns_qname": name})
        found = await self._api.ask("GET", f"/domains/?{asked}", list[OwnedDomain])
        names = [each.name.lower() for each in found or ()]
        return next((Zone(each, each) for each in names if name == each or name.endswith(f".{each}")), None)

    async def read(self, zone: Zone, name: str, kind: str) -> tuple[str, ...]:
        label = segment(below(zone, name) or "@")
        path = f"/domains/{segment(zone.id)}/rrsets/{label}/{kind}/"
        found = await self._api.ask("GET", path, SetRecords)
        return tuple(from_text(kind, each) for each in found.records) if found else ()

    async def write(self, zone: Zone, name: str, kind: str, values: Sequence[str]) -> None:
        """Write a list of record sets as a whole; one without records is removed."""
        wanted = {
            "subname": below(zone, name),
            "type": kind,
            "ttl": TTL_SECONDS,
            "records": [to_text(kind, value) for value in values],
        }
        path = f"/domains/{segment(zone.id)}/rrsets/"
        if await self._api.ask("PUT", path, list[Any], [wanted]) is None:
            raise DnsProviderError(f"deSEC does not know the domain {zone.name} any more.")
