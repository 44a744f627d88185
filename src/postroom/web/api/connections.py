"""Resolve the targets of connections, and test them: what no transaction can do."""

import time
from typing import Any, cast

from msgspec import Struct

from postroom.config import allows_private_targets
from postroom.errors import InvalidTarget
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.connections import Connection
from postroom.external_mailboxes.fetching import Fetcher
from postroom.external_mailboxes.imap_wire import ImapError
from postroom.external_mailboxes.mailbox_access import OAuthTokens, sign_in
from postroom.net import allowed_target, relay
from postroom.operations.connections import ConnectionChange, ConnectionTest, NewConnection
from postroom.operations.domains import DomainChange
from postroom.operations.pods import NewPod, PodChange
from postroom.resources import Resources
from postroom.web.call import Call
from postroom_mail.authentication.lookup import DnsTemporary

NOTHING_YET = (
    "Nothing was posted to the URL yet. Set it at the service and send an email to one of your inboxes."
)


async def require_allowed_targets(
    resources: Resources, body: NewConnection | ConnectionChange
) -> dict[str, Any]:
    """Refuse targets that can never be used. A name that cannot be resolved now is checked at each use."""
    asked = {"apiUrl": body.api_url}
    if isinstance(body.oauth, Struct):
        asked["oauth"] = body.oauth.token_url
    if isinstance(body, NewConnection) and body.host:
        asked["host"] = f"https://{body.host}/"
    if isinstance(body.smtp, Struct):
        asked["smtp"] = f"https://{body.smtp.host}/"
    for field, url in asked.items():
        if isinstance(url, str):
            await require_target(resources, url, field)
    return {}


async def require_allowed_relays(
    resources: Resources, body: NewPod | PodChange | DomainChange
) -> dict[str, Any]:
    """Refuse relays that can never be used, without DNS: names are resolved at each delivery."""
    outbound = relay.require_relays(body.outbound) if isinstance(body.outbound, str) else None
    for way in relay.parse_ways(outbound) if outbound else ():
        assert way is not None  # `mx` was refused
        host = f"[{way.host}]" if ":" in way.host else way.host
        try:
            allowed_target.check_url(f"https://{host}/", allows_private_targets(resources.config))
        except allowed_target.ForbiddenTarget as error:
            raise InvalidTarget(f"outbound cannot be used: {error.reason}.", field="outbound") from None
    return {}


async def require_target(resources: Resources, url: str, field: str) -> None:
    try:
        await allowed_target.resolve_target(resources.resolver, url, allows_private_targets(resources.config))
    except DnsTemporary:
        return
    except allowed_target.ForbiddenTarget as error:
        raise InvalidTarget(f"{field} cannot be used: {error.reason}.", field=field) from None


async def test_connection(call: Call, connection_id: str) -> ConnectionTest:
    """Try a connection now"""
    connection = await call.resources.db.read(connections.get, call.scope, connection_id)
    if connection.kind == connections.IMAP:
        return await try_mailbox(call, connection)
    if connection.last_error is not None:
        return ConnectionTest(ok=False, milliseconds=0, error=connection.last_error)
    if connection.state == connections.CONNECTING:
        return ConnectionTest(ok=False, milliseconds=0, error=NOTHING_YET)
    return ConnectionTest(ok=True, milliseconds=0)


async def try_mailbox(call: Call, connection: Connection) -> ConnectionTest:
    """Sign in and open the folder, on a new connection."""
    started = time.monotonic()
    tokens = OAuthTokens(call.resources, cast(Fetcher, call.webhook_courier))
    try:
        client = await sign_in(call.resources, tokens, connection)
        try:
            await client.select(connection.settings.get("folder", "INBOX"), is_changed=False)
        finally:
            await client.log_out()
    except ImapError as error:
        return ConnectionTest(ok=False, milliseconds=since(started), error=str(error))
    return ConnectionTest(ok=True, milliseconds=since(started))


def since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
