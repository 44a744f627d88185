"""Programs that registered themselves (RFC 7591) or have a URL: public clients, without a secret."""

import secrets
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Struct

from postroom.accounts import names
from postroom.clock import DAY, HOUR, SECOND
from postroom.errors import RateLimitExceeded
from postroom.storage.database import Row, Tx, insert, item_from_row

PREFIX = "prc_"
UNUSED_LIFETIME = DAY
WINDOW = HOUR
AN_HOUR_AND_NETWORK = 200
REDIRECTS_LIMIT = 10
REDIRECT_CHARACTERS = 2000
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class OauthClient(Struct, frozen=True):
    id: str
    name: str
    redirect_uris: tuple[str, ...]
    created_at: int

    @classmethod
    def from_row(cls, row: Row) -> "OauthClient":
        uris = msgspec.json.decode(row["redirect_uris"], type=list[str])
        return item_from_row(cls, row, redirect_uris=tuple(uris))

    def takes(self, redirect_uri: str) -> bool:
        """Return whether this URI is registered.

        The port of a loopback address may differ (RFC 8252, 7.3).
        """
        return redirect_uri in self.redirect_uris or any(
            _is_same_but_for_port(known, redirect_uri) for known in self.redirect_uris
        )


def is_allowed_redirect(uri: str) -> bool:
    """Return whether a client may use this URI: https, or http on loopback.

    It has no fragment, user, password or invisible character.
    """
    parts = _split(uri)
    if parts is None or not parts.hostname or "#" in uri or "@" in parts.netloc:
        return False
    is_visible = all(0x21 <= ord(letter) <= 0x7E for letter in uri) and '"' not in uri and "\\" not in uri
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    return is_visible and is_safe and len(uri) <= REDIRECT_CHARACTERS


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return None
    host = parts.hostname or ""
    written = parts.netloc.rpartition("@")[2].lower()
    # urlsplit takes `[::1].evil.com` for `::1`, which a browser does not.
    return parts if written.removesuffix(":") == (f"[{host}]" if ":" in host else host) + port else None


def _is_same_but_for_port(known: str, asked: str) -> bool:
    one, other = _split(known), _split(asked)
    if one is None or other is None or one.scheme != "http" or one.hostname not in LOOPBACK:
        return False
    same = ("scheme", "hostname", "path", "query", "fragment", "username", "password")
    return all(getattr(one, name) == getattr(other, name) for name in same)


def network_of(address: str) -> str:
    """Return the network that counts as one client: for IPv6 a whole /64, since a client has that."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    return str(ip) if ip.version == 4 else str(ip_network((ip, 64), strict=False))


def require_room(tx: Tx, network: str, limit: int, now: int) -> None:
    """Refuse a network's registration beyond the limit.

    Only registrations that nobody has allowed yet count.
    """
    row = tx.one(
        "select created_at from oauth_clients where address = :network and created_at > :since"
        " and granted_at is null order by created_at desc limit 1 offset :offset",
        network=network,
        since=now - WINDOW,
        offset=limit - 1,
    )
    if row is not None:
        wait = row["created_at"] + WINDOW - now
        raise RateLimitExceeded(
            f"{limit} programs were registered from this network or account within an hour. Try again later.",
            retry_after=max(1, -(-wait // SECOND)),
        )


def add(
    tx: Tx, name: str, redirect_uris: Sequence[str], address: str, now: int, limit: int = AN_HOUR_AND_NETWORK
) -> OauthClient:
    network = network_of(address)
    require_room(tx, network, limit, now)
    client = OauthClient(PREFIX + secrets.token_urlsafe(16), name, tuple(redirect_uris), now)
    insert(
        tx,
        "oauth_clients",
        id=client.id,
        name=name,
        redirect_uris=msgspec.json.encode(client.redirect_uris).decode(),
        address=network,
        created_at=now,
    )
    return client


def put(
    tx: Tx,
    client_id: str,
    name: str,
    redirect_uris: Sequence[str],
    account_id: str,
    now: int,
    limit: int = AN_HOUR_AND_NETWORK,
) -> OauthClient:
    """Add or renew a program that is known by a URL, as of now."""
    if find(tx, client_id) is None:
        require_room(tx, account_id, limit, now)
    client = OauthClient(client_id, name, tuple(redirect_uris), now)
    tx.run(
        "insert into oauth_clients (id, name, redirect_uris, address, created_at)"
        " values (:id, :name, :uris, :address, :now)"
        " on conflict (id) do update set name = :name, redirect_uris = :uris, created_at = :now",
        id=client_id,
        name=name,
        uris=msgspec.json.encode(client.redirect_uris).decode(),
        address=account_id,
        now=now,
    )
    return client


def find(tx: Tx, client_id: str) -> OauthClient | None:
    row = tx.one("select * from oauth_clients where id = :id", id=client_id)
    return None if row is None else OauthClient.from_row(row)


def record_grant(tx: Tx, client_id: str, now: int) -> None:
    tx.run("update oauth_clients set granted_at = :now where id = :id", now=now, id=client_id)


def clean_name(name: object) -> str:
    """Return the name that a client gives itself, if it is safe to show on a page."""
    shown = name.strip() if isinstance(name, str) else ""
    return shown[:100] if shown and names.is_clean(shown[:100]) else "A program without a name"


def remove_unused(tx: Tx, now: int, rows: int) -> int:
    """Remove those not authorized within a day, and those whose grants have all ended."""
    return tx.run(
        "delete from oauth_clients where id in (select id from oauth_clients where created_at < :before"
        " and not exists (select 1 from oauth_grants where client_id = oauth_clients.id)"
        " order by created_at limit :rows)",
        before=now - UNUSED_LIFETIME,
        rows=rows,
    )
