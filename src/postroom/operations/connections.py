"""Operations on connections: external mailboxes, and mail services that post here."""

from datetime import date
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import audit, pods
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.config import Config
from postroom.errors import BadRequest, ConnectionLimitReached
from postroom.external_mailboxes import address_uses, connections
from postroom.external_mailboxes.connections import Connection
from postroom.external_mailboxes.providers import signing_keys
from postroom.fields import PageQuery, PodId, Timestamp, show_item
from postroom.limits import ADDRESS_CHARACTERS
from postroom.mailbox import inboxes
from postroom.storage.database import Tx
from postroom_mail.mime.address import normalize, validate

Kind = Literal["imap", "http"]
Provider = Literal["raw", "mailgun", "sendgrid", "postmark", "ses", "cloudflare", "resend"]
State = Literal["connecting", "live", "failing"]
Secret = Annotated[str, Meta(min_length=1, max_length=8000)]
SigningKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=8000,
        description="Verifies each post. Without it the secret in the URL is enough.",
    ),
]
ApiUrl = Annotated[str, Meta(max_length=500, description="Another URL of Resend's API.")]
Host = Annotated[str, Meta(min_length=1, max_length=253, pattern="^[A-Za-z0-9.:-]+$")]
Port = Annotated[int, Meta(ge=1, le=65535)]
Name = Annotated[str, Meta(min_length=1, max_length=ADDRESS_CHARACTERS, pattern="^[^\\x00-\\x1f\\x7f]+$")]
After = Annotated[
    str,
    Meta(
        max_length=300,
        pattern="^(leave|seen|move:[^\\x00-\\x1f\\x7f]+)$",
        description="What happens to an email there: leave (the default), seen, or move:FOLDER.",
    ),
]
Since = Annotated[
    str,
    Meta(
        pattern="^(now|[0-9]{4}-[0-9]{2}-[0-9]{2})$",
        description="now (the default), or a date to begin with.",
    ),
]
PlusAddresses = Annotated[
    dict[Annotated[str, Meta(pattern="^[a-z0-9._-]{1,64}$")], str],
    Meta(
        max_length=100, description="Further inboxes: email to username+TAG@ goes to the inbox of that tag."
    ),
]
TargetInbox = Annotated[str, Meta(description="The inbox for all its email; otherwise the addressed one.")]


class OAuthGrant(Struct, rename="camel", frozen=True):
    """Instead of a password: the refresh token that a person allowed."""

    token_url: Annotated[str, Meta(max_length=500)]
    client_id: Secret
    client_secret: Secret
    refresh_token: Secret


class SmtpServer(Struct, frozen=True):
    """Server that sends the inbox's email: 465 is TLS, other ports STARTTLS."""

    host: Host
    port: Port = 465


class NewConnection(Struct, rename="camel", frozen=True):
    kind: Kind
    host: Annotated[Host, Meta(description="Host of the IMAP server.")] | None = None
    port: Annotated[Port, Meta(description="993, the default, is TLS; others STARTTLS.")] | None = None
    username: Name | None = None
    password: Annotated[Secret, Meta(description="Usually an app password.")] | None = None
    oauth: OAuthGrant | None = None
    address: Annotated[Name, Meta(description="Of the mailbox, if the username is none.")] | None = None
    folder: Annotated[Name, Meta(description="INBOX by default.")] | None = None
    since: Since | None = None
    after: After | None = None
    smtp: SmtpServer | None = None
    plus_addresses: PlusAddresses | None = None
    provider: Annotated[Provider, Meta(description="The service that posts.")] | None = None
    inbox_id: TargetInbox | None = None
    pod_id: PodId | None = None
    signing_key: SigningKey | None = None
    api_key: (
        Annotated[Secret, Meta(description="Fetches emails from Resend, which posts only ids.")] | None
    ) = None
    api_url: ApiUrl | None = None


class ConnectionChange(Struct, rename="camel", frozen=True):
    password: Secret | UnsetType = UNSET
    oauth: OAuthGrant | UnsetType = UNSET
    folder: Name | UnsetType = UNSET
    after: After | UnsetType = UNSET
    smtp: SmtpServer | UnsetType | None = UNSET
    plus_addresses: PlusAddresses | UnsetType = UNSET
    signing_key: SigningKey | UnsetType | None = UNSET
    api_key: Secret | UnsetType = UNSET
    api_url: ApiUrl | UnsetType | None = UNSET


class ShownConnection(Struct, rename="camel", frozen=True):
    """`url` is shown once, when it was created; secrets are never shown."""

    id: str
    kind: Kind
    provider: str | None
    state: State
    last_error: str | None
    last_mail_at: Timestamp | None
    pod_id: str | None
    inbox_id: str | None
    signed: Annotated[bool, Meta(description="Whether each post must be signed.")]
    api_url: str | None
    host: str | None
    port: int | None
    username: str | None
    address: str | None
    folder: str | None
    since: str | None
    after: str | None
    smtp: SmtpServer | None
    plus_addresses: dict[str, str]
    created_at: Timestamp
    url: str | UnsetType = UNSET

    @classmethod
    def of(cls, connection: Connection, url: str | UnsetType = UNSET) -> "ShownConnection":
        settings = connection.settings
        as_they_are = ("host", "port", "username", "address", "folder", "since", "after")
        return show_item(
            cls,
            connection,
            provider=connection.provider or None,
            signed=bool(connection.hidden.get("signingKey")) or connection.provider == "ses",
            api_url=settings.get("apiUrl"),
            smtp=msgspec.convert(settings.get("smtp"), SmtpServer | None),
            plus_addresses=settings.get("plusAddresses", {}),
            url=url,
            **{name: settings.get(name) for name in as_they_are},
        )


class ConnectionPage(Struct, rename="camel", frozen=True):
    data: list[ShownConnection]
    total: int


class ConnectionTest(Struct, frozen=True):
    ok: bool
    milliseconds: int
    error: str | UnsetType = UNSET


def create_connection(
    tx: Tx, caller: Caller, body: NewConnection, config: Config, now: int
) -> ShownConnection:
    """Connect a mailbox elsewhere, or a mail service that posts here; its URL is given once"""
    if connections.count(tx, "account_id", caller.account_id) >= connections.LIMIT:
        raise ConnectionLimitReached(
            f"An account has at most {connections.LIMIT} connections. Delete one first."
        )
    require_complete(body)
    within = find_place(tx, caller.scope, body)
    token = connections.new_token() if body.kind == connections.HTTP else None
    connection = Connection(
        id=ids.new(ids.CONNECTION, now),
        account_id=caller.account_id,
        pod_id=within.pod_id,
        inbox_id=within.inbox_id,
        kind=body.kind,
        provider=body.provider or "",
        state=connections.CONNECTING,
        last_error=None,
        last_mail_at=None,
        uid_validity=None,
        last_uid=0,
        created_at=now,
        settings=settings_of(body),
        hidden=given(
            signingKey=body.signing_key,
            apiKey=body.api_key,
            password=body.password,
            oauth=None if body.oauth is None else msgspec.to_builtins(body.oauth),
        ),
    )
    require_inboxes(tx, caller.scope, connection)
    address_uses.require_external(tx, connection, config.domain)
    address_uses.require_no_person(tx, connection.pulled, "address")
    connections.add(tx, connection, token)
    address_uses.record(tx, connection.account_id, connection.id, connection.pulled)
    record(tx, caller, "connection.created", connection, now)
    tx.ring(connections.BELL)
    if token is None:
        return ShownConnection.of(connection)
    return ShownConnection.of(connection, post_url(config.base_url, connection.provider, token))


def settings_of(body: NewConnection) -> dict[str, Any]:
    if body.kind == connections.HTTP:
        return given(apiUrl=body.api_url)
    return given(
        host=body.host,
        port=body.port or 993,
        username=body.username,
        address=mailbox_address(body),
        folder=body.folder or "INBOX",
        since=body.since or "now",
        after=body.after or "leave",
        smtp=None if body.smtp is None else msgspec.to_builtins(body.smtp),
        plusAddresses=body.plus_addresses,
    )


def mailbox_address(body: NewConnection) -> str:
    written = body.address or body.username or ""
    try:
        return normalize(validate(written))
    except ValueError:
        raise BadRequest(
            "The username is not an address. Give the mailbox's address as address.", field="address"
        ) from None


def require_inboxes(tx: Tx, scope: Scope, connection: Connection) -> None:
    for inbox_id in connection.tagged.values():
        if inboxes.narrow(tx, scope, inbox_id, None) is None:
            raise BadRequest(
                "plusAddresses names an inbox that does not exist. GET /v1/inboxes lists them.",
                field="plusAddresses",
            )


def given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def post_url(base_url: str, provider: str, token: str) -> str:
    """Return the URL to post to. Mailgun posts the raw email only to a URL that ends in `mime`."""
    return f"{base_url}{connections.POSTS_PATH}{token}{'/mime' if provider == 'mailgun' else ''}"


def require_complete(body: NewConnection) -> None:
    if body.kind == connections.IMAP:
        for field, value in (("host", body.host), ("username", body.username), ("inboxId", body.inbox_id)):
            if value is None:
                raise BadRequest(f"{field} is missing.", field=field)
        if (body.password is None) == (body.oauth is None):
            raise BadRequest("Give a password, or oauth instead.", field="password")
        require_date(body.since or "now")
        return
    if body.provider is None:
        raise BadRequest(f"provider is missing. Use {' or '.join(get_args(Provider))}.", field="provider")
    require_usable_key(body.provider, body.signing_key)
    if body.provider == "resend" and body.api_key is None:
        raise BadRequest(
            "apiKey is missing: Resend posts only the id of an email, which is then fetched.", field="apiKey"
        )


def require_date(since: str) -> None:
    try:
        if since != "now":
            date.fromisoformat(since)
    except ValueError:
        raise BadRequest(f"since is not a date: {since!r}.", field="since") from None


def require_usable_key(provider: str, key: str | None) -> None:
    if key is not None and not signing_keys.is_usable(provider, key):
        raise BadRequest(f"signingKey must be {signing_keys.WANTED[provider]}.", field="signingKey")


def find_place(tx: Tx, scope: Scope, body: NewConnection) -> Scope:
    """Return the scope that its email goes to: an inbox, a pod, or that of the key."""
    if body.inbox_id is None:
        return Scope(scope.account_id, pods.choose(tx, scope, body.pod_id) if body.pod_id else scope.pod_id)
    found = inboxes.narrow(tx, scope, body.inbox_id, body.pod_id)
    if found is None:
        raise BadRequest("inboxId is not an inbox of this key. GET /v1/inboxes lists them.", field="inboxId")
    return found


def list_connections(tx: Tx, caller: Caller, query: PageQuery) -> ConnectionPage:
    """List connections, newest first"""
    found, total = connections.list_within(tx, caller.scope, query.limit, query.offset)
    return ConnectionPage([ShownConnection.of(each) for each in found], total)


def get_connection(tx: Tx, caller: Caller, connection_id: str) -> ShownConnection:
    """Get a connection and its state"""
    return ShownConnection.of(connections.get(tx, caller.scope, connection_id))


def change_connection(
    tx: Tx, caller: Caller, connection_id: str, body: ConnectionChange, config: Config, now: int
) -> ShownConnection:
    """Change a connection; it is tried again"""
    before = connections.get(tx, caller.scope, connection_id)
    if isinstance(body.signing_key, str):
        require_usable_key(before.provider, body.signing_key)
    changed = replace(
        before,
        settings=merged(
            before.settings,
            apiUrl=body.api_url,
            folder=body.folder,
            after=body.after,
            smtp=plain(body.smtp),
            plusAddresses=body.plus_addresses,
        ),
        hidden=merged(
            before.hidden,
            signingKey=body.signing_key,
            apiKey=body.api_key,
            password=body.password,
            oauth=plain(body.oauth),
        ),
    )
    if (changed.settings, changed.hidden) != (before.settings, before.hidden):  # else nobody starts it again
        changed = replace(changed, state=connections.CONNECTING, last_error=None)
    require_inboxes(tx, caller.scope, changed)
    address_uses.require_external(tx, changed, config.domain)
    connections.put(tx, changed)
    if changed.kind == connections.IMAP and changed.is_proven:
        for inbox_id in before.tagged.values():
            inboxes.connect(tx, inbox_id, None, None)
        connections.connect_inboxes(tx, changed)
    record(tx, caller, "connection.changed", changed, now)
    tx.ring(connections.BELL)
    return ShownConnection.of(changed)


def plain(value: Struct | UnsetType | None) -> object:
    return msgspec.to_builtins(value) if isinstance(value, Struct) else value


def merged(stored: dict[str, Any], **changes: object) -> dict[str, Any]:
    """Return the settings with the change: UNSET keeps a value, None removes it."""
    named = {name: value for name, value in changes.items() if value is not UNSET}
    return {name: value for name, value in {**stored, **named}.items() if value is not None}


def delete_connection(tx: Tx, caller: Caller, connection_id: str, now: int) -> None:
    """Delete a connection; email received through it stays"""
    connection = connections.get(tx, caller.scope, connection_id)
    connections.remove(tx, connection)
    record(tx, caller, "connection.deleted", connection, now)
    tx.ring(connections.BELL)


def record(tx: Tx, caller: Caller, action: str, connection: Connection, now: int) -> None:
    after = ShownConnection.of(connection)
    audit.record_by(tx, caller, action, connection.id, now, within=connection.scope, after=after)
