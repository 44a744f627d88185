"""Hetzner's Cloud API: zones and their record sets."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from postroom.dns_providers.asking import JsonProvider, segment
from postroom.dns_providers.zone import (
    TTL_SECONDS,
    DnsProviderError,
    Zone,
    ancestors,
    below,
    from_text,
    to_text,
)
from postroom.external_mailboxes.fetching import Fetcher

BASE = "https://api.hetzner.cloud/v1"


class HetznerZone(Struct, frozen=True):
    id: int
    name: str


class ZoneAnswer(Struct, frozen=True):
    zone: HetznerZone


class RecordValue(Struct, frozen=True):
    value: str


class KnownRecordSet(Struct, frozen=True):
    records: tuple[RecordValue, ...]


class RecordSetAnswer(Struct, frozen=True):
    rrset: KnownRecordSet


class Hetzner:
    def __init__(self, fetcher: Fetcher, token: str, base: str = BASE) -> None:
        self._api = JsonProvider("Hetzner", fetcher, base, f"Bearer {token}")

    async def find_zone(self, name: str) -> Zone | None:
        for each in ancestors(name):
            found = await self._api.ask("GET", f"/zones/{segment(each)}", ZoneAnswer)
            if found is not None and found.zone.name.lower() == each:
                return Zone(str(found.zone.id), each)
        return None

    async def read(self, zone: Zone, name: str, kind: str) -> tuple[str, ...]:
        found = await self._api.ask("GET", _path(zone, name, kind), RecordSetAnswer)
        return tuple(from_text(kind, each.value) for each in found.rrset.records) if found else ()

    async def write(self, zone: Zone, name: str, kind: str, values: Sequence[str]) -> None:
        path, records = _path(zone, name, kind), [{"value": to_text(kind, value)} for value in values]
        if not values:
            await self._api.ask("DELETE", path, dict[str, Any])
            return
        actions = f"{path}/actions/set_records"
        if await self._api.ask("POST", actions, dict[str, Any], {"records": records}) is not None:
            return
        wanted = {"name": below(zone, name) or "@", "type": kind, "ttl": TTL_SECONDS, "records": records}
        if await self._api.ask("POST", f"/zones/{segment(zone.id)}/rrsets", dict[str, Any], wanted) is None:
            raise DnsProviderError(f"Hetzner does not know the zone {zone.name} any more.")


def _path(zone: Zone, name: str, kind: str) -> str:
    return f"/zones/{segment(zone.id)}/rrsets/{segment(below(zone, name) or '@')}/{kind}"
