"""Greylisting: a network that nobody knows has to hand an email over again, which senders of junk seldom do.

The table has a bounded number of buckets. Where one is taken by somebody else, the email is accepted.
"""

import hashlib
from ipaddress import ip_address, ip_network

from msgspec import Struct

from postroom.clock import DAY, HOUR, MINUTE
from postroom.inward.mails import Origin
from postroom.storage.database import Row, Tx

WAIT = 5 * MINUTE
LATEST = 2 * DAY  # senders that try on later begin anew
REMEMBERED = 36 * DAY  # a network that came again; once a month is often enough
TAKEN = 6 * HOUR  # so long a bucket is kept for who waits
REFRESHED = DAY
BUCKETS = 131_072


class GreyKeys(Struct, frozen=True):
    """Of the email (network, sender and recipients), and of its network."""

    email: str
    network: str


def keys_of(origin: Origin) -> GreyKeys:
    address = ip_address(origin.peer_ip.partition("%")[0])
    network = str(ip_network((address, 24 if address.version == 4 else 64), strict=False))
    inboxes = sorted({each.inbox_id for each in origin.destinations})
    return GreyKeys(_hash("email", network, origin.mail_from.lower(), *inboxes), _hash("network", network))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:40]


def is_known(tx: Tx, keys: GreyKeys, now: int) -> bool:
    """Return whether its network came again, and this is noted for long enough."""
    row = _find(tx, keys.network)
    return row is not None and row["key"] == keys.network and now - row["seen_at"] < REFRESHED


def has_to_come_again(tx: Tx, keys: GreyKeys, now: int) -> bool:
    """Return whether the client has to retry, and record it. A network that retried is known from then on."""
    network = _find(tx, keys.network)
    if network is not None and network["key"] == keys.network and now - network["seen_at"] < REMEMBERED:
        _put(tx, keys.network, now)
        return False
    row = _find(tx, keys.email)
    if row is not None and row["key"] != keys.email and now - row["seen_at"] < TAKEN:
        return False
    if row is None or row["key"] != keys.email or now - row["first_at"] > LATEST:
        _put(tx, keys.email, now)
        return True
    if now - row["first_at"] < WAIT:
        return True
    if network is None or network["key"] == keys.network or now - network["seen_at"] >= TAKEN:
        _put(tx, keys.network, now)
    return False


def _find(tx: Tx, key: str) -> Row | None:
    return tx.one("select key, first_at, seen_at from greylist where bucket = :bucket", bucket=_bucket(key))


def _put(tx: Tx, key: str, now: int) -> None:
    tx.run(
        "insert into greylist (bucket, key, first_at, seen_at) values (:bucket, :key, :now, :now)"
        " on conflict (bucket) do update set key = excluded.key, first_at = excluded.first_at,"
        " seen_at = excluded.seen_at",
        bucket=_bucket(key),
        key=key,
        now=now,
    )


def _bucket(key: str) -> str:
    return str(int(key[:8], 16) % BUCKETS)
