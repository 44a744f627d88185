"""The server's ids inside signed addresses and links: 16 bytes instead of 36 characters."""

import re

ACCOUNT, MESSAGE = "acc", "msg"
ID_BYTES = 16
_ID = re.compile(r"([a-z]{3})_([0-9a-f]{32})")


def to_bytes(kind: str, value: str) -> bytes:
    """Raises ValueError for anything but an id of this kind."""
    found = _ID.fullmatch(value)
    if found is None or found[1] != kind:
        raise ValueError(f"not an id of the kind {kind}")
    return bytes.fromhex(found[2])


def from_bytes(kind: str, raw: bytes) -> str:
    return f"{kind}_{raw.hex()}"
