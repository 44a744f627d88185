"""The signed address and link by which one reviewer decides about one email."""

import base64
import hashlib
import hmac
import re

from msgspec import Struct

from postroom_mail.writing import signed_ids

PREFIX = "review+"
CONTEXT = b"postroom review\x00"  # nothing else is signed with the same secret and this prefix
REVIEWER_BYTES = 4
PAYLOAD_BYTES = signed_ids.ID_BYTES + REVIEWER_BYTES
SIGNATURE_BYTES = 15  # 35 bytes are 56 letters, without padding; with the prefix they fit a local part
TOKEN = re.compile(r"[a-z2-7]{56}", re.I | re.A)
TOKEN_BYTES = PAYLOAD_BYTES + SIGNATURE_BYTES
# Base 32 with the digits of `int`, which is five times as fast as `base64`: an email may have thousands.
_DIGITS = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghijklmnopqrstuv")


class ReviewPath(Struct, frozen=True):
    message_id: str
    reviewer_hash: bytes

    def is_of(self, reviewer: str) -> bool:
        return hmac.compare_digest(self.reviewer_hash, hash_of(reviewer))


def encode(secret: bytes, message_id: str, reviewer: str) -> str:
    """Return the token. Servers may change its case on the way."""
    payload = signed_ids.to_bytes(signed_ids.MESSAGE, message_id) + hash_of(reviewer)
    return base64.b32encode(payload + _sign(secret, payload)).decode().lower()


def is_review_path(local_part: str) -> bool:
    return local_part.lower().startswith(PREFIX) and TOKEN.fullmatch(local_part[len(PREFIX) :]) is not None


def decode(secret: bytes, token: str) -> ReviewPath | None:
    if TOKEN.fullmatch(token) is None:
        return None
    raw = int(token.lower().translate(_DIGITS), 32).to_bytes(TOKEN_BYTES, "big")
    payload, given = raw[:PAYLOAD_BYTES], raw[PAYLOAD_BYTES:]
    if not hmac.compare_digest(given, _sign(secret, payload)):
        return None
    message, reviewer_hash = payload[: signed_ids.ID_BYTES], payload[signed_ids.ID_BYTES :]
    return ReviewPath(signed_ids.from_bytes(signed_ids.MESSAGE, message), reviewer_hash)


def hash_of(reviewer: str) -> bytes:
    return hashlib.sha256(reviewer.encode()).digest()[:REVIEWER_BYTES]


def _sign(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(secret, CONTEXT + payload, hashlib.sha256)[:SIGNATURE_BYTES]
