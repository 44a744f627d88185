"""Who is asking: bearer keys."""

from starlette.requests import HTTPConnection

from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.errors import Unauthorized
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.resources import Resources, Tx


def bearer_token(request: HTTPConnection) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized("Send your API key as: Authorization: Bearer pr_…")
    return token.strip()


async def authenticate(resources: Resources, token: str) -> Caller:
    caller, _ = await identify(resources, token, None)
    return caller


async def identify(resources: Resources, token: str, inbox_id: str | None) -> tuple[Caller, Inbox | None]:
    """Who asks, and the inbox he asks for, if it is one of his account."""
    found = resources.db.look_up(_find, token, inbox_id, resources.now())
    caller, inbox = found if isinstance(found, tuple) else await found
    if caller is None:
        raise Unauthorized("This API key is not valid. It may have been revoked.")
    return caller, inbox


def _find(tx: Tx, token: str, inbox_id: str | None, now: int) -> tuple[Caller | None, Inbox | None]:
    """By one statement: the same work for every inbox, also for those of others."""
    if inbox_id is None:
        return keys.find_caller(tx, token, now), None
    return inboxes.find_with_caller(tx, token, inbox_id, now)
