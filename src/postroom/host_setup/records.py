"""The DNS records of a mail host: which are wanted, and setting those that are missing."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from postroom.config import Config
from postroom.deliverability.check_domain import own_policy
from postroom.deliverability.findings import zone_line
from postroom.dns_providers.zone import DnsProvider, DnsProviderError, from_text
from postroom.host_setup.reachability import HostAddresses
from postroom.net.dns import DnsTemporary, Resolver
from postroom_mail.authentication import mta_sts

VISIBLE_SECONDS, PAUSE_SECONDS = 90.0, 1.0
TRIES = 2  # of a provider that fails
State = Literal["there", "set", "kept", "failed"]


class WantedRecord(Struct, frozen=True):
    name: str
    type: str
    value: str

    def line(self) -> str:
        return zone_line(self.name, self.type, self.value)


class SetRecordOutcome(Struct, frozen=True):
    """`kept`: another value is there and stays. `detail` is that value, or the failure."""

    record: WantedRecord
    state: State
    detail: str = ""


def wanted_records(
    config: Config, addresses: HostAddresses, of_domain: Sequence[Mapping[str, Any]]
) -> list[WantedRecord]:
    """Return the wanted records. `of_domain` are those of `postroom domains get`.

    A relay has its own SPF record.
    """
    host = config.domain
    policy = mta_sts.write_record(own_policy(config))
    records = [WantedRecord(host, "A", addresses.ipv4)] if addresses.ipv4 else []
    if addresses.ipv6:
        records.append(WantedRecord(host, "AAAA", addresses.ipv6))
    records += [
        WantedRecord(each["name"], each["type"], each["value"])
        for each in of_domain
        if config.outbound == "mx" or not each["value"].startswith("v=spf1")
    ]
    records.append(
        WantedRecord(f"_smtp._tls.{host}", "TXT", f"v=TLSRPTv1; rua=mailto:tls-rpt@{host}"),
    )
    if config.mta_sts != "none" and config.acme:
        records.append(WantedRecord(f"_mta-sts.{host}", "TXT", policy))
        records.append(WantedRecord(f"mta-sts.{host}", "CNAME", f"{host}."))
    return records


async def set_records(
    provider: DnsProvider, wanted: Sequence[WantedRecord], replaces: bool
) -> list[SetRecordOutcome]:
    """Set each record. After two equal failures at the start no more is tried: each try may take long."""
    found: list[SetRecordOutcome] = []
    for record in wanted:
        if len(found) >= TRIES and all(each.state == "failed" for each in found):
            found.append(replace(found[0], record=record))
        else:
            found.append(await _set(provider, record, replaces))
    return found


async def _set(provider: DnsProvider, record: WantedRecord, replaces: bool) -> SetRecordOutcome:
    try:
        zone = await provider.find_zone(record.name)
        if zone is None:
            return SetRecordOutcome(record, "failed", "The token reaches no zone with this name.")
        there = await provider.read(zone, record.name, record.type)
        if is_among(record, there):
            return SetRecordOutcome(record, "there")
        others = [each for each in there if is_beside(record, each)]
        in_its_place = [each for each in there if not is_beside(record, each)]
        if in_its_place and not replaces:
            return SetRecordOutcome(record, "kept", in_its_place[0])
        await provider.write(zone, record.name, record.type, [*others, record.value])
    except DnsProviderError as error:
        return SetRecordOutcome(record, "failed", error.reason)
    return SetRecordOutcome(record, "set")


def is_among(record: WantedRecord, values: Sequence[str]) -> bool:
    if record.type == "TXT":
        return "".join(record.value.split()) in {"".join(each.split()) for each in values}
    return from_text(record.type, record.value) in values


def is_beside(record: WantedRecord, other: str) -> bool:
    """Return True for a TXT record of another kind: SPF and a proof of ownership share a name."""
    return record.type == "TXT" and _kind(other) != _kind(record.value)


def _kind(text: str) -> str:
    """Return the version that SPF, DKIM, DMARC and the others begin with."""
    first = text.replace(";", " ").split()[:1]
    return first[0].lower() if first else ""


async def find_missing(wanted: Sequence[WantedRecord], resolver: Resolver) -> list[WantedRecord]:
    """Return those that the DNS does not show. Without an answer they count as missing."""
    states = await asyncio.gather(*(_is_visible(record, resolver) for record in wanted))
    return [record for record, is_there in zip(wanted, states, strict=True) if not is_there]


async def wait_until_visible(wanted: Sequence[WantedRecord]) -> list[WantedRecord]:
    """Return those that are still missing at the end; nothing is taken from a cache of ours."""
    ends_at = asyncio.get_running_loop().time() + VISIBLE_SECONDS
    missing = list(wanted)
    while missing:
        resolver = Resolver()
        missing = await find_missing(missing, resolver)
        await resolver.close()
        if not missing or asyncio.get_running_loop().time() > ends_at:
            break
        await asyncio.sleep(PAUSE_SECONDS)
    return missing


async def _is_visible(record: WantedRecord, resolver: Resolver) -> bool:
    try:
        return is_among(record, await _read(record, resolver))
    except DnsTemporary:
        return False


async def _read(record: WantedRecord, resolver: Resolver) -> Sequence[str]:
    if record.type == "TXT":
        return [each.decode("utf-8", "replace") for each in await resolver.txt(record.name)]
    if record.type == "MX":
        return [f"{preference} {host}." for preference, host in await resolver.mx(record.name)]
    if record.type == "CNAME":
        return [f"{await resolver.canonical(record.name)}."]
    if record.type == "AAAA":
        return await resolver.ipv6(record.name)
    return await resolver.ipv4(record.name)
