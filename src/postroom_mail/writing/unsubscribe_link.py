"""The unsubscribe link of a recipient, and the header fields that hold it (RFC 8058)."""

import base64
import binascii
import hashlib
import hmac
import re

from msgspec import Struct

from postroom_mail.writing import signed_ids

UNSUBSCRIBE_PATH = "/unsubscribe/"
CONTEXT = b"postroom unsubscribe\x00"  # nothing else is signed with the same secret and this prefix
IDS_BYTES = 2 * signed_ids.ID_BYTES  # account and message
SIGNATURE_BYTES = 16
ADDRESS_LIMIT_BYTES = 320
TOKEN = re.compile(r"[A-Za-z0-9_-]{60,500}")


class Unsubscription(Struct, frozen=True):
    """Who unsubscribes, from which account, and by which mail."""

    account_id: str
    message_id: str
    address: str


def encode(secret: bytes, wish: Unsubscription) -> str:
    """Contains all that the click needs, so that it works even after the email is deleted here."""
    account = signed_ids.to_bytes(signed_ids.ACCOUNT, wish.account_id)
    message = signed_ids.to_bytes(signed_ids.MESSAGE, wish.message_id)
    payload = account + message + wish.address.encode()
    return base64.urlsafe_b64encode(_sign(secret, payload) + payload).rstrip(b"=").decode()


def decode(secret: bytes, token: str) -> Unsubscription | None:
    if not TOKEN.fullmatch(token):
        return None
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error:
        return None
    given, payload = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
    if not hmac.compare_digest(given, _sign(secret, payload)):
        return None
    account, message = payload[: signed_ids.ID_BYTES], payload[signed_ids.ID_BYTES : IDS_BYTES]
    return Unsubscription(
        signed_ids.from_bytes(signed_ids.ACCOUNT, account),
        signed_ids.from_bytes(signed_ids.MESSAGE, message),
        payload[IDS_BYTES:].decode(),
    )


def header_fields(secret: bytes, base_url: str, wish: Unsubscription, inbox_id: str) -> bytes:
    """Return List-Unsubscribe (RFC 2369 section 3.2) with one click (RFC 8058 section 3.1), and Feedback-ID.

    By the latter a receiver groups complaints; only this server knows whom its words stand for.
    """
    words = ":".join(_pseudonym(secret, each) for each in (inbox_id, wish.account_id))
    return (
        f"List-Unsubscribe: <{base_url}{UNSUBSCRIBE_PATH}{encode(secret, wish)}>\r\n"
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
        f"Feedback-ID: {words}:mail:postroom\r\n"
    ).encode()


def _pseudonym(secret: bytes, value: str) -> str:
    return hmac.digest(secret, b"postroom feedback id\x00" + value.encode(), hashlib.sha256).hex()[:12]


def _sign(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(secret, CONTEXT + payload, hashlib.sha256)[:SIGNATURE_BYTES]
