"""The server's own Ed25519 keys: receipts and heads of the audit log are signed with them."""

import hashlib
from base64 import urlsafe_b64encode
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from postroom import ids
from postroom.clock import DAY, to_iso
from postroom.fields import Timestamp
from postroom.storage.database import Row, Tx, insert_new, item_from_row

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

EVIDENCE = "evidence"
USED_FOR = 365 * DAY  # then a new key signs; the public half of the old one stays published


class EvidenceKey(Struct, frozen=True):
    id: str
    private_key: bytes
    public_key: bytes
    valid_from: int
    valid_until: int | None

    @classmethod
    def from_row(cls, row: Row) -> "EvidenceKey":
        private_key, public_key = bytes(row["private_key"]), bytes(row["public_key"])
        return item_from_row(cls, row, private_key=private_key, public_key=public_key)

    def sign(self, content: bytes) -> str:
        return to_base64url(_load(self.private_key).sign(content))


class PublishedKey(Struct, rename="camel", frozen=True):
    """A public key, base64url; `until` is null while it signs."""

    key_id: str
    algorithm: str
    public_key: str
    valid_from: Timestamp = msgspec.field(name="from")
    until: Timestamp | None


class PublishedKeys(Struct, frozen=True):
    keys: list[PublishedKey]


def canonical(value: object) -> bytes:
    """Return what is hashed and signed: JSON with sorted keys, without spaces, in UTF-8."""
    return msgspec.json.encode(value, order="sorted")


def signed_part(shown: Struct) -> bytes:
    """Return what a signature covers: all that is shown but itself."""
    content = msgspec.json.decode(msgspec.json.encode(shown))
    del content["signature"]
    return canonical(content)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def keep_current(tx: Tx, now: int) -> EvidenceKey:
    """Return the key in use; a missing or old one is replaced, by one node of several."""
    key = _in_use(tx)
    if key is not None and key.valid_from > now - USED_FOR:
        return key
    if key is not None:
        tx.run("update signing_keys set valid_until = :now where id = :id", now=now, id=key.id)
    private_key, public_key = _generate()
    insert_new(
        tx,
        "signing_keys",
        id=ids.new(ids.SIGNING_KEY, now),
        purpose=EVIDENCE,
        private_key=private_key,
        public_key=public_key,
        valid_from=now,
    )
    return current(tx)


def current(tx: Tx) -> EvidenceKey:
    key = _in_use(tx)
    assert key is not None, "a signing key is made at start"
    return key


def publish(tx: Tx) -> PublishedKeys:
    """Return the public half of every key, also of those that no longer sign."""
    rows = tx.all("select * from signing_keys order by valid_from, id")
    return PublishedKeys([_show(EvidenceKey.from_row(row)) for row in rows])


def _show(key: EvidenceKey) -> PublishedKey:
    return PublishedKey(
        key_id=key.id,
        algorithm="Ed25519",
        public_key=to_base64url(key.public_key),
        valid_from=to_iso(key.valid_from),
        until=None if key.valid_until is None else to_iso(key.valid_until),
    )


def to_base64url(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _in_use(tx: Tx) -> EvidenceKey | None:
    row = tx.one(
        "select * from signing_keys where purpose = :purpose and valid_until is null", purpose=EVIDENCE
    )
    return None if row is None else EvidenceKey.from_row(row)


def _generate() -> tuple[bytes, bytes]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    return key.private_bytes_raw(), key.public_key().public_bytes_raw()


@lru_cache(maxsize=8)
def _load(private_key: bytes) -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private_key)
