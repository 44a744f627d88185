"""Web Push: a message that only the browser can decrypt (RFC 8291), from a known server (RFC 8292)."""

import base64
import json
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from postroom.clock import HOUR, SECOND

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

OWN = "web-push"  # its name among the server's secrets; VAPID keys are derived from it
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
POINT_BYTES, AUTH_BYTES = 65, 16
RECORD_BYTES = 4096
TOKEN_LIFETIME = 12 * HOUR
TTL_SECONDS = 3600


def own_key(secret: bytes) -> "EllipticCurvePrivateKey":
    """Return our key. It is the same on every node and after every start: subscriptions are bound to it."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.derive_private_key(int.from_bytes(secret, "big") % (ORDER - 1) + 1, ec.SECP256R1())


def public_point(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def public_text(secret: bytes) -> str:
    """Return the public key in the form that the page gives the browser."""
    return to_base64(public_point(own_key(secret)))


def is_browser_key(p256dh: str, auth: str) -> bool:
    """Return whether it is a point on the curve, and a secret of the right length."""
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        point, shared = from_base64(p256dh), from_base64(auth)
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError:
        return False
    return len(point) == POINT_BYTES and len(shared) == AUTH_BYTES


def to_request(
    content: bytes, endpoint: str, p256dh: str, auth: str, secret: bytes, contact: str, now: int
) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of the POST to the push service, which cannot read the content."""
    headers = {
        "Authorization": vapid(endpoint, secret, contact, now),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(TTL_SECONDS),
        "Urgency": "high",
        "User-Agent": "Postroom",
    }
    return encrypt(content, from_base64(p256dh), from_base64(auth)), headers


def encrypt(
    content: bytes,
    point: bytes,
    auth: bytes,
    sender: "EllipticCurvePrivateKey | None" = None,
    salt: bytes | None = None,
) -> bytes:
    """Encrypt the content (RFC 8291, 3.4). Sender's key and salt are random, except in tests."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    sender = sender or ec.generate_private_key(ec.SECP256R1())
    salt = salt or os.urandom(16)
    receiver = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    own_point = public_point(sender)
    shared = sender.exchange(ec.ECDH(), receiver)
    keying = derive(shared, auth, b"WebPush: info\0" + point + own_point, 32)
    key = derive(keying, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = derive(keying, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + RECORD_BYTES.to_bytes(4, "big") + bytes([len(own_point)]) + own_point
    return head + AESGCM(key).encrypt(nonce, content + b"\x02", None)


def derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def vapid(endpoint: str, secret: bytes, contact: str, now: int) -> str:
    """Return the Authorization header (RFC 8292, 3), for this one service and half a day."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    key, parts = own_key(secret), urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": (now + TOKEN_LIFETIME) // SECOND,
        "sub": contact,
    }
    written = [json.dumps(part).encode() for part in ({"typ": "JWT", "alg": "ES256"}, claims)]
    signed = ".".join(to_base64(part) for part in written)
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    signature = to_base64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature}, k={public_text(secret)}"


def to_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def from_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
