"""Domains of one's own: each record as it is wanted and as it was found, and how the world reaches us."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from starlette.responses import Response

from postroom.mail.proof.lookup import DnsTemporary
from postroom.net.dns import Resolver
from postroom.net.smtp_probe import ProbeResult, probe
from postroom.operations import domains
from postroom.web.api.accounts import domains as api
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display.rendering import HEADERS
from postroom.web.dashboard.display.values import plain
from postroom.web.dashboard.settings.paging import OffsetQuery
from postroom.web.dashboard.settings.pods import OutboundForm

PATH = "/app/settings/domains"
LOOK_SECONDS = 8.0
FOUND_SHOWN = 5
SMTP_PORT = 25
CHARACTERS = 255  # of a string in a zone file (RFC 1035 section 3.3)


class DomainForm(Struct, frozen=True):
    domain: str


@dataclass(frozen=True, slots=True)
class Reachability:
    """How other servers find this one by its name."""

    host: str
    addresses: tuple[str, ...]
    names: dict[str, tuple[str, ...]]  # what an address calls itself
    knocks: dict[str, ProbeResult]  # who answers at its port 25


async def show_domains(desk: Desk, query: OffsetQuery) -> Response:
    page = plain(await desk.run(domains.list_domains, query=query.to_page()))
    return await show(desk, page["data"], page["total"])


async def show(
    desk: Desk, found: list[dict[str, Any]], total: int, seen: dict[str, list[str]] | None = None
) -> Response:
    """`seen` has what DNS said for a name and type, where somebody looked."""
    return await desk.show(
        "domains.html",
        "settings",
        title="Domains",
        domains=found,
        seen=seen or {},
        total=total,
        reachability=await look_at_us(desk) if seen is not None else None,
        smtp=desk.call.resources.config.smtp,
        service=desk.call.resources.config.domain,
    )


async def add_domain(desk: Desk, body: DomainForm) -> Response:
    await desk.run(domains.create_domain, body=domains.NewDomain(body.domain))
    return go(PATH, f"{body.domain} is added. Set its records, then check them.")


async def set_outbound(desk: Desk, domain_id: str, body: OutboundForm) -> Response:
    change = domains.DomainChange(body.outbound.strip() or None)
    await desk.run(domains.change_domain, domain_id=domain_id, body=change)
    return go(PATH, "Mail of this domain leaves that way from now on.")


async def delete_domain(desk: Desk, domain_id: str) -> Response:
    await desk.run(domains.delete_domain, domain_id=domain_id)
    return go(PATH, "The domain is gone.")


async def check_domain(desk: Desk, domain_id: str) -> Response:
    checked = plain(await desk.perform(api.verify_domain, domain_id=domain_id))
    page = plain(await desk.run(domains.list_domains, query=OffsetQuery().to_page()))
    shown = [checked if each["id"] == domain_id else each for each in page["data"]]
    resolver = desk.call.resources.resolver
    asked = {(record["type"], record["name"]) for record in checked["records"]}
    answers = await asyncio.gather(*(look_up(resolver, *question) for question in sorted(asked)))
    seen = {f"{kind} {name}": found for (kind, name), found in zip(sorted(asked), answers, strict=True)}
    return await show(desk, shown, page["total"], seen)


async def look_up(resolver: Resolver, kind: str, name: str) -> list[str]:
    """As it stands in the zone, a few of it."""
    try:
        if kind == "MX":
            return [f"{preference} {host}" for preference, host in (await resolver.mx(name))[:FOUND_SHOWN]]
        return [text.decode("ascii", "replace") for text in (await resolver.txt(name))[:FOUND_SHOWN]]
    except DnsTemporary:
        return []


async def look_at_us(desk: Desk) -> Reachability:
    host, resolver = desk.call.resources.config.domain, desk.call.resources.resolver
    addresses: tuple[str, ...] = ()
    names: dict[str, tuple[str, ...]] = {}
    with contextlib.suppress(DnsTemporary, TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            addresses = (await resolver.addresses(host))[:FOUND_SHOWN]
            names = {address: await resolver.ptr(address) for address in addresses}
    knocks = await asyncio.gather(*(probe(address, SMTP_PORT, host) for address in addresses))
    return Reachability(host, addresses, names, dict(zip(addresses, knocks, strict=True)))


async def download_zone(desk: Desk, domain_id: str) -> Response:
    domain = plain(await desk.run(domains.get_domain, domain_id=domain_id))
    lines = [f"{each['name']}. 3600 IN {each['type']} {quoted(each)}" for each in domain["records"]]
    headers = {**HEADERS, "Content-Disposition": f"attachment; filename={domain['domain']}.zone"}
    return Response("\n".join([*lines, ""]), media_type="text/plain; charset=utf-8", headers=headers)


def quoted(record: dict[str, Any]) -> str:
    value: str = record["value"]
    if record["type"] != "TXT":
        return value
    pieces = (value[start : start + CHARACTERS] for start in range(0, len(value), CHARACTERS))
    return " ".join(f'"{piece}"' for piece in pieces)
