"""The signatures of a webhook request: our own (specification, Authentication), and Standard Webhooks."""

import base64
import binascii
import hashlib
import hmac
import secrets

STANDARD_PREFIX = "whsec_"
SECRET_BYTES = 32
FEWEST_BYTES, MOST_BYTES = 24, 64


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the lower-case hex HMAC-SHA256 of `<timestamp>.<body>`."""
    return hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()


def new_secret() -> str:
    """Return a new secret that works for both signatures."""
    return STANDARD_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def standard_headers(secret: str, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers; none for a secret that Standard Webhooks libraries could not read."""
    key = _standard_key(secret)
    if not key:
        return {}
    signed = f"{event_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }


def is_standard(secret: str) -> bool:
    """Return whether it is one of Standard Webhooks, of a length that they recommend."""
    return FEWEST_BYTES <= len(_standard_key(secret)) <= MOST_BYTES


def _standard_key(secret: str) -> bytes:
    if not secret.startswith(STANDARD_PREFIX):
        return b""
    try:
        return base64.b64decode(secret.removeprefix(STANDARD_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""
