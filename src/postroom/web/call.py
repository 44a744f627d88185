"""One authenticated request, as a handler sees it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request

from postroom.accounts.keys import Caller
from postroom.accounts.reach import Reach
from postroom.errors import Forbidden, NotFound
from postroom.mailbox import attachments, drafts, inboxes, threads
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.outward.courier import WebhookCourier
from postroom.resources import Resources, Tx
from postroom.web.routing import ACCOUNT, POD

__all__ = ["Call", "Tx", "require_owned", "require_scope"]


T = TypeVar("T")

SHALLOW_OFFSET = 1000


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
    def reach(self) -> Reach:
        return self.caller.reach

    def now(self) -> int:
        return self.resources.now()

    async def read_page(self, offset: int, work: Callable[[Tx], T]) -> T:
        """Rows that are skipped are walked over: deep in a list that takes long, and is done aside."""
        db = self.resources.db
        return await (db.read(work) if offset <= SHALLOW_OFFSET else db.read_aside(work))

    async def is_over(self) -> bool:
        """Nobody waits for the answer any more, or the server stops."""
        return self.resources.stopping.is_set() or await self.request.is_disconnected()

    def links(self, tx: Tx) -> Links:
        return Links(self.resources.config.base_url, attachments.link_secret(tx), self.now())


def require_scope(caller: Caller, scope: str) -> None:
    """Some things are for keys of the whole account, some for those of a pod as well."""
    if scope == ACCOUNT and not caller.reach.is_account:
        raise Forbidden("This is for keys of the whole account.")
    if scope == POD and caller.inbox_id is not None:
        raise Forbidden("This key is for one inbox. Use a key of its pod or of the account for this.")


async def require_owned(call: Call, values: dict[str, str]) -> None:
    """The inbox or thread that a path names belongs to the caller."""
    if "inbox_id" in values and (call.inbox is None or not inboxes.is_within(call.inbox, call.reach)):
        raise NotFound("No such inbox.")
    if "draft_id" in values:
        await call.resources.db.read(drafts.get, call.reach, values["draft_id"])
    if "thread_id" in values:
        await call.resources.db.read(threads.get, call.reach, values["thread_id"])
