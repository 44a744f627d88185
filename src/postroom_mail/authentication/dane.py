"""DANE for SMTP (RFC 7672): whether the certificates of a server match its TLSA records."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    # Loaded with the first chain that has to be verified.
    from cryptography import x509

# RFC 6698 sections 2.1.1 to 2.1.3. Usages 0 and 1 ask for public authorities, which no mail server knows
# (RFC 7672 section 3.1.3).
TRUST_ANCHOR, END_ENTITY = 2, 3  # usages
CERTIFICATE, PUBLIC_KEY = 0, 1  # selectors
WHOLE, SHA256, SHA512 = 0, 1, 2  # how it is compared
HASHES = {SHA256: hashlib.sha256, SHA512: hashlib.sha512}
MAX_RECORDS = 64
MAX_CERTIFICATES = 20
_SEQUENCE, _VERSION = 0x30, 0xA0
_BEFORE_THE_KEY = 5  # serial number, algorithm, issuer, validity, subject (RFC 5280 section 4.1)


class TlsaRecord(Struct, frozen=True):
    usage: int
    selector: int
    matching: int
    data: bytes

    @property
    def is_usable(self) -> bool:
        """Section 3.1: known numbers, of a length that can match."""
        if self.usage not in (TRUST_ANCHOR, END_ENTITY) or self.selector not in (CERTIFICATE, PUBLIC_KEY):
            return False
        if self.matching == WHOLE:
            return bool(self.data)
        made = HASHES.get(self.matching)
        return made is not None and len(self.data) == made().digest_size

    def __str__(self) -> str:
        return f"{self.usage} {self.selector} {self.matching} {self.data.hex()}"

    def names(self, certificate: bytes) -> bool:
        selected = certificate if self.selector == CERTIFICATE else public_key_of(certificate)
        if self.matching == WHOLE or not selected:
            return selected == self.data
        return HASHES[self.matching](selected).digest() == self.data


def usable(records: Sequence[TlsaRecord]) -> tuple[TlsaRecord, ...]:
    """Return the usable records: of several hashes of the same kind only the strongest (RFC 7671, 9)."""
    found = [record for record in records[:MAX_RECORDS] if record.is_usable]
    strongest: dict[tuple[int, int], int] = {}
    for record in found:
        kind = record.usage, record.selector
        strongest[kind] = max(strongest.get(kind, WHOLE), record.matching)
    return tuple(
        record for record in found if record.matching in (WHOLE, strongest[record.usage, record.selector])
    )


def proves(
    chain: Sequence[bytes], records: Sequence[TlsaRecord], names: Sequence[str], now: datetime | None = None
) -> bool:
    """Return whether the chain shown by a server matches its usable records.

    For DANE-EE neither name nor time count (section 3.1.1). For DANE-TA the anchor is in the chain or in
    the record itself, and the server's certificate is valid below it, for one of the names (section 3.1.2).
    """
    if not chain:
        return False
    if any(record.usage == END_ENTITY and record.names(chain[0]) for record in records):
        return True
    anchors = [record for record in records if record.usage == TRUST_ANCHOR]
    others = chain[1:MAX_CERTIFICATES]
    whole = [each.data for each in anchors if (each.selector, each.matching) == (CERTIFICATE, WHOLE)]
    given = [each for each in whole if each != chain[0]]  # a server is no authority over itself
    trusted = [each for each in others if any(record.names(each) for record in anchors)]
    at = now or datetime.now(UTC)
    return any(_is_below(chain[0], others, anchor, names, at) for anchor in (*trusted, *given))


def _is_below(
    leaf: bytes, others: Sequence[bytes], anchor: bytes, names: Sequence[str], at: datetime
) -> bool:
    from cryptography import x509
    from cryptography.x509 import verification
    from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store

    authority = ExtensionPolicy.permit_all().require_present(
        x509.BasicConstraints, Criticality.AGNOSTIC, None
    )
    server = ExtensionPolicy.permit_all().require_present(
        x509.SubjectAlternativeName, Criticality.AGNOSTIC, None
    )
    try:
        store = Store([x509.load_der_x509_certificate(anchor)])
        shown, between = x509.load_der_x509_certificate(leaf), _readable(others)
    except ValueError:
        return False
    policy = PolicyBuilder().store(store).time(at)
    policy = policy.extension_policies(ca_policy=authority, ee_policy=server)
    for name in names:
        try:
            policy.build_server_verifier(x509.DNSName(name)).verify(shown, between)
        except (verification.VerificationError, ValueError):
            continue
        return True
    return False


def _readable(certificates: Sequence[bytes]) -> "list[x509.Certificate]":
    from cryptography import x509

    found: list[x509.Certificate] = []
    for each in certificates:
        try:
            found.append(x509.load_der_x509_certificate(each))
        except ValueError:
            continue
    return found


def public_key_of(certificate: bytes) -> bytes:
    """Return SubjectPublicKeyInfo in its original bytes, which another encoder might write differently."""
    try:
        _, inner, _ = _element(certificate, 0)
        _, place, _ = _element(certificate, inner)
        if certificate[place] == _VERSION:
            place = _element(certificate, place)[2]
        for _ in range(_BEFORE_THE_KEY):
            place = _element(certificate, place)[2]
        tag, _, end = _element(certificate, place)
    except IndexError:
        return b""
    return certificate[place:end] if tag == _SEQUENCE and end <= len(certificate) else b""


def _element(der: bytes, place: int) -> tuple[int, int, int]:
    """Return the tag of the element at this position, and where its content begins and ends."""
    tag, length, start = der[place], der[place + 1], place + 2
    if length >= 0x80:
        size = length & 0x7F
        length = int.from_bytes(der[start : start + size]) if size <= 4 else len(der)
        start += size
    return tag, start, start + length
