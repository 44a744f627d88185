"""The DNS records of a domain, as wanted and as found."""

import time
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct

from postroom.deliverability.findings import HealthCheck, State, shown, texts, zone_line
from postroom.net.dns import Resolver
from postroom.processes import pools
from postroom_mail.authentication import mta_sts
from postroom_mail.authentication.lookup import DnsTemporary, Lookup, TimedLookup
from postroom_mail.authentication.organization import walk
from postroom_mail.authentication.tags import readable_tags

LOOK_SECONDS = 8.0
POLICIES = ("none", "quarantine", "reject")
NO_ANSWER = "The DNS gave no answer. Check again later."


class WantedRecords(Struct, frozen=True):
    """What the zone of a domain should hold. `dkim` has name and value of the record of each signing key;
    it is empty while the first is being made.
    """

    domain: str
    host: str  # of this server
    comes_by_mx: bool
    leaves_by_mx: bool
    dkim: tuple[tuple[str, str], ...]
    spf: str
    dmarc: str
    policy: str  # of MTA-STS, as this server gives it


class Questions(Struct, frozen=True):
    """DNS for async and for blocking code, and the addresses of this server."""

    resolver: Resolver
    lookup: Lookup
    addresses: tuple[str, ...]

    def timed(self) -> TimedLookup:
        return TimedLookup(self.lookup, time.monotonic() + LOOK_SECONDS, time.monotonic)


async def check_mx(wanted: WantedRecords, ask: Questions) -> HealthCheck:
    value = f"10 {wanted.host}."
    found = await ask.resolver.mx(wanted.domain)
    lines = shown([f"{preference} {host or '.'}" for preference, host in found])
    if not wanted.comes_by_mx:
        why = "A service posts this account's email here; the MX is that service's."
        return HealthCheck("MX", "ok" if found else "missing", "", lines, why)
    is_ours = wanted.host in [host.rstrip(".").lower() for _, host in found]
    state: State = "ok" if is_ours else ("wrong" if found else "missing")
    why = "The MX record says where email for the domain goes: without it no email comes here."
    return HealthCheck("MX", state, value, lines, why, zone_line(wanted.domain, "MX", value))


async def check_dkim(wanted: WantedRecords, ask: Questions) -> HealthCheck:
    why = "Receivers verify our signature with this key: without it email counts as unsigned."
    if not wanted.dkim:
        return HealthCheck("DKIM", "unknown", "", "", "The key is being created. Check again in a moment.")
    found = [texts(await ask.resolver.txt(name)) for name, _ in wanted.dkim]
    states = [_check_key(value, each) for (_, value), each in zip(wanted.dkim, found, strict=True)]
    state: State = next((each for each in states if each != "ok"), "ok")
    paste = "\n".join(zone_line(name, "TXT", value) for name, value in wanted.dkim)
    values = "\n".join(value for _, value in wanted.dkim)
    return HealthCheck("DKIM", state, values, shown([text for each in found for text in each]), why, paste)


def _check_key(wanted: str, found: list[str]) -> State:
    is_ours = any(public_key(text) == public_key(wanted) for text in found)
    return "ok" if is_ours else ("wrong" if found else "missing")


def public_key(record: str) -> str:
    tags = (tag.partition("=") for tag in record.split(";"))
    return next(("".join(value.split()) for name, _, value in tags if name.strip() == "p"), "")


async def check_spf(wanted: WantedRecords, ask: Questions) -> HealthCheck:
    found = [text for text in texts(await ask.resolver.txt(wanted.domain)) if is_spf(text)]
    state, why = await _check_spf(wanted, ask, found)
    paste = zone_line(wanted.domain, "TXT", wanted.spf)
    return HealthCheck("SPF", state, wanted.spf, shown(found), why, paste)


def is_spf(text: str) -> bool:
    return text.lower() == "v=spf1" or text.lower().startswith("v=spf1 ")


async def _check_spf(wanted: WantedRecords, ask: Questions, found: list[str]) -> tuple[State, str]:
    from postroom_mail.authentication import spf

    if not found:
        return "missing", "SPF says which servers may send for the domain. Without it many refuse the email."
    if len(found) > 1:
        return "wrong", "Two SPF records make both void (RFC 7208 section 4.5): merge them into one."
    if not wanted.leaves_by_mx:
        return "ok", "Email is sent through a relay: include what the relay tells you to."
    if not ask.addresses:
        return "unknown", f"{wanted.host} has no address yet, so SPF cannot be checked."
    sender = f"postmaster@{wanted.domain}"
    asked = [partial(spf.check_spf, each, wanted.host, sender, ask.timed()) for each in ask.addresses]
    verdicts = [await pools.DNS.run(question) for question in asked]
    results = ", ".join(f"{ip}: {said}" for ip, said in zip(ask.addresses, verdicts, strict=True))
    if "temperror" in verdicts:
        return "unknown", f"{NO_ANSWER} ({results})"
    state: State = "ok" if all(verdict == "pass" for verdict in verdicts) else "wrong"
    return state, f"SPF says which servers may send for the domain. Asked for this one, it says {results}."


async def check_dmarc(wanted: WantedRecords, ask: Questions) -> HealthCheck:
    name = f"_dmarc.{wanted.domain}"
    why = "DMARC says what to do with email that only claims to be yours; large receivers require it."
    own = [text for text in texts(await ask.resolver.txt(name)) if text.lower().startswith("v=dmarc1")]
    paste = zone_line(name, "TXT", wanted.dmarc)
    if len(own) > 1:
        why = "Several DMARC records count as none (RFC 9989 section 4.10): keep one."
        return HealthCheck("DMARC", "wrong", wanted.dmarc, shown(own), why, paste)
    records = await pools.DNS.run(walk, wanted.domain, ask.timed())
    if not records:
        return HealthCheck("DMARC", "missing", wanted.dmarc, shown(own), why, paste)
    policy = records[0].tags.get("p", "").lower()
    if policy not in POLICIES:
        why = "The policy p= must be none, quarantine or reject: this record has no effect."
        return HealthCheck("DMARC", "wrong", wanted.dmarc, shown(own), why, paste)
    found = shown(own) or f"p={policy}, by the record of {records[0].domain}"
    return HealthCheck("DMARC", "ok", wanted.dmarc, found, why, paste)


async def check_mta_sts(wanted: WantedRecords, ask: Questions) -> HealthCheck:
    name, value = f"_mta-sts.{wanted.domain}", mta_sts.write_record(wanted.policy)
    found = [text for text in texts(await ask.resolver.txt(name)) if text.startswith("v=STSv1")]
    state: State = "ok" if len(found) == 1 and is_sts(found[0]) else ("wrong" if found else "missing")
    why = (
        "MTA-STS keeps others from reading email on its way here. This server gives the policy at"
        f" https://mta-sts.{wanted.domain}/.well-known/mta-sts.txt; the certificate must have that name."
    )
    alias = zone_line(f"mta-sts.{wanted.domain}", "CNAME", f"{wanted.host}.")
    return HealthCheck(
        "MTA-STS", state, value, shown(found), why, f"{zone_line(name, 'TXT', value)}\n{alias}"
    )


def is_sts(text: str) -> bool:
    """Return whether a record is valid (RFC 8461, 3.1)."""
    tags = readable_tags(text.encode("ascii", "replace"))
    identity = tags.get("id", "")
    return tags.get("v") == "STSv1" and identity.isascii() and identity.isalnum() and len(identity) <= 32


async def check_tls_rpt(wanted: WantedRecords, ask: Questions) -> HealthCheck:
    name, value = f"_smtp._tls.{wanted.domain}", f"v=TLSRPTv1; rua=mailto:tls-rpt@{wanted.domain}"
    found = [text for text in texts(await ask.resolver.txt(name)) if text.startswith("v=TLSRPTv1")]
    tags = readable_tags(found[0].encode("ascii", "replace")) if len(found) == 1 else {}
    has_target = tags.get("rua", "").startswith(("mailto:", "https:"))
    state: State = "ok" if has_target else ("wrong" if found else "missing")
    why = "With TLS-RPT other servers report by email when encryption on the way here fails; it is read here."
    return HealthCheck("TLS-RPT", state, value, shown(found), why, zone_line(name, "TXT", value))


Check = Callable[[WantedRecords, Questions], Awaitable[HealthCheck]]
ZONE_CHECKS: tuple[tuple[str, Check], ...] = (
    ("MX", check_mx),
    ("SPF", check_spf),
    ("DKIM", check_dkim),
    ("DMARC", check_dmarc),
    ("MTA-STS", check_mta_sts),
    ("TLS-RPT", check_tls_rpt),
)


async def answered(name: str, check: Awaitable[HealthCheck]) -> HealthCheck:
    """Return the check, unknown rather than failed if DNS does not answer."""
    try:
        return await check
    except DnsTemporary:
        return HealthCheck(name, "unknown", "", "", NO_ANSWER)
