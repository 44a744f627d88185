"""Signs mail with DKIM (RFC 6376), relaxed/relaxed: rsa-sha256 and ed25519-sha256 (RFC 8463).

`cryptography` takes 7 MB, so it is imported only when signing: a worker never does.
"""

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from postroom_mail.authentication.canonical import SplitMail, split_mail

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    PrivateKey = RSAPrivateKey | Ed25519PrivateKey

Algorithm = Literal["rsa", "ed25519"]
RSA: Final = "rsa"
ED25519: Final = "ed25519"

# Each is listed once more than it occurs, so that none can be added later (RFC 6376 section 8.15).
SEALED = (
    b"from",
    b"to",
    b"cc",
    b"reply-to",
    b"subject",
    b"date",
    b"message-id",
    b"in-reply-to",
    b"references",
    b"mime-version",
    b"content-type",
    b"content-transfer-encoding",
)
# Signed if they are there, as RFC 8058 section 4 demands of List-Unsubscribe; others on the way may add their
# own.
SIGNED = (b"auto-submitted", b"list-unsubscribe", b"list-unsubscribe-post", b"feedback-id")
DNS_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*", re.I)


def generate_key() -> bytes:
    """Return a new private key, 2048 bits (RFC 8301, 3.2), as unencrypted PEM."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    return _to_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def generate_ed25519_key() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return _to_pem(Ed25519PrivateKey.generate())


def _to_pem(key: "PrivateKey") -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def load_key(pem: bytes) -> "PrivateKey":
    """Load a key that was made here, without checking its primes again, which would take 0.2 s."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    key = serialization.load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
    if not isinstance(key, RSAPrivateKey | Ed25519PrivateKey):
        raise ValueError("neither an RSA nor an Ed25519 private key")
    return key


def public_record(pem: bytes) -> str:
    """Return the TXT record to publish at {selector}._domainkey.{domain}."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = load_key(pem)
    if isinstance(key, Ed25519PrivateKey):
        # RFC 8463 section 4: the bare 32 bytes, not their form in a certificate.
        return f"v=DKIM1; k=ed25519; p={base64.b64encode(key.public_key().public_bytes_raw()).decode()}"
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return f"v=DKIM1; k=rsa; p={base64.b64encode(der).decode()}"


def sign(raw: bytes, *, domain: str, keys: "Sequence[tuple[str, PrivateKey]]", signed_at: int) -> bytes:
    """Return a DKIM-Signature field by each key, to put before `raw`.

    Domain and selectors are in DNS form.
    """
    require_signable(raw, domain, [selector for selector, _ in keys])
    mail = split_mail(raw)
    signed, digest = signed_fields(mail), body_hash(mail.body)
    return b"".join(
        write_signature("DKIM-Signature: v=1", signed, digest, domain, selector, key, signed_at)
        for selector, key in keys
    )


def write_signature(
    beginning: str,
    signed: list[tuple[bytes, bytes]],
    digest: bytes,
    domain: str,
    selector: str,
    key: "PrivateKey",
    signed_at: int,
) -> bytes:
    """Sign fields and body, relaxed, as a DKIM-Signature or the similar field of ARC."""
    field = (
        f"{beginning}; a={algorithm_of(key)}-sha256; c=relaxed/relaxed;\r\n".encode()
        + f" d={domain};\r\n s={selector}; t={signed_at // 1000};\r\n".encode()
        + b" h="
        + name_list([name for name, _ in signed])
        + b";\r\n"
        + b" bh="
        + base64.b64encode(digest)
        + b";\r\n b="
    )
    return with_value(field, b"".join(value for _, value in signed), key)


def with_value(field: bytes, before: bytes, key: "PrivateKey") -> bytes:
    """Completes a field that ends with `b=` by the signature over what comes before it and itself."""
    signature = base64.b64encode(_sign(key, before + relaxed_field(field)))
    return field + b"\r\n ".join(signature[at : at + 72] for at in range(0, len(signature), 72)) + b"\r\n"


def algorithm_of(key: "PrivateKey") -> Algorithm:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    return RSA if isinstance(key, RSAPrivateKey) else ED25519


def _sign(key: "PrivateKey", hashed: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256

    if isinstance(key, RSAPrivateKey):
        return key.sign(hashed, PKCS1v15(), SHA256())
    # RFC 8463 section 3: the signature is over the hash, not over the bytes.
    return key.sign(hashlib.sha256(hashed).digest())


def require_signable(raw: bytes, domain: str, selectors: Sequence[str]) -> None:
    """Refuse a bare CR or LF: a relay would repair it and so break the signature."""
    if not raw.count(b"\r\n") == raw.count(b"\r") == raw.count(b"\n"):
        raise ValueError("raw: bare CR or LF")
    for field, name in (("domain", domain), *(("selector", selector) for selector in selectors)):
        if not DNS_NAME.fullmatch(name):
            raise ValueError(f"{field}: not a DNS name")


def name_list(names: list[bytes]) -> bytes:
    """Join the names, three in a line."""
    return b":\r\n ".join(b":".join(names[at : at + 3]) for at in range(0, len(names), 3))


def signed_fields(mail: SplitMail) -> list[tuple[bytes, bytes]]:
    """Return each listed name with its canonical field, the lowest of a name first, empty if missing."""
    fields = canonical_fields(mail)
    if b"from" not in fields:
        raise ValueError("raw: no From field")
    sealed = [(name, field) for name in SEALED for field in (*reversed(fields[name]), b"")]
    return sealed + [(name, field) for name in SIGNED for field in reversed(fields[name])]


def canonical_fields(mail: SplitMail) -> dict[bytes, list[bytes]]:
    fields: dict[bytes, list[bytes]] = defaultdict(list)
    for field in mail.fields:
        fields[field.name.encode()].append(relaxed_field(field.raw) + b"\r\n")
    return fields


def relaxed_field(field: bytes) -> bytes:
    """Return the canonical field without the line end (RFC 6376, 3.4.2)."""
    name, _, value = field.partition(b":")
    value = single_spaced(value.replace(b"\r\n", b"")).strip(b" ")
    return name.strip(b" \t").lower() + b":" + value


def body_hash(body: bytes) -> bytes:
    """Hash the body in its canonical form (RFC 6376, 3.4.4).

    Single spaces, none at the end of a line, and no empty lines at its end.
    """
    content = body.rstrip(b" \t\r\n")
    if not content:
        return hashlib.sha256().digest()
    return hashlib.sha256(single_spaced(content).replace(b" \r\n", b"\r\n") + b"\r\n").digest()


def single_spaced(data: bytes) -> bytes:
    """Halve the longest run of spaces in each pass: eight times faster than a regular expression."""
    data = data.replace(b"\t", b" ")
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    return data
