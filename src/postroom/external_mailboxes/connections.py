"""Connections: an external mailbox, or a mail service that posts to its own URL."""

import hashlib
import secrets
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.errors import no_such
from postroom.mailbox import inboxes
from postroom.net.relay import OAUTH_SUFFIX
from postroom.storage.database import LOCK_ROWS, Row, Tx, insert, item_from_row, update_item

IMAP, HTTP = "imap", "http"
CONNECTING, LIVE, FAILING = "connecting", "live", "failing"
BELL = "connections"
POSTS_PATH = "/inbound/"
SMTP_TLS_PORT = 465
ERROR_CHARACTERS = 500
LIMIT = 1_000  # of an account

Json = dict[str, Any]

# Columns of the sending inbox that decide how its mail leaves.
OF_SENDER = (
    "inboxes.external_address, inboxes.connection_id, (select outbound from domains"
    " where name = inboxes.domain and verified_at is not null) as of_domain,"
    " (select outbound from pods where id = inboxes.pod_id) as of_pod"
)


class WayOut(Struct, frozen=True):
    """The relays for mail of an inbox, "" for the server's own route.

    With a connection they are those of its external mailbox.
    """

    outbound: str = ""
    connection_id: str | None = None
    needs_token: bool = False  # with OAuth: the relay is known once there is a token


class Connection(Struct, frozen=True):
    """`settings` are shown, `hidden` never is."""

    id: str
    account_id: str
    pod_id: str | None  # None: the whole account
    inbox_id: str | None
    kind: str
    provider: str
    state: str
    last_error: str | None
    last_mail_at: int | None
    uid_validity: int | None
    last_uid: int
    created_at: int
    settings: Json
    hidden: Json
    start_uid: int = 0  # emails up to it were there when the reading began: their date decides
    begins_at: int | None = None  # the newest of them, by the mailbox's own clock; None: not known

    @classmethod
    def from_row(cls, row: Row) -> "Connection":
        return item_from_row(
            cls,
            row,
            settings=msgspec.json.decode(row["settings"]),
            hidden=msgspec.json.decode(row["secrets"]),
        )

    @property
    def scope(self) -> Scope:
        return Scope(self.account_id, self.pod_id)

    @property
    def address(self) -> str:
        """The address of an external mailbox."""
        return str(self.settings.get("address", ""))

    @property
    def pulled(self) -> list[str]:
        """The addresses whose email it pulls; none if a mail service posts to it."""
        named = (self.address, str(self.settings.get("username", ""))) if self.kind == IMAP else ()
        return [each for each in named if "@" in each]

    @property
    def is_proven(self) -> bool:
        """Return whether a login has worked and its folder was opened.

        Until then its address is only a claim.
        """
        return self.uid_validity is not None

    @property
    def has_smtp(self) -> bool:
        return bool(self.settings.get("smtp"))

    def smtp_url(self, token: str = "") -> str:
        """Return the URL of its SMTP server, with the password or an OAuth token."""
        smtp, secret = self.settings["smtp"], token or self.hidden.get("password", "")
        scheme = "smtps" if smtp["port"] == SMTP_TLS_PORT else "smtp"
        scheme += OAUTH_SUFFIX if token else ""
        secret = f"{quote(self.settings['username'], safe='')}:{quote(secret, safe='')}"
        return f"{scheme}://{secret}@{smtp['host']}:{smtp['port']}"

    @property
    def tagged(self) -> dict[str, str]:
        """Further inboxes, by their tagged address."""
        local, _, domain = self.address.rpartition("@")
        tags: dict[str, str] = self.settings.get("plusAddresses", {})
        return {f"{local}+{tag}@{domain}": inbox_id for tag, inbox_id in tags.items()}


def new_token() -> str:
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def add(tx: Tx, connection: Connection, token: str | None = None) -> Connection:
    insert(
        tx,
        "connections",
        id=connection.id,
        account_id=connection.account_id,
        pod_id=connection.pod_id,
        inbox_id=connection.inbox_id,
        kind=connection.kind,
        provider=connection.provider,
        state=connection.state,
        token_hash=None if token is None else hash_token(token),
        created_at=connection.created_at,
        settings=_encode(connection.settings),
        secrets=_encode(connection.hidden),
    )
    return connection


def put(tx: Tx, connection: Connection) -> None:
    """Stores what its owner may change; it is then tried again."""
    tx.run(
        "update connections set settings = :settings, secrets = :secrets, state = :state, last_error = null,"
        " leased_until = 0 where id = :id",
        settings=_encode(connection.settings),
        secrets=_encode(connection.hidden),
        state=CONNECTING,
        id=connection.id,
    )


def _encode(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def get(tx: Tx, scope: Scope, connection_id: str) -> Connection:
    found = find(tx, connection_id) if ids.is_id(ids.CONNECTION, connection_id) else None
    if found is None or not scope.includes(found.scope):
        raise no_such("connection")
    return found


def find(tx: Tx, connection_id: str) -> Connection | None:
    row = tx.one("select * from connections where id = :id", id=connection_id)
    return None if row is None else Connection.from_row(row)


def find_by_token(tx: Tx, token: str) -> Connection | None:
    row = tx.one("select * from connections where token_hash = :hash", hash=hash_token(token))
    return None if row is None else Connection.from_row(row)


def list_within(tx: Tx, scope: Scope, limit: int, offset: int) -> tuple[list[Connection], int]:
    """List the mailboxes, newest first."""
    column, owner = ("account_id", scope.account_id) if scope.pod_id is None else ("pod_id", scope.pod_id)
    rows = tx.all(
        f"select * from connections where {column} = :owner"
        " order by created_at desc, id desc limit :limit offset :offset",
        owner=owner,
        limit=limit,
        offset=offset,
    )
    return [Connection.from_row(row) for row in rows], count(tx, column, owner)


def count(tx: Tx, column: str, owner: str) -> int:
    row = tx.one(f"select count(*) as total from connections where {column} = :owner", owner=owner)
    return int(row["total"]) if row else 0


def has_posts(tx: Tx, account_id: str) -> bool:
    """Return whether mail of the account comes by HTTP: then its domains need no MX record here."""
    return (
        tx.one(
            "select 1 as found from connections where account_id = :account_id and kind = 'http' limit 1",
            account_id=account_id,
        )
        is not None
    )


def connect_inboxes(tx: Tx, connection: Connection) -> None:
    """Give the inbox the mailbox's address; its tagged addresses become those of other inboxes."""
    way_out = connection.id if connection.has_smtp else None
    inboxes.connect(tx, str(connection.inbox_id), connection.address, way_out)
    for address, inbox_id in connection.tagged.items():
        inboxes.connect(tx, inbox_id, address, way_out)


def remove(tx: Tx, connection: Connection) -> None:
    for inbox_id in filter(None, (connection.inbox_id, *connection.tagged.values())):
        if connection.kind == IMAP:
            inboxes.connect(tx, inbox_id, None, None)
    for table in ("taken_mails", "posts"):
        tx.run(f"delete from {table} where connection_id = :id", id=connection.id)
    tx.run("delete from address_uses where owner_id = :id", id=connection.id)
    tx.run("delete from connections where id = :id", id=connection.id)


def remove_of_inbox(tx: Tx, inbox_id: str) -> None:
    for row in tx.all("select * from connections where inbox_id = :inbox_id", inbox_id=inbox_id):
        remove(tx, Connection.from_row(row))


def lock(tx: Tx, connection_id: str) -> Connection | None:
    row = tx.one(f"select * from connections where id = :id {LOCK_ROWS}", id=connection_id)
    return None if row is None else Connection.from_row(row)


def record_state(tx: Tx, connection: Connection, state: str, error: str | None) -> Connection:
    shown = None if error is None else error[:ERROR_CHARACTERS]
    tx.run(
        "update connections set state = :state, last_error = :error where id = :id",
        state=state,
        error=shown,
        id=connection.id,
    )
    return replace(connection, state=state, last_error=shown)


def record_mail(tx: Tx, connection_id: str, now: int) -> None:
    """Record a received email, which clears earlier errors."""
    tx.run(
        "update connections set state = :live, last_error = null, last_mail_at = :now where id = :id",
        live=LIVE,
        now=now,
        id=connection_id,
    )


def set_topic(tx: Tx, connection_id: str, topic: str) -> None:
    """Set the topic. From now on only its posts count."""
    connection = lock(tx, connection_id)
    if connection is not None:
        tx.run(
            "update connections set settings = :settings, state = :live, last_error = null where id = :id",
            settings=_encode({**connection.settings, "topic": topic}),
            live=LIVE,
            id=connection_id,
        )


def set_start(tx: Tx, connection: Connection, uid_validity: int, uid: int) -> Connection:
    """Store where the reading of the folder begins, the first time or after all UIDs have changed."""
    update_item(tx, "connections", connection, ("start_uid", "begins_at"))
    return set_position(tx, connection, uid_validity, uid)


def set_position(tx: Tx, connection: Connection, uid_validity: int, uid: int) -> Connection:
    """Store how far the folder has been read."""
    tx.run(
        "update connections set uid_validity = :uid_validity, last_uid = :uid where id = :id",
        uid_validity=uid_validity,
        uid=uid,
        id=connection.id,
    )
    return replace(connection, uid_validity=uid_validity, last_uid=uid)


def lease_mailboxes(tx: Tx, node: str, now: int, lease: int, is_alone: bool) -> dict[str, Connection]:
    """Takes the mailboxes that no other live node reads.

    A node that is alone takes all: the data may have been another machine's before.
    A lease is renewed only when half of it is over: for a thousand mailboxes each renewal writes a megabyte.
    """
    tx.run(
        "update connections set leased_by = :node, leased_until = :until where kind = 'imap'"
        " and (leased_until < :now or leased_by = :node and leased_until < :half"
        " or :is_alone = 1 and leased_by <> :node)",
        node=node,
        now=now,
        until=now + lease,
        half=now + lease // 2,
        is_alone=int(is_alone),
    )
    rows = tx.all("select * from connections where kind = 'imap' and leased_by = :node", node=node)
    return {row["id"]: Connection.from_row(row) for row in rows}


def find_way_out(tx: Tx, row: Row, is_from_here: bool = False) -> WayOut:
    """Return the route from a row with OF_SENDER: its mailbox, else its domain's or pod's relay.

    Never through its mailbox with an address of this server in From.
    """
    connection = find(tx, row["connection_id"]) if row["connection_id"] and not is_from_here else None
    if connection is not None and connection.has_smtp:
        if "oauth" in connection.hidden:
            return WayOut("", connection.id, needs_token=True)
        return WayOut(connection.smtp_url(), connection.id)
    return WayOut(row["of_domain"] or row["of_pod"] or "")
