"""SPF: may this address send for the domain of MAIL FROM (RFC 7208)? pyspf decides, our resolver answers."""

import warnings
from functools import partial
from typing import Any

from postroom_mail.authentication.lookup import DnsTemporary, TimedLookup
from postroom_mail.authentication.organization import ascii_domain

with warnings.catch_warnings():
    # Its documentation strings hold escapes that Python warns of when it first compiles them.
    warnings.simplefilter("ignore")
    import spf

# RFC 7208 section 3.4 asks for 450 octets in all; pyspf takes quadratic time on each single term.
_MAX_RECORD_BYTES = 4096
_MAX_TERM_BYTES = 512
_MAX_SENDER_CHARACTERS = 320
_VERDICTS = {"pass", "fail", "softfail", "neutral", "none", "temperror", "permerror"}


def identity(helo: str, mail_from: str) -> tuple[str, str] | None:
    """Return local part and domain that SPF checks: MAIL FROM, or HELO for the null sender (section 2.4)."""
    if len(mail_from) > _MAX_SENDER_CHARACTERS:
        return None
    local, _, host = mail_from.rpartition("@") if mail_from else ("", "", helo)
    domain = ascii_domain(host)
    return None if domain is None else (local or "postmaster", domain)


def check_spf(peer_ip: str, helo: str, mail_from: str, lookup: TimedLookup) -> str:
    """Return the SPF verdict, a term of RFC 8601, 2.7.2."""
    sender = identity(helo, mail_from)
    if sender is None:
        return "none"
    try:
        query = spf.query(i=peer_ip, s="@".join(sender), h=ascii_domain(helo) or "unknown")
        # pyspf finds its resolver in a module global. Every lookup goes through the method `dns`, so
        # replacing it on this one object leaves other queries and other resolvers alone.
        query.dns = partial(_answer, query, lookup)
        verdict = str(query.check()[0])
    except DnsTemporary:
        return "temperror"
    except Exception:
        # pyspf answers hostile records with ValueError, AssertionError, RecursionError and others.
        return "permerror"
    return verdict if verdict in _VERDICTS else "permerror"


def _answer(
    query: Any, lookup: TimedLookup, name: str, qtype: str, cnames: object = None, ignore_void: bool = False
) -> list[Any]:
    """Return what spf.query.dns returns: records in pyspf's shapes, counting void lookups (section 4.6.4)."""
    try:
        records = _records(query, lookup, name.removesuffix("."), qtype)
    except DnsTemporary as error:
        raise spf.TempError(str(error)) from error
    if not records and not ignore_void:
        query.void_lookups += 1
        if query.void_lookups > spf.MAX_VOID_LOOKUPS:
            raise spf.PermError("too many lookups without an answer")
    return records


def _records(query: Any, lookup: TimedLookup, name: str, qtype: str) -> list[Any]:
    match qtype:
        case "A":
            return list(lookup.ipv4(name))
        case "AAAA":
            return list(lookup.ipv6(name))
        case "MX":
            return list(lookup.mx(name))
        case "PTR":
            return list(lookup.ptr(str(query.ipaddr)))
        case _:
            return [[_require_short(text)] for text in lookup.txt(name)]


def _require_short(text: bytes) -> bytes:
    if text[:6].lower() != b"v=spf1":
        return text
    if len(text) > _MAX_RECORD_BYTES or max(map(len, text.split(b" "))) > _MAX_TERM_BYTES:
        raise spf.PermError("SPF record too long")
    return text
