"""Verifies DKIM: which domains vouch for an email with a valid signature (RFC 6376, 8301, 8463)."""

import binascii
import hashlib
from base64 import b64decode
from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from postroom_mail.authentication.canonical import (
    Field,
    SplitMail,
    relaxed_body,
    relaxed_field,
    simple_body,
    simple_field,
)
from postroom_mail.authentication.lookup import DnsTemporary, TimedLookup
from postroom_mail.authentication.organization import ascii_domain
from postroom_mail.authentication.tags import BadTags, parse_tags, without_space

if TYPE_CHECKING:  # it takes 7 MB, so it is imported only when verifying: a worker never does
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    PublicKey = RSAPublicKey | Ed25519PublicKey

MAX_SIGNATURES = 5  # RFC 6376 section 6.1 allows a limit
MAX_SIGNATURE_BYTES = 16_384
_REQUIRED_TAGS = ("v", "a", "b", "bh", "d", "h", "s")  # RFC 6376 section 3.5
KEY_KINDS = {"rsa-sha256": "rsa", "ed25519-sha256": "ed25519"}  # RFC 8301 section 3.1, RFC 8463 section 3
# RFC 5322 section 3.6 and RFC 2045 section 3
SINGLE_FIELDS = (
    "sender",
    "reply-to",
    "to",
    "cc",
    "message-id",
    "in-reply-to",
    "references",
    "subject",
    "date",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
    "content-disposition",
)
_RSA_BITS = range(1024, 4097)  # RFC 8301 section 3.2
FIELD_FORMS = {"simple": simple_field, "relaxed": relaxed_field}
BODY_FORMS = {"simple": simple_body, "relaxed": relaxed_body}


class DkimVerdict(Struct, frozen=True):
    """What one DKIM-Signature field is worth, and the domain that signed."""

    verdict: str
    domain: str
    selector: str = ""


class SignatureRefused(Exception):
    """The signature does not count; the argument is the verdict, fail or permerror."""


class DkimSignature(Struct, frozen=True):
    field: Field
    tags: dict[str, str]
    domain: str
    field_form: str
    body_form: str


def check_dkim_signatures(
    mail: SplitMail, lookup: TimedLookup, now: float, covered: tuple[str, ...] = ()
) -> tuple[DkimVerdict, ...]:
    """Return a verdict for each of the topmost signatures; one that leaves out a `covered` field is void."""
    if not mail.is_sound:
        return (DkimVerdict("permerror", ""),)
    digests: dict[str, tuple[bytes, int]] = {}
    fields = mail.named("dkim-signature")[:MAX_SIGNATURES]
    return tuple(_check(field, mail, covered, digests, lookup, now) for field in fields)


def overall(verdicts: tuple[DkimVerdict, ...]) -> str:
    """Return one word for all signatures: one good one is enough (RFC 6376, 4.2)."""
    words = {verdict.verdict for verdict in verdicts}
    return next((word for word in ("pass", "temperror", "fail", "permerror") if word in words), "none")


def claimed_domains(mail: SplitMail) -> list[str]:
    """Return the domains that the topmost signatures name, whether or not they are valid."""
    named = [_claimed_domain(field) for field in mail.named("dkim-signature")[:MAX_SIGNATURES]]
    return [domain for domain in dict.fromkeys(named) if domain is not None]


def _claimed_domain(field: Field) -> str | None:
    try:
        return ascii_domain(_tags(field)["d"])
    except SignatureRefused:
        return None


def _check(
    field: Field,
    mail: SplitMail,
    covered: tuple[str, ...],
    digests: dict[str, tuple[bytes, int]],
    lookup: TimedLookup,
    now: float,
) -> DkimVerdict:
    domain = selector = ""
    try:
        signature = _read(field, now)
        domain, selector = signature.domain, signature.tags["s"]
        key_kind = KEY_KINDS[signature.tags["a"]]
        key = find_key(signature, key_kind, lookup)
        require_body_hash(signature, mail.body, digests)
        require_covered(signature, mail, covered)
        require_valid(key, decode(signature.tags["b"]), signed_bytes(signature, mail))
    except SignatureRefused as refusal:
        return DkimVerdict(str(refusal), domain, selector)
    except DnsTemporary:
        return DkimVerdict("temperror", domain, selector)
    return DkimVerdict("pass", domain, selector)


def _read(field: Field, now: float) -> DkimSignature:
    """Return the signature field as values, each one checked (section 6.1.1)."""
    tags = _tags(field)
    domain = ascii_domain(tags["d"])
    field_form, _, body_form = tags.get("c", "simple").partition("/")
    body_form = body_form or "simple"
    well_formed = (
        tags["v"] == "1"
        and domain is not None
        and field_form in FIELD_FORMS
        and body_form in BODY_FORMS
        and "from" in _signed_names(tags)  # section 5.4
        and "dns/txt" in without_space(tags.get("q", "dns/txt")).split(":")
    )
    if not well_formed or domain is None or not _is_identity_within(tags, domain):
        raise SignatureRefused("permerror")
    require_algorithm(tags["a"])
    require_current(tags, now)
    return DkimSignature(field, tags, domain, field_form, body_form)


def _tags(field: Field) -> dict[str, str]:
    if len(field.raw) > MAX_SIGNATURE_BYTES:
        raise SignatureRefused("permerror")
    try:
        tags = parse_tags(field.value)
    except BadTags as error:
        raise SignatureRefused("permerror") from error
    if not all(tags.get(name) for name in _REQUIRED_TAGS):
        raise SignatureRefused("permerror")
    return tags


def _signed_names(tags: dict[str, str]) -> list[str]:
    return without_space(tags["h"]).lower().split(":")


def _is_identity_within(tags: dict[str, str], domain: str) -> bool:
    """Return whether the identity i= is in the signing domain d= or below it (section 3.5)."""
    identity_domain = _identity_domain(tags, domain)
    return identity_domain == domain or identity_domain.endswith("." + domain)


def _identity_domain(tags: dict[str, str], domain: str) -> str:
    return ascii_domain(tags["i"].rpartition("@")[2]) or "" if "i" in tags else domain


def require_algorithm(algorithm: str) -> None:
    # RFC 8301 section 3.1: SHA-1 proves nothing any more.
    if algorithm not in KEY_KINDS:
        raise SignatureRefused("fail" if algorithm == "rsa-sha1" else "permerror")


def require_current(tags: dict[str, str], now: float) -> None:
    """Refuse an expired signature, and times of more than twelve digits (section 3.5)."""
    moments = [tags[name] for name in ("t", "x") if name in tags]
    if not all(moment.isdecimal() and moment.isascii() and len(moment) <= 12 for moment in moments):
        raise SignatureRefused("permerror")
    if "x" in tags and int(tags["x"]) < now:
        raise SignatureRefused("fail")


def find_key(signature: DkimSignature, kind: str, lookup: TimedLookup) -> "PublicKey":
    """Return the published key, if its owner lets it be used for this signature (section 3.6.1)."""
    name = ascii_domain(f"{signature.tags['s']}._domainkey.{signature.domain}")
    record = None if name is None else _key_record(lookup.txt(name))
    if record is None:
        raise SignatureRefused("permerror")
    if not record["p"]:  # the key was revoked
        raise SignatureRefused("fail")
    usable = (
        record.get("k", "rsa") == kind
        and "sha256" in without_space(record.get("h", "sha256")).split(":")
        and {"*", "email"} & set(without_space(record.get("s", "*")).split(":"))
        and not _is_identity_too_narrow(record, signature)
    )
    if not usable:
        raise SignatureRefused("permerror")
    return _load_key(kind, decode(record["p"]))


def _key_record(texts: tuple[bytes, ...]) -> dict[str, str] | None:
    for text in texts:
        try:
            tags = parse_tags(text)
        except BadTags:
            continue
        if "p" in tags and tags.get("v", "DKIM1") == "DKIM1":
            return tags
    return None


def _is_identity_too_narrow(record: dict[str, str], signature: DkimSignature) -> bool:
    """Return whether the flag t=s forbids an identity below the signing domain."""
    is_strict = "s" in without_space(record.get("t", "")).split(":")
    return is_strict and _identity_domain(signature.tags, signature.domain) != signature.domain


def _load_key(kind: str, encoded: bytes) -> "PublicKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        if kind == "ed25519":
            return Ed25519PublicKey.from_public_bytes(encoded)
        key = load_der_public_key(encoded)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SignatureRefused("permerror") from error
    if not isinstance(key, RSAPublicKey):
        raise SignatureRefused("permerror")
    if key.key_size not in _RSA_BITS:
        raise SignatureRefused("fail")
    return key


def require_body_hash(signature: DkimSignature, body: bytes, digests: dict[str, tuple[bytes, int]]) -> None:
    if signature.body_form not in digests:
        canonical = BODY_FORMS[signature.body_form](body)
        digests[signature.body_form] = hashlib.sha256(canonical).digest(), len(canonical)
    digest, length = digests[signature.body_form]
    # Section 8.2: text after the signed length would be shown as if it were signed.
    if signature.tags.get("l", str(length)) != str(length) or digest != decode(signature.tags["bh"]):
        raise SignatureRefused("fail")


def require_covered(signature: DkimSignature, mail: SplitMail, covered: tuple[str, ...] = ()) -> None:
    """Require signed fields: a field outside the signature was added by somebody else (section 8.15).

    Of fields that occur once, a signature covers the last and readers show the first.
    """
    signed = Counter(_signed_names(signature.tags))
    found = Counter(field.name for field in mail.fields)
    if any(found[name] > signed[name] for name in ("from", *covered)):
        raise SignatureRefused("fail")
    if any(0 < signed[name] < found[name] for name in SINGLE_FIELDS):
        raise SignatureRefused("fail")


def require_valid(key: "PublicKey", signature: bytes, signed: bytes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        if isinstance(key, RSAPublicKey):
            key.verify(signature, signed, PKCS1v15(), SHA256())
        else:
            # RFC 8463 section 3: the signature is over the hash, not over the bytes.
            key.verify(signature, hashlib.sha256(signed).digest())
    except InvalidSignature as error:
        raise SignatureRefused("fail") from error


def signed_bytes(signature: DkimSignature, mail: SplitMail) -> bytes:
    """Return the fields named in h=, from the bottom up, then the signature without its b= value (3.7)."""
    form = FIELD_FORMS[signature.field_form]
    remaining: dict[str, list[Field]] = {}
    for field in mail.fields:
        remaining.setdefault(field.name, []).append(field)
    signed: list[bytes] = []
    for name in _signed_names(signature.tags):
        if remaining.get(name):
            signed.append(form(remaining[name].pop()))
    signed.append(form(Field(signature.field.name, without_signature_value(signature.field.raw))))
    return b"\r\n".join(signed)


def without_signature_value(raw: bytes) -> bytes:
    name, _, value = raw.partition(b":")
    return name + b":" + b";".join(_without_value_of_b(tag) for tag in value.split(b";"))


def _without_value_of_b(tag: bytes) -> bytes:
    name, equals, _ = tag.partition(b"=")
    return name + equals if name.strip() == b"b" else tag


def decode(text: str) -> bytes:
    try:
        return b64decode(without_space(text), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SignatureRefused("permerror") from error
