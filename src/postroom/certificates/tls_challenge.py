"""The certificate that answers a TLS-ALPN-01 challenge (RFC 8737)."""

import datetime
import hashlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from postroom.certificates.obtain import to_pem

PROTOCOL = "acme-tls/1"
ACME_IDENTIFIER = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31")  # RFC 8737 section 6.1


def make(name: str, key_authorization: str) -> str:
    """Return key and certificate as PEM, valid for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:64])])
    digest = b"\x04\x20" + hashlib.sha256(key_authorization.encode()).digest()  # an OCTET STRING of DER
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=12))
        .not_valid_after(now + datetime.timedelta(hours=12))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.UnrecognizedExtension(ACME_IDENTIFIER, digest), critical=True)
        .sign(key, hashes.SHA256())
    )
    return to_pem(key) + certificate.public_bytes(serialization.Encoding.PEM).decode()
