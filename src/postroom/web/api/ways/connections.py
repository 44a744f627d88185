"""What connections need beside a transaction: looking their targets up, and trying them."""

from typing import Any

from postroom.config import allows_private_targets
from postroom.connections import connections
from postroom.errors import InvalidTarget
from postroom.mail.proof.lookup import DnsTemporary
from postroom.net import target
from postroom.operations.ways.connections import ConnectionChange, ConnectionTest, NewConnection
from postroom.resources import Resources
from postroom.web.call import Call

NOTHING_YET = (
    "Nothing was posted to the URL yet. Set it at the service, and send a mail to one of your inboxes."
)


async def require_allowed(resources: Resources, body: NewConnection | ConnectionChange) -> dict[str, Any]:
    """Refuses what can never be asked; a name that cannot be resolved now is judged at each use."""
    if isinstance(body.api_url, str):
        await require_target(resources, body.api_url, "apiUrl")
    return {}


async def require_target(resources: Resources, url: str, field: str) -> None:
    try:
        await target.resolve_target(resources.resolver, url, allows_private_targets(resources.config))
    except DnsTemporary:
        return
    except target.ForbiddenTarget as error:
        raise InvalidTarget(f"{field} cannot be used: {error.reason}.", field=field) from None


async def test_connection(call: Call, connection_id: str) -> ConnectionTest:
    """Try a connection now"""
    connection = await call.resources.db.read(connections.get, call.reach, connection_id)
    if connection.last_error is not None:
        return ConnectionTest(ok=False, milliseconds=0, error=connection.last_error)
    if connection.state == connections.CONNECTING:
        return ConnectionTest(ok=False, milliseconds=0, error=NOTHING_YET)
    return ConnectionTest(ok=True, milliseconds=0)
