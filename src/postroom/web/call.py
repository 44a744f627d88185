"""One authenticated request, as a handler sees it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request

from postroom import traces
from postroom.accounts import domains, keys, pods
from postroom.accounts.keys import Caller
from postroom.accounts.people import users
from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope
from postroom.errors import no_such
from postroom.external_mailboxes import connections
from postroom.fields import ScopeFilter
from postroom.mailbox import drafts, inbox_calendars, inboxes, jobs, messages, templates, threads
from postroom.mailbox.calendars import calendar_events
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.operations import rules, webhook_list
from postroom.outward.courier import WebhookCourier
from postroom.resources import Resources, Tx
from postroom.web.requests.authentication import client_address
from postroom.web.requests.request_body import header
from postroom.web.scope_filters import required

__all__ = ["Call", "RequestOrigin", "Tx", "calls_from", "client_address", "require_owned"]


REPLAYED = "postroom.replayed"  # in the scope of a request that was carried out before


class RequestOrigin(Struct, frozen=True):
    """Where a request came from. Known before its transaction, which runs in another thread."""

    address: str = ""
    user_agent: str = ""
    asked_at: int | None = None  # when a person clicked, for what is done later
    traceparent: str = ""  # of the trace that the request belongs to, as given

    @classmethod
    def of(cls, request: Request) -> "RequestOrigin":
        """Return the origin of a request, also for calls made inside for a request to /mcp."""
        outer, traced = _OUTER.get(), header(request, b"traceparent")[: traces.LONGEST]
        if outer is not None:
            return replace(outer, traceparent=traced or outer.traceparent)
        return cls(client_address(request), header(request, b"user-agent"), traceparent=traced)


# Of a request to /mcp, for the calls made inside for it.
_OUTER: ContextVar[RequestOrigin | None] = ContextVar("origin", default=None)


@contextmanager
def calls_from(origin: RequestOrigin) -> Iterator[None]:
    token = _OUTER.set(origin)
    try:
        yield
    finally:
        _OUTER.reset(token)


class Call(Struct, frozen=True):
    resources: Resources
    caller: Caller
    request: Request
    webhook_courier: WebhookCourier
    inbox: Inbox | None  # named by the path, if it is one of the account
    is_remembered: bool = False  # caller and inbox are from the cache
    origin: RequestOrigin = RequestOrigin()

    @property
    def account_id(self) -> str:
        return self.caller.account_id

    @property
    def scope(self) -> Scope:
        return self.caller.scope

    @property
    def decider(self) -> Caller:
        """The caller and where the request came from, for the audit log."""
        origin = self.origin
        return replace(
            self.caller,
            address=origin.address,
            user_agent=origin.user_agent,
            asked_at=origin.asked_at,
            trace_id=(traces.read(origin.traceparent) or ("", ""))[0],
        )

    def mark_replay(self) -> None:
        """Mark the answer as a replay: the request was carried out before."""
        self.request.scope[REPLAYED] = True

    def now(self) -> int:
        return self.resources.now()

    def get_inbox(self, tx: Tx, inbox_id: str) -> Inbox:
        """Return the inbox, for reads only: the inbox of the path was read together with the key."""
        if self.inbox is None or self.inbox.id != inbox_id or not inboxes.is_within(self.inbox, self.scope):
            return inboxes.get(tx, self.scope, inbox_id)
        return self.inbox

    @property
    def address(self) -> str:
        return self.origin.address

    async def is_over(self) -> bool:
        """Return whether the client has disconnected, or the server stops."""
        return self.resources.stopping.is_set() or await self.request.is_disconnected()

    def links(self) -> Links:
        return Links(self.resources.config.base_url, self.now())


def find_key(tx: Tx, scope: Scope, key_id: str) -> object:
    return keys.get(tx, scope.account_id, key_id)


def find_webhook(tx: Tx, scope: Scope, webhook_id: str) -> object:
    return webhook_list.get_of(tx, scope, webhook_id)


def find_rule(tx: Tx, scope: Scope, rule_id: str) -> object:
    """Return a rule for incoming email, or whether the account has such a rule of a policy."""
    return policy.has_rule(tx, scope.account_id, rule_id) or rules.get_of(tx, scope, rule_id)


def find_user(tx: Tx, scope: Scope, user_id: str) -> object:
    return users.get(tx, scope.account_id, user_id)


# Functions that find what a path names, in the caller's scope; else NotFound.
FIND_OWNED: dict[str, Callable[[Tx, Scope, str], object]] = {
    "draft_id": drafts.get,
    "template_id": templates.get,
    "pod_id": pods.get,
    "thread_id": threads.get,
    "calendar_id": inbox_calendars.get,
    "calendar_event_id": calendar_events.get,
    "message_id": messages.get,
    "domain_id": domains.require_within,
    "connection_id": connections.get,
    "key_id": find_key,
    "webhook_id": find_webhook,
    "user_id": find_user,
    "job_id": jobs.get,
    "rule_id": find_rule,
}


async def require_owned(call: Call, values: dict[str, str], query: object = None) -> None:
    """Raise NotFound unless what path and query name belongs to the caller."""
    if isinstance(query, ScopeFilter):
        await call.resources.db.read(required, call.scope, query.inbox_id, query.pod_id)
    if "inbox_id" in values and (call.inbox is None or not inboxes.is_within(call.inbox, call.scope)):
        raise no_such("inbox")
    for name in values.keys() & FIND_OWNED:
        await call.resources.db.read(FIND_OWNED[name], call.scope, values[name])
