"""Signing and verifying for callers of the library. What is verified asks the DNS by the `lookup` given."""

import time

from msgspec import Struct

from postroom_mail.authentication import arc, arc_seal, authenticity, dkim, spf
from postroom_mail.authentication.arc import ArcVerdict
from postroom_mail.authentication.authenticity import Judgement
from postroom_mail.authentication.canonical import split_mail
from postroom_mail.authentication.dkim_verify import DkimVerdict, check_dkim_signatures
from postroom_mail.authentication.lookup import Lookup, TimedLookup
from postroom_mail.mime.parse import parse_mail

DEADLINE_SECONDS = 8.0


class SigningKey(Struct, frozen=True):
    """A private key as PEM, and the TXT record to publish at `{selector}._domainkey.{domain}`."""

    private_key: bytes
    record: str


def authenticate(
    raw: bytes,
    lookup: Lookup,
    *,
    peer_ip: str = "",
    helo: str = "",
    mail_from: str = "",
    trusted_sealers: tuple[str, ...] = (),
    deadline_seconds: float = DEADLINE_SECONDS,
) -> Judgement:
    """Return what SPF, DKIM, DMARC and ARC say about an email, in the words of RFC 8601. Never raises.

    `peer_ip`, `helo` and `mail_from` are of the SMTP connection; without them SPF is `none`, and DMARC rests
    on DKIM. DMARC also passes if each forwarder is one of `trusted_sealers`, and the first saw it pass. What
    the deadline cuts off is `temperror`. It blocks while the DNS answers: run it in a thread.

    >>> authenticate(b"From: ann@example.com\\n\\nHello", lookup).dmarc
    'none'
    """
    return authenticity.check(
        raw,
        peer_ip=peer_ip,
        helo=helo if peer_ip else "",
        mail_from=mail_from if peer_ip else "",
        from_address=parse_mail(raw).from_address,
        lookup=lookup,
        trusted_sealers=trusted_sealers,
        deadline_seconds=deadline_seconds,
    )


def check_spf(
    lookup: Lookup,
    *,
    peer_ip: str,
    mail_from: str,
    helo: str = "",
    deadline_seconds: float = DEADLINE_SECONDS,
) -> str:
    """Return the SPF result: whether an IP address may send for the domain of MAIL FROM (RFC 7208).

    It is `pass`, `fail`, `softfail`, `neutral`, `none`, `temperror` or `permerror`. Never raises.

    >>> check_spf(lookup, peer_ip="192.0.2.10", mail_from="ann@example.com")
    'none'
    """
    return spf.check_spf(peer_ip, helo, mail_from, _timed(lookup, deadline_seconds))


def verify_dkim(
    raw: bytes, lookup: Lookup, *, deadline_seconds: float = DEADLINE_SECONDS
) -> tuple[DkimVerdict, ...]:
    """Return a verdict and the signing domain for each DKIM signature, up to five (RFC 6376). Never raises.

    An email with a line in its header that is no field gets one verdict, `permerror`, without a domain.

    >>> verify_dkim(b"From: ann@example.com\\n\\nHello", lookup)
    ()
    """
    return check_dkim_signatures(split_mail(raw), _timed(lookup, deadline_seconds), time.time())


def verify_arc(raw: bytes, lookup: Lookup, *, deadline_seconds: float = DEADLINE_SECONDS) -> ArcVerdict:
    """Return whether the chain of ARC seals is whole, and who sealed it, first one first (RFC 8617).

    The verdict is `none`, `pass`, `fail` or `temperror`. Never raises.

    >>> verify_arc(b"From: ann@example.com\\n\\nHello", lookup).verdict
    'none'
    """
    return arc.check_arc(split_mail(raw), _timed(lookup, deadline_seconds), time.time())


def new_dkim_key(algorithm: dkim.Algorithm = dkim.RSA) -> SigningKey:
    """Return a new private key for DKIM and ARC, and the DNS record of its public key.

    >>> new_dkim_key("ed25519").record[:18]
    'v=DKIM1; k=ed25519'
    """
    pem = dkim.generate_ed25519_key() if algorithm == dkim.ED25519 else dkim.generate_key()
    return SigningKey(pem, dkim.public_record(pem))


def sign_dkim(
    raw: bytes, *, domain: str, selector: str, private_key: bytes, signed_at: int | None = None
) -> bytes:
    """Return the DKIM-Signature field to put before `raw`, for a key as PEM (RFC 6376, RFC 8463).

    `signed_at` is in milliseconds UTC; now, if left out. Raises ValueError for an email without From or with
    line ends other than CRLF, and for a domain or selector that is no DNS name.

    >>> raw = b"From: ann@example.com\\r\\nSubject: Hi\\r\\n\\r\\nHello\\r\\n"
    >>> key = new_dkim_key("ed25519").private_key
    >>> sign_dkim(raw, domain="example.com", selector="s1", private_key=key)[:20]
    b'DKIM-Signature: v=1;'
    """
    keys = [(selector, dkim.load_key(private_key))]
    return dkim.sign(raw, domain=domain, keys=keys, signed_at=_moment(signed_at))


def seal_arc(
    raw: bytes,
    seen: Judgement,
    *,
    domain: str,
    selector: str,
    private_key: bytes,
    sealed_at: int | None = None,
) -> bytes:
    """Return the three ARC fields to put before an email that is forwarded, with what was seen of it here.

    `seen` is the answer of `authenticate` for the email as it came in. Returns b"" if its chain is broken or
    full: such an email gets no further seal. Raises ValueError as `sign_dkim` does.

    >>> raw = b"From: ann@example.com\\r\\nSubject: Hi\\r\\n\\r\\nHello\\r\\n"
    >>> key = new_dkim_key("ed25519").private_key
    >>> seen = authenticate(raw, lookup)
    >>> seal_arc(raw, seen, domain="lists.example", selector="s1", private_key=key)[:14]
    b'ARC-Seal: i=1;'
    """
    dkim.require_signable(raw, domain, [selector])
    results = arc_seal.SeenResults(seen.spf, seen.dkim, seen.dmarc, seen.arc, seen.domain)
    key = dkim.load_key(private_key)
    return arc_seal.seal(
        raw, results, domain=domain, selector=selector, key=key, sealed_at=_moment(sealed_at)
    )


def _timed(lookup: Lookup, seconds: float) -> TimedLookup:
    return TimedLookup(lookup, time.monotonic() + seconds, time.monotonic)


def _moment(given: int | None) -> int:
    return time.time_ns() // 1_000_000 if given is None else given
