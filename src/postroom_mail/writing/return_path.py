"""The return path of a sent email: an address that identifies the message and recipient that bounced.

It is signed, so only the server that got the email can report a bounce for it.
"""

import base64
import hashlib
import hmac
import re

from msgspec import Struct

from postroom_mail.writing import signed_ids

PREFIX = "bounces+"
CONTEXT = b"postroom return path\x00"  # nothing else is signed with the same secret and this prefix
PAYLOAD_BYTES = signed_ids.ID_BYTES + 1 + 2  # message id, recipient, day
SIGNATURE_BYTES = 16  # fills the 64 octets of a local part (RFC 5321 section 4.5.3.1.1) without padding
TOKEN = re.compile(r"bounces\+([a-z2-7]{56})", re.I | re.A)
CLOCK_SKEW_DAYS = 1


class BouncePath(Struct, frozen=True):
    message_id: str
    recipient_index: int
    day: int


def encode(secret: bytes, message_id: str, recipient_index: int, day: int) -> str:
    """Return the local part, 64 characters. Its case may change on the way. `day` counts from 1970-01-01."""
    message = signed_ids.to_bytes(signed_ids.MESSAGE, message_id)
    payload = message + recipient_index.to_bytes(1, "big") + day.to_bytes(2, "big")
    return PREFIX + base64.b32encode(payload + signature(secret, payload)).decode().lower()


def is_return_path(local_part: str) -> bool:
    """Return whether it has the format, signed or not."""
    return TOKEN.fullmatch(local_part) is not None


def decode(secret: bytes, local_part: str, today: int, max_age_days: int) -> BouncePath | None:
    """Return what `encode` wrote, if it was written with this secret and is not too old."""
    match = TOKEN.fullmatch(local_part)
    if not match:
        return None
    token = base64.b32decode(match[1].upper())
    payload, given = token[:PAYLOAD_BYTES], token[PAYLOAD_BYTES:]
    if not hmac.compare_digest(given, signature(secret, payload)):
        return None
    message_id = signed_ids.from_bytes(signed_ids.MESSAGE, payload[: signed_ids.ID_BYTES])
    recipient_index, day = payload[signed_ids.ID_BYTES], payload[signed_ids.ID_BYTES + 1 :]
    path = BouncePath(message_id, recipient_index, int.from_bytes(day, "big"))
    return path if -CLOCK_SKEW_DAYS <= today - path.day <= max_age_days else None


def signature(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(secret, CONTEXT + payload, hashlib.sha256)[:SIGNATURE_BYTES]
