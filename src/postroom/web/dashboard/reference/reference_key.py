"""The key with which a signed-in person tries the API on its reference."""

from datetime import UTC, datetime

from starlette.responses import JSONResponse, Response

from postroom.accounts import keys
from postroom.accounts.scope import Scope
from postroom.clock import HOUR, SECOND
from postroom.operations.keys import NewScopedKey, create_api_key, delete_api_key
from postroom.web.call import Tx
from postroom.web.dashboard.display.rendering import HEADERS
from postroom.web.dashboard.page_context import PageContext

NAME = "API reference"
LIFETIME = HOUR
KEYS_READ = 100  # an account has no more


async def create_key(context: PageContext) -> Response:
    """Return a key that may do what the person may, for an hour. Expired ones from here are revoked first."""
    now = context.call.now()
    for key_id in await context.read(list_expired, context.call.scope.account_id, now):
        await context.run(delete_api_key, key_id=key_id)
    expires_at = datetime.fromtimestamp((now + LIFETIME) / SECOND, UTC)
    made = await context.ask(create_api_key, body=NewScopedKey(name=NAME, expires_at=expires_at))
    return JSONResponse({"token": made["token"], "expiresAt": made["expiresAt"]}, headers=HEADERS)


def list_expired(tx: Tx, account_id: str, now: int) -> list[str]:
    found, _ = keys.list_of(tx, Scope(account_id), KEYS_READ, 0)
    return [
        key.id for key in found if key.name == NAME and key.expires_at is not None and key.expires_at <= now
    ]
