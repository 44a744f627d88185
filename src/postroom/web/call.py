"""One authenticated request, as a handler sees it."""

from dataclasses import dataclass

from starlette.requests import Request

from postroom import inboxes
from postroom.errors import Forbidden, NotFound
from postroom.keys import Caller
from postroom.resources import Resources


@dataclass(frozen=True, slots=True)
class Call:
    resources: Resources
    caller: Caller
    request: Request

    @property
    def account_id(self) -> str:
        return self.caller.account_id

    def now(self) -> int:
        return self.resources.now()


def require_account_key(caller: Caller) -> None:
    if caller.inbox_id is not None:
        raise Forbidden("This key is for one inbox. Use a key of the account for this.")


def require_reach(caller: Caller, inbox_id: str) -> None:
    """An inbox that a key cannot reach looks like one that does not exist."""
    if caller.inbox_id not in (None, inbox_id):
        raise NotFound("No such inbox.")


async def require_own_inbox(call: Call, inbox_id: str) -> None:
    require_reach(call.caller, inbox_id)
    await call.resources.db.read(inboxes.get, call.account_id, inbox_id)
