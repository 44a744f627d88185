"""TLSA records and certificates: which of them prove a server (RFC 7672, RFC 6698)."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.authentication.dane import TlsaRecord, proves, public_key_of, usable
from tests.couriers.certificates import make_chain

NAME = "mx.there.example"


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def key_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def records_of(certificate: x509.Certificate, usage: int) -> list[TlsaRecord]:
    """All six ways to name a certificate."""
    found = []
    for selector, selected in enumerate((der(certificate), key_of(certificate))):
        for matching, data in enumerate(
            (selected, hashlib.sha256(selected).digest(), hashlib.sha512(selected).digest())
        ):
            found.append(TlsaRecord(usage, selector, matching, data))
    return found


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[x509.Certificate, x509.Certificate]:
    _, own, top = make_chain(tmp_path_factory.mktemp("chain"), NAME)
    return own, top


def test_a_named_certificate_proves_the_server_whatever_its_name_and_age(
    chain: tuple[x509.Certificate, x509.Certificate],
) -> None:
    own, top = chain
    later = datetime.now(UTC) + timedelta(days=900)
    for record in records_of(own, 3):
        assert proves([der(own)], [record], ["other.example"], later), record
    for record in records_of(top, 3):
        assert not proves([der(own), der(top)], [record], [NAME]), "an authority is no server"


def test_a_named_authority_proves_valid_certificates_for_the_host_below_it(
    chain: tuple[x509.Certificate, x509.Certificate], tmp_path: Path
) -> None:
    own, top = chain
    later = datetime.now(UTC) + timedelta(days=900)
    for record in records_of(top, 2):
        assert proves([der(own), der(top)], [record], [NAME]), record
        assert proves([der(own), der(top)], [record], ["there.example", NAME]), "one of the names is enough"
        assert not proves([der(own), der(top)], [record], ["other.example"]), record
        assert not proves([der(own), der(top)], [record], [NAME], later), "it has expired"
        is_whole = (record.selector, record.matching) == (0, 0)
        assert proves([der(own)], [record], [NAME]) == is_whole, "the record itself has the certificate"
    _, foreign, _ = make_chain(tmp_path, NAME)
    for record in records_of(top, 2):
        assert not proves([der(foreign), der(top)], [record], [NAME]), "shown, but not signed by it"
    for record in records_of(own, 2):
        assert not proves([der(own), der(top)], [record], [NAME]), "a server is no authority"


def test_what_cannot_be_used_is_left_out() -> None:
    sha = b"\1" * 32
    assert usable([TlsaRecord(usage, 0, 1, sha) for usage in range(6)]) == (
        TlsaRecord(2, 0, 1, sha),
        TlsaRecord(3, 0, 1, sha),
    )
    for record in (
        TlsaRecord(3, 2, 1, sha),
        TlsaRecord(3, 1, 3, sha),
        TlsaRecord(3, 1, 1, sha[:-1]),
        TlsaRecord(3, 1, 2, sha),
        TlsaRecord(3, 1, 0, b""),
    ):
        assert usable([record]) == (), record


def test_of_two_hashes_the_stronger_counts() -> None:
    """RFC 7671, section 9."""
    weak, strong, other = TlsaRecord(3, 1, 1, b"a" * 32), TlsaRecord(3, 1, 2, b"b" * 64), b"c" * 32
    assert usable([weak, strong]) == (strong,)
    assert usable([weak, strong, TlsaRecord(3, 0, 1, other)]) == (strong, TlsaRecord(3, 0, 1, other))
    assert usable([weak, TlsaRecord(3, 1, 0, b"key")]) == (weak, TlsaRecord(3, 1, 0, b"key"))


def test_the_key_is_found_byte_for_byte(chain: tuple[x509.Certificate, x509.Certificate]) -> None:
    for certificate in chain:
        assert public_key_of(der(certificate)) == key_of(certificate)


@given(st.binary(max_size=300), st.integers(0, 3), st.integers(0, 1))
def test_any_bytes_are_no_certificate(raw: bytes, usage: int, selector: int) -> None:
    public_key_of(raw)
    record = TlsaRecord(usage, selector, 1, b"\0" * 32)
    assert not proves([raw, raw], [record, TlsaRecord(2, 0, 0, raw)], [NAME])
