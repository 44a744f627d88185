"""The signature of webhook requests: lower-case hex HMAC-SHA256 of `<timestamp>.<body>`."""

import hashlib
import hmac
import time


def sign(body: bytes, timestamp: str, secret: str) -> str:
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def verify_signature(
    body: bytes | str,
    timestamp: str,
    signature: str,
    secret: str,
    tolerance: float = 300,
    *,
    now: float | None = None,
) -> bool:
    """Return True when `signature` fits the raw body and `timestamp` is within `tolerance` seconds of now.

    Pass the body as it came, before any parsing, with the headers X-Timestamp and X-Signature.
    """
    moment = _unix_seconds(timestamp)
    if moment is None or abs((time.time() if now is None else now) - moment) > tolerance:
        return False
    raw = body.encode() if isinstance(body, str) else body
    return hmac.compare_digest(sign(raw, timestamp, secret).encode(), signature.encode(errors="replace"))


def _unix_seconds(timestamp: str) -> int | None:
    is_plain = timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16
    return int(timestamp) if is_plain else None
