"""How other servers see this one: its reverse name, port 25 in and out, and block lists."""

import asyncio
from ipaddress import ip_address

from postroom.deliverability.findings import HealthCheck, State, shown
from postroom.net.dns import Resolver
from postroom.net.smtp_probe import ProbeResult, probe
from postroom.queue.statistics import OutsideAnswers
from postroom_mail.authentication.lookup import DnsTemporary

SMTP_PORT = 25
ADDRESSES = 4
# By convention an answer of a list is in 127.0.0.0/8; these mean that it refuses this resolver.
REFUSALS = "127.255.255."


async def find_addresses(resolver: Resolver, host: str) -> tuple[str, ...]:
    try:
        return (await resolver.addresses(host))[:ADDRESSES]
    except DnsTemporary:
        return ()


async def check_reverse_names(resolver: Resolver, host: str, addresses: tuple[str, ...]) -> HealthCheck:
    why = "Large receivers refuse servers whose address has no name. The owner of the address sets it."
    wanted = shown([f"{address} {host}" for address in addresses])
    if not addresses:
        nowhere = f"Give {host} an A or AAAA record with the address of this server first."
        return HealthCheck("reverse name", "missing", host, "", nowhere)
    names = [await resolver.ptr(address) for address in addresses]
    found = [f"{address} {' '.join(said)}" for address, said in zip(addresses, names, strict=True) if said]
    confirmed = [
        await leads_back(resolver, address, said) for address, said in zip(addresses, names, strict=True)
    ]
    state: State = "ok" if all(confirmed) else ("wrong" if all(names) else "missing")
    return HealthCheck("reverse name", state, wanted, shown(found), why)


async def leads_back(resolver: Resolver, address: str, names: tuple[str, ...]) -> bool:
    """Return whether a name leads back to the address: anybody may claim a name (RFC 8601, 3)."""
    for name in names[:ADDRESSES]:
        if address in await resolver.addresses(name):
            return True
    return False


async def check_port_in(host: str, addresses: tuple[str, ...], port: int = SMTP_PORT) -> HealthCheck:
    why = "Other servers deliver at port 25. Checked from this machine: a firewall outside is not noticed."
    wanted = shown([f"{address} answers at port 25 with STARTTLS" for address in addresses])
    if not addresses:
        return HealthCheck("port 25 in", "unknown", "", "", f"{host} has no address yet.")
    answers = await asyncio.gather(*(probe(address, port, host) for address in addresses))
    found = shown([f"{address} {_describe(each)}" for address, each in zip(addresses, answers, strict=True)])
    state: State = "ok" if all(each.has_tls for each in answers) else "wrong"
    return HealthCheck("port 25 in", state, wanted, found, why)


def _describe(answer: ProbeResult) -> str:
    if answer.fault:
        return answer.fault
    if answer.has_tls:
        return "answers, with STARTTLS"
    return "offers STARTTLS, which fails" if answer.offers_tls else "answers without STARTTLS"


def check_port_out(leaves_by_mx: bool, answers: OutsideAnswers) -> HealthCheck:
    """Check by results of real mail: no other server is contacted just for this."""
    why = "Many networks block outgoing port 25; email then needs a relay (POSTROOM_OUTBOUND)."
    if not leaves_by_mx:
        return HealthCheck("port 25 out", "ok", "", "", "This server does not send email through port 25.")
    wanted = "Servers outside accept connections."
    found = f"{answers.taken} emails taken, {answers.unreached} without a connection, in the last 7 days"
    if not answers.taken and not answers.unreached:
        return HealthCheck("port 25 out", "unknown", wanted, "", "No email was sent outside yet.")
    return HealthCheck("port 25 out", "ok" if answers.taken else "wrong", wanted, found, why)


async def check_block_list(resolver: Resolver, zone: str, addresses: tuple[str, ...]) -> HealthCheck:
    name = f"block list {zone}"
    why = "Servers that use this list refuse those on it. The list's own page says how to get off."
    if not addresses:
        return HealthCheck(name, "unknown", "not listed", "", "This server's address is not known yet.")
    listed = {address: await resolver.ipv4(listed_name(address, zone)) for address in addresses}
    found = shown([f"{address} {' '.join(said)}" for address, said in listed.items() if said])
    answers = [answer for said in listed.values() for answer in said]
    if any(answer.startswith(REFUSALS) or not answer.startswith("127.") for answer in answers):
        refused = "The list does not answer this resolver. Use your own resolver, or remove the list."
        return HealthCheck(name, "unknown", "not listed", found, refused)
    return HealthCheck(name, "wrong" if answers else "ok", "not listed", found, why)


def listed_name(address: str, zone: str) -> str:
    """Return the address reversed, by bytes or by hexadecimal digits (RFC 5782, 2.1 and 2.4)."""
    ip = ip_address(address)
    parts = address.split(".") if ip.version == 4 else list(ip.exploded.replace(":", ""))
    return ".".join([*reversed(parts), zone])


NO_LISTS = HealthCheck(
    "block lists", "unknown", "", "", "No list is queried. Set POSTROOM_BLOCK_LISTS to those you may query."
)
