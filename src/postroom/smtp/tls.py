"""The certificate for STARTTLS if none is set: the self-signed one in the data folder, made if missing."""

import datetime
from pathlib import Path

from postroom.net.certificate import CertificateFiles

LIFETIME_DAYS = 3650  # self-signed: other servers encrypt with it and check nothing (RFC 7435)


def own_files(folder: Path, hostname: str) -> CertificateFiles:
    files = CertificateFiles(folder / "certificate.pem", folder / "key.pem")
    if not files.certificate.exists() or not files.key.exists():
        make_certificate(files.certificate, files.key, hostname)
    return files


def make_certificate(certificate: Path, key: Path, hostname: str) -> None:
    """Makes a self-signed certificate: other mail servers encrypt to any certificate (RFC 7435)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private_key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, hostname[:64])])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=LIFETIME_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(hostname)]), critical=False)
        .sign(private_key, hashes.SHA256())
    )
    certificate.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key.touch(mode=0o600)
    key.write_bytes(
        private_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    certificate.touch(mode=0o600)
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
