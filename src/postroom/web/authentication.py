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
    caller, inbox = await resources.db.read(_look_up, token, inbox_id, resources.now())
    if caller is None:
        raise Unauthorized("This API key is not valid. It may have been revoked.")
    return caller, inbox


def _look_up(tx: Tx, token: str, inbox_id: str | None, now: int) -> tuple[Caller | None, Inbox | None]:
    caller = keys.find_caller(tx, token, now)
    inbox = inboxes.find(tx, inbox_id) if caller is not None and inbox_id is not None else None
    is_own = caller is not None and inbox is not None and inbox.account_id == caller.account_id
    return caller, inbox if is_own else None
