"""The signature of a webhook request (specification, Authentication)."""

import hashlib
import hmac


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Lower-case hex HMAC-SHA256 of `<timestamp>.<body>`."""
    return hmac.new(secret.encode(), b"%d." % timestamp + body, hashlib.sha256).hexdigest()
