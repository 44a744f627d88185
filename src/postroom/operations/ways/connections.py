"""Operations on connections: mail services that post here."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import audit, pods
from postroom.accounts.keys import Caller
from postroom.accounts.reach import Reach
from postroom.clock import to_iso
from postroom.config import Config
from postroom.connections import connections
from postroom.connections.connections import Connection
from postroom.errors import BadRequest, ConnectionLimitReached
from postroom.fields import PageQuery, PodId, Timestamp, iso
from postroom.mail.posts import signing_keys
from postroom.mailbox import inboxes
from postroom.storage.database import Tx

Kind = Literal["http"]
Provider = Literal["raw", "mailgun", "sendgrid", "postmark", "ses", "cloudflare", "resend"]
State = Literal["connecting", "live", "failing"]
Secret = Annotated[str, Meta(min_length=1, max_length=8000)]
SigningKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=8000,
        description="Proves each post. Without it the secret in the URL suffices.",
    ),
]
ApiUrl = Annotated[str, Meta(max_length=500, description="Another address of Resend's interface.")]
TargetInbox = Annotated[str, Meta(description="Where all its mail goes; else to whom it is addressed.")]


class NewConnection(Struct, rename="camel", frozen=True):
    kind: Kind
    provider: Annotated[Provider, Meta(description="The service that posts.")] | None = None
    inbox_id: TargetInbox | None = None
    pod_id: PodId | None = None
    signing_key: SigningKey | None = None
    api_key: Annotated[Secret, Meta(description="Fetches mails of Resend, which posts ids alone.")] | None = (
        None
    )
    api_url: ApiUrl | None = None


class ConnectionChange(Struct, rename="camel", frozen=True):
    signing_key: SigningKey | UnsetType | None = UNSET
    api_key: Secret | UnsetType = UNSET
    api_url: ApiUrl | UnsetType | None = UNSET


class ShownConnection(Struct, rename="camel", frozen=True):
    """`url` is there once, when it was made; secrets are never shown."""

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
    created_at: Timestamp
    url: str | UnsetType = UNSET

    @classmethod
    def of(cls, connection: Connection, url: str | UnsetType = UNSET) -> "ShownConnection":
        return cls(
            id=connection.id,
            kind=connection.kind,  # type: ignore[arg-type]
            provider=connection.provider or None,
            state=connection.state,  # type: ignore[arg-type]
            last_error=connection.last_error,
            last_mail_at=iso(connection.last_mail_at),
            pod_id=connection.pod_id,
            inbox_id=connection.inbox_id,
            signed=bool(connection.hidden.get("signingKey")) or connection.provider == "ses",
            api_url=connection.settings.get("apiUrl"),
            created_at=to_iso(connection.created_at),
            url=url,
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
    """Connect a mail service that posts mail here; the URL to post to is given once"""
    if connections.count(tx, "account_id", caller.account_id) >= connections.LIMIT:
        raise ConnectionLimitReached(
            f"An account has at most {connections.LIMIT} connections. Delete one first."
        )
    require_complete(body)
    within = find_place(tx, caller.reach, body)
    token = connections.new_token()
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
        settings=given(apiUrl=body.api_url),
        hidden=given(signingKey=body.signing_key, apiKey=body.api_key),
    )
    connections.add(tx, connection, token)
    record(tx, caller, "connection.created", connection, now)
    return ShownConnection.of(connection, post_url(config.base_url, connection.provider, token))


def given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def post_url(base_url: str, provider: str, token: str) -> str:
    """Mailgun posts a mail as it is only to a URL that ends in `mime`."""
    return f"{base_url}{connections.POSTS_PATH}{token}{'/mime' if provider == 'mailgun' else ''}"


def require_complete(body: NewConnection) -> None:
    if body.provider is None:
        raise BadRequest("provider is missing: who posts?", field="provider")
    require_usable_key(body.provider, body.signing_key)
    if body.provider == "resend" and body.api_key is None:
        raise BadRequest(
            "apiKey is missing: Resend posts the id of a mail, and is asked for it.", field="apiKey"
        )


def require_usable_key(provider: str, key: str | None) -> None:
    if key is not None and not signing_keys.is_usable(provider, key):
        raise BadRequest(f"signingKey must be {signing_keys.WANTED[provider]}.", field="signingKey")


def find_place(tx: Tx, reach: Reach, body: NewConnection) -> Reach:
    """The inbox or the pod that its mail is for; without both, all that the key reaches."""
    if body.inbox_id is None:
        return Reach(reach.account_id, pods.choose(tx, reach, body.pod_id) if body.pod_id else reach.pod_id)
    found = inboxes.narrow(tx, reach, body.inbox_id, body.pod_id)
    if found is None:
        raise BadRequest("No such inbox.", field="inboxId")
    return found


def list_connections(tx: Tx, caller: Caller, query: PageQuery) -> ConnectionPage:
    """List connections, newest first"""
    found, total = connections.list_within(tx, caller.reach, query.limit, query.offset)
    return ConnectionPage([ShownConnection.of(each) for each in found], total)


def get_connection(tx: Tx, caller: Caller, connection_id: str) -> ShownConnection:
    """Get a connection and how it is"""
    return ShownConnection.of(connections.get(tx, caller.reach, connection_id))


def change_connection(
    tx: Tx, caller: Caller, connection_id: str, body: ConnectionChange, now: int
) -> ShownConnection:
    """Change a connection; it is tried anew"""
    before = connections.get(tx, caller.reach, connection_id)
    if isinstance(body.signing_key, str):
        require_usable_key(before.provider, body.signing_key)
    changed = replace(
        before,
        settings=merged(before.settings, apiUrl=body.api_url),
        hidden=merged(before.hidden, signingKey=body.signing_key, apiKey=body.api_key),
        state=connections.CONNECTING,
        last_error=None,
    )
    connections.put(tx, changed)
    record(tx, caller, "connection.changed", changed, now)
    tx.ring(connections.BELL)
    return ShownConnection.of(changed)


def merged(stored: dict[str, Any], **changes: object) -> dict[str, Any]:
    """What is not named stays, None removes."""
    named = {name: value for name, value in changes.items() if value is not UNSET}
    return {name: value for name, value in {**stored, **named}.items() if value is not None}


def delete_connection(tx: Tx, caller: Caller, connection_id: str, now: int) -> None:
    """Delete a connection; mail that came by it stays"""
    connection = connections.get(tx, caller.reach, connection_id)
    connections.remove(tx, connection)
    record(tx, caller, "connection.deleted", connection, now)
    tx.ring(connections.BELL)


def record(tx: Tx, caller: Caller, action: str, connection: Connection, now: int) -> None:
    after = ShownConnection.of(connection)
    audit.record_by(tx, caller, action, connection.id, now, within=connection.reach, after=after)
