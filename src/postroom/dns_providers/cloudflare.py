"""Cloudflare's API, version 4: one object a record."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from postroom.dns_providers.asking import JsonProvider, segment
from postroom.dns_providers.zone import TTL_SECONDS, DnsProviderError, Zone, ancestors, from_text, to_text
from postroom.external_mailboxes.fetching import Fetcher

BASE = "https://api.cloudflare.com/client/v4"
NAMES = ("CNAME", "MX", "NS")  # whose values are names, here without the last dot


class CloudflareZone(Struct, frozen=True):
    id: str
    name: str


class ZoneList(Struct, frozen=True):
    result: tuple[CloudflareZone, ...]


class SetRecord(Struct, frozen=True):
    id: str
    type: str
    name: str
    content: str
    priority: int | None = None


class RecordList(Struct, frozen=True):
    result: tuple[SetRecord, ...]


class Cloudflare:
    def __init__(self, fetcher: Fetcher, token: str, base: str = BASE) -> None:
        self._api = JsonProvider("Cloudflare", fetcher, base, f"Bearer {token}")

    async def find_zone(self, name: str) -> Zone | None:
        for each in ancestors(name):
            found = await self._api.ask("GET", f"/zones?{urlencode({'name': each})}", ZoneList)
            for zone in found.result if found else ():
                if zone.name.lower() == each:
                    return Zone(zone.id, each)
        return None

    async def read(self, zone: Zone, name: str, kind: str) -> tuple[str, ...]:
        return tuple(_to_value(each) for each in await self._list(zone, name, kind))

    async def write(self, zone: Zone, name: str, kind: str, values: Sequence[str]) -> None:
        """Add records, then remove others: the name is never without a record."""
        there = {_to_value(each): each.id for each in await self._list(zone, name, kind)}
        path = f"/zones/{segment(zone.id)}/dns_records"
        for value in values:
            if value not in there:
                await self._require("POST", path, _to_body(name, kind, value))
        for value, record_id in there.items():
            if value not in values:
                await self._require("DELETE", f"{path}/{segment(record_id)}")

    async def _list(self, zone: Zone, name: str, kind: str) -> list[SetRecord]:
        asked = urlencode({"type": kind, "name": name, "per_page": 100})
        found = await self._api.ask("GET", f"/zones/{segment(zone.id)}/dns_records?{asked}", RecordList)
        records = found.result if found else ()
        return [each for each in records if each.type == kind and each.name.lower() == name]

    async def _require(self, method: str, path: str, body: object = None) -> None:
        if await self._api.ask(method, path, dict[str, Any], body) is None:
            raise DnsProviderError("Cloudflare does not know this record any more. Try again.")


def _to_value(record: SetRecord) -> str:
    if record.type == "TXT" and not record.content.startswith('"'):
        return record.content
    host = f"{record.content.rstrip('.')}." if record.type in NAMES else record.content
    return from_text(record.type, f"{record.priority or 0} {host}" if record.type == "MX" else host)


def _to_body(name: str, kind: str, value: str) -> dict[str, Any]:
    body: dict[str, Any] = {"type": kind, "name": name, "ttl": TTL_SECONDS}
    if kind == "MX":
        priority, _, host = value.partition(" ")
        return {**body, "priority": int(priority), "content": host.rstrip(".")}
    return {**body, "content": to_text(kind, value).rstrip(".") if kind in NAMES else to_text(kind, value)}
