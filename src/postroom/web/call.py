"""One authenticated request, as a handler sees it."""

from dataclasses import dataclass

from starlette.requests import Request

from postroom.accounts.keys import Caller
from postroom.errors import Forbidden, NotFound
from postroom.mailbox import attachments, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.outward.courier import WebhookCourier
from postroom.resources import Resources, Tx

__all__ = ["Call", "Tx", "require_account_key", "require_owned", "require_reach"]


@dataclass(frozen=True, slots=True)
class Call:
    resources: Resources
    caller: Caller
    request: Request
    webhook_courier: WebhookCourier
    inbox: Inbox | None  # that the path names, where a body comes with it

    @property
    def account_id(self) -> str:
        return self.caller.account_id

    @property
    def scope(self) -> str | None:
        """The one inbox that the key reaches; None is all of the account."""
        return self.caller.inbox_id

    def now(self) -> int:
        return self.resources.now()

    async def is_over(self) -> bool:
        """Nobody waits for the answer any more, or the server stops."""
        return self.resources.stopping.is_set() or await self.request.is_disconnected()

    def links(self, tx: Tx) -> Links:
        return Links(self.resources.config.base_url, attachments.link_secret(tx), self.now())


def require_account_key(caller: Caller) -> None:
    if caller.inbox_id is not None:
        raise Forbidden("This key is for one inbox. Use a key of the account for this.")


def require_reach(caller: Caller, inbox_id: str) -> None:
    """An inbox that a key cannot reach looks like one that does not exist."""
    if caller.inbox_id not in (None, inbox_id):
        raise NotFound("No such inbox.")


async def require_owned(call: Call, values: dict[str, str]) -> None:
    """The inbox or thread that a path names belongs to the caller."""
    if "inbox_id" in values:
        require_reach(call.caller, values["inbox_id"])
        if call.inbox is None:
            raise NotFound("No such inbox.")
    if "thread_id" in values:
        await call.resources.db.read(threads.get, call.account_id, call.scope, values["thread_id"])
