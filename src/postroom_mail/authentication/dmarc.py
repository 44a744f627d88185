"""DMARC: whether a pass of SPF or DKIM belongs to the domain in From (RFC 9989)."""

from collections.abc import Iterable

from msgspec import Struct

from postroom_mail.authentication.lookup import DnsTemporary, TimedLookup
from postroom_mail.authentication.organization import DmarcRecord, organization, walk

_POLICIES = {"none", "quarantine", "reject"}


class Identifier(Struct, frozen=True):
    """A domain checked by SPF (mode tag aspf) or DKIM (mode tag adkim), and the verdict."""

    mode_tag: str
    domain: str
    verdict: str


class DmarcVerdict(Struct, frozen=True):
    """`record` is the one that applies, `aligned` the modes (aspf, adkim) that passed for `author`."""

    verdict: str
    policy: str | None = None
    record: DmarcRecord | None = None
    aligned: frozenset[str] = frozenset()
    author: str = ""


def evaluate(author_domain: str, identifiers: Iterable[Identifier], lookup: TimedLookup) -> DmarcVerdict:
    """Return pass, fail, none or temperror, with the policy of the domain's owner."""
    try:
        records = walk(author_domain, lookup)
        record = _record_that_applies(author_domain, records)
        if record is None:
            return DmarcVerdict("none")
    except DnsTemporary:
        return DmarcVerdict("temperror")
    author_organization = organization(author_domain, records)
    verdicts = [
        (_aligned_verdict(identifier, author_domain, author_organization, record, lookup), identifier)
        for identifier in identifiers
        if identifier.verdict in ("pass", "temperror")
    ]
    aligned = frozenset(identifier.mode_tag for verdict, identifier in verdicts if verdict == "pass")
    is_unsure = any(verdict == "temperror" for verdict, _ in verdicts)
    word = "pass" if aligned else "temperror" if is_unsure else "fail"
    try:
        policy = _policy(author_domain, record, lookup)
    except DnsTemporary:  # which policy it is matters only to what does not pass
        return (
            DmarcVerdict("pass", None, record, aligned, author_domain)
            if aligned
            else DmarcVerdict("temperror")
        )
    return DmarcVerdict(word, policy, record, aligned, author_domain)


def _record_that_applies(domain: str, records: tuple[DmarcRecord, ...]) -> DmarcRecord | None:
    """Return the record of the domain itself, else of its organization, else of the public suffix above."""
    by_domain = {record.domain: record for record in records}
    suffixes = [record for record in records if record.is_public_suffix]
    return (
        by_domain.get(domain)
        or by_domain.get(organization(domain, records))
        or (suffixes[0] if suffixes else None)
    )


def _policy(domain: str, record: DmarcRecord, lookup: TimedLookup) -> str:
    """Return p for the domain itself, sp below it, np for a name that does not exist (section 4.7)."""
    tags = ["p"]
    if record.domain != domain:
        tags = ["sp", "p"]
        if "np" in record.tags and not _exists(domain, lookup):
            tags = ["np", "sp", "p"]
    for tag in tags:
        value = record.tags.get(tag, "").lower()
        if value in _POLICIES:
            return value
    return "none"


def _exists(domain: str, lookup: TimedLookup) -> bool:
    return bool(lookup.ipv4(domain) or lookup.mx(domain) or lookup.ipv6(domain))


def _aligned_verdict(
    identifier: Identifier,
    author_domain: str,
    author_organization: str,
    record: DmarcRecord,
    lookup: TimedLookup,
) -> str:
    """Return the identifier's verdict if it is aligned with the author, `none` if not (section 4.4)."""
    if identifier.domain == author_domain:
        return identifier.verdict
    is_strict = record.tags.get(identifier.mode_tag, "r").lower() == "s"
    if is_strict or not _is_within(identifier.domain, author_organization):
        return "none"
    try:
        records = walk(identifier.domain, lookup)
    except DnsTemporary:
        return "temperror"
    is_aligned = organization(identifier.domain, records) == author_organization
    return identifier.verdict if is_aligned else "none"


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith("." + parent)
