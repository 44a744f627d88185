"""Seals a redirected email: the results seen here, for its receiver (RFC 8617)."""

from msgspec import Struct

from postroom_mail.authentication import dkim
from postroom_mail.authentication.arc import MAX_SETS, collect_sets, has_sets
from postroom_mail.authentication.canonical import SplitMail, relaxed_field, split_mail
from postroom_mail.authentication.dkim_verify import SignatureRefused
from postroom_mail.authentication.organization import ascii_domain


class SeenResults(Struct, frozen=True):
    """The results of RFC 8601 when the email came in, and the domain in From."""

    spf: str
    dkim: str
    dmarc: str
    arc: str
    domain: str


def seal(
    raw: bytes, seen: SeenResults, *, domain: str, selector: str, key: "dkim.PrivateKey", sealed_at: int
) -> bytes:
    """Return the three fields to put before `raw`; none if the chain or the header is broken."""
    mail = split_mail(raw)
    earlier = _earlier_fields(mail, seen) if mail.is_sound else None
    if earlier is None:
        return b""
    number = len(earlier) // 3 + 1
    results = _results(number, domain, seen)
    signatures = [
        (b"dkim-signature", field)
        for field in reversed(dkim.canonical_fields(mail).get(b"dkim-signature", []))
    ]
    message = dkim.write_signature(
        f"ARC-Message-Signature: i={number}",
        dkim.signed_fields(mail) + signatures,
        dkim.body_hash(mail.body),
        domain,
        selector,
        key,
        sealed_at,
    )
    chain = "pass" if earlier else "none"
    unsealed = (
        f"ARC-Seal: i={number}; a={dkim.algorithm_of(key)}-sha256; cv={chain};\r\n"
        f" d={domain};\r\n s={selector}; t={sealed_at // 1000};\r\n b="
    ).encode()
    own = [dkim.relaxed_field(field.removesuffix(b"\r\n")) for field in (results, message)]
    return (
        dkim.with_value(unsealed, b"".join(each + b"\r\n" for each in (*earlier, *own)), key)
        + message
        + results
    )


def _earlier_fields(mail: SplitMail, seen: SeenResults) -> list[bytes] | None:
    """Return the fields of the chain as a seal covers them; None if no link may be added (5.1)."""
    if not has_sets(mail):
        return []
    try:
        sets = collect_sets(mail)
    except SignatureRefused:
        return None
    if seen.arc != "pass" or len(sets) >= MAX_SETS:
        return None
    return [relaxed_field(field) for each in sets for field in each.fields]


def _results(number: int, domain: str, seen: SeenResults) -> bytes:
    author = ascii_domain(seen.domain)
    words = [f"{name}={getattr(seen, name)}" for name in ("arc", "spf", "dkim", "dmarc")]
    named = "; ".join(words) + (f" header.from={author}" if author else "")
    return f"ARC-Authentication-Results: i={number}; {domain};\r\n {named}\r\n".encode()
