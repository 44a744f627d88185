"""Find out who sent an email: SPF, DKIM, DMARC and ARC in the terms of RFC 8601. Blocking: for threads."""

import contextlib
import time
from collections.abc import Callable
from email.utils import getaddresses

from msgspec import Struct

from postroom_mail.authentication.arc import check_arc
from postroom_mail.authentication.canonical import SplitMail, split_mail
from postroom_mail.authentication.dkim_verify import DkimVerdict, check_dkim_signatures, overall
from postroom_mail.authentication.dmarc import DmarcVerdict, Identifier, evaluate
from postroom_mail.authentication.lookup import DnsTemporary, Lookup, TimedLookup
from postroom_mail.authentication.organization import ascii_domain, domain_of, walk
from postroom_mail.authentication.spf import check_spf, identity

_MAX_FROM_BYTES = 4096
_MAX_AUTHORS = 5  # domains in From whose policies are asked for


class Judgement(Struct, frozen=True):
    """pass, fail, softfail, neutral, none, temperror or permerror for each method.

    `domain` is the domain in From ("" without one), `policy` what its DMARC record asks for (none,
    quarantine, reject), if found.
    """

    spf: str
    dkim: str
    dmarc: str
    domain: str
    policy: str | None = None
    arc: str = "none"


class Evaluation(Struct, frozen=True):
    """A judgement and what it was made of. `dmarc` is the verdict before ARC."""

    judgement: Judgement
    is_rescued: bool = False  # DMARC failed, but forwarders that are trusted saw it pass
    list_domain: str = ""  # of the mailing list that it came by, if SPF or DKIM vouches for that
    dmarc: DmarcVerdict = DmarcVerdict("none")
    spf_identity: Identifier | None = None
    signatures: tuple[DkimVerdict, ...] = ()


def check(
    raw: bytes,
    *,
    peer_ip: str | None,
    helo: str,
    mail_from: str,
    from_address: str,
    lookup: Lookup,
    covered: tuple[str, ...] = (),
    trusted_sealers: tuple[str, ...] = (),
    deadline_seconds: float = 8.0,
    monotonic: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> Judgement:
    """Return the verdicts on one email. Checks that the deadline cuts off are temperror; nothing is raised.

    `peer_ip` is None for an email that never crossed the network: then there is nothing to check.
    `from_address` is the author as shown to the reader, so that exactly that one is judged. `covered` are
    fields that a signature must cover besides From to count. What forwarders among `trusted_sealers` saw pass
    counts as passed.
    """
    return evaluate_sender(
        raw,
        peer_ip=peer_ip,
        helo=helo,
        mail_from=mail_from,
        from_address=from_address,
        lookup=lookup,
        covered=covered,
        trusted_sealers=trusted_sealers,
        deadline_seconds=deadline_seconds,
        monotonic=monotonic,
        wall=wall,
    ).judgement


def evaluate_sender(
    raw: bytes,
    *,
    peer_ip: str | None,
    helo: str,
    mail_from: str,
    from_address: str,
    lookup: Lookup,
    covered: tuple[str, ...] = (),
    trusted_sealers: tuple[str, ...] = (),
    deadline_seconds: float = 8.0,
    monotonic: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> Evaluation:
    """Return the same as `check`, with the facts behind the verdicts."""
    domain = domain_of(from_address)
    if peer_ip is None:
        return Evaluation(Judgement("none", "none", "none", domain or ""))
    timed = TimedLookup(lookup, monotonic() + deadline_seconds, monotonic)
    mail = split_mail(raw)
    # Asked for first, and remembered: name servers of the sender's choice must not use up its time.
    with contextlib.suppress(DnsTemporary):
        walk(domain, timed) if domain else ()
    spf = check_spf(peer_ip, helo, mail_from, timed)
    signatures = check_dkim_signatures(mail, timed, wall(), covered)
    identifiers = _identifiers(spf, helo, mail_from, signatures)
    dmarc = _check_dmarc(mail, from_address, identifiers, timed)
    arc = check_arc(mail, timed, wall())
    is_rescued = dmarc.verdict == "fail" and arc.vouches_for(dmarc.author, trusted_sealers)
    verdict = "pass" if is_rescued else dmarc.verdict
    return Evaluation(
        Judgement(spf, overall(signatures), verdict, domain or "", dmarc.policy, arc.verdict),
        is_rescued,
        find_list(mail, identifiers),
        dmarc,
        next((each for each in identifiers if each.mode_tag == "aspf"), None),
        signatures,
    )


def find_list(mail: SplitMail, identifiers: list[Identifier]) -> str:
    """Return the domain of the mailing list (RFC 2919) if SPF or DKIM passes for it or a name above it."""
    fields = mail.named("list-id")
    if len(fields) != 1:
        return ""
    named = fields[0].value[:_MAX_FROM_BYTES].decode("latin-1").rpartition("<")[2].partition(">")[0].strip()
    name = ascii_domain(named)
    if name is None:
        return ""
    passed = [each.domain for each in identifiers if each.verdict == "pass"]
    return next((each for each in passed if name == each or name.endswith(f".{each}")), "")


def _identifiers(
    spf: str, helo: str, mail_from: str, signatures: tuple[DkimVerdict, ...]
) -> list[Identifier]:
    sender = identity(helo, mail_from)
    by_spf = [] if sender is None else [Identifier("aspf", sender[1], spf)]
    return by_spf + [Identifier("adkim", signature.domain, signature.verdict) for signature in signatures]


def _check_dmarc(
    mail: SplitMail, from_address: str, identifiers: list[Identifier], lookup: TimedLookup
) -> DmarcVerdict:
    if not mail.is_whole:
        return DmarcVerdict("permerror")
    fields = mail.named("from")
    if not fields or not from_address:
        return DmarcVerdict("none")
    domain = domain_of(from_address)
    # Our own reading must agree with the shown address: a From that reads two ways is an attack.
    if domain is not None and len(fields) == 1 and set(_domains_in(fields[0].value)) == {domain}:
        return evaluate(domain, identifiers, lookup)
    named = (domain, *(each for field in fields[:_MAX_AUTHORS] for each in _domains_in(field.value)))
    return _check_each(tuple(dict.fromkeys(each for each in named if each)), identifiers, lookup)


def _check_each(domains: tuple[str, ...], identifiers: list[Identifier], lookup: TimedLookup) -> DmarcVerdict:
    """Return fail with the strictest policy of the authors that fail (RFC 7489, 6.6.1), else permerror."""
    found = [evaluate(domain, identifiers, lookup) for domain in domains[:_MAX_AUTHORS]]
    for policy in ("reject", "quarantine"):
        for each in found:
            if each.verdict == "fail" and each.policy == policy:
                return each
    return DmarcVerdict("permerror")


def _domains_in(value: bytes) -> list[str | None]:
    if len(value) > _MAX_FROM_BYTES:
        return []
    try:
        addresses = getaddresses([value.replace(b"\r\n", b"").decode("utf-8")])
    except (ValueError, IndexError, RecursionError):
        return []
    return [domain_of(address) for _, address in addresses]
