"""Runs an operation of the route table, for a request or a page, in one transaction."""

from collections.abc import Awaitable, Callable
from functools import partial
from operator import attrgetter
from typing import Any

from msgspec import structs
from starlette.requests import Request

from postroom.accounts import pods
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import require_any, require_word
from postroom.accounts.scope import Scope
from postroom.errors import ApiError, Forbidden
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.operations.client_ids import AlreadyThere
from postroom.resources import Tx
from postroom.web.answers import to_response
from postroom.web.call import Call
from postroom.web.routing import ACCOUNT, POD, Route
from postroom.web.scope_filters import required

Arguments = dict[str, Any]  # of an operation, by their names

SHALLOW_OFFSET = 1000
LONG_SECONDS = 10.0
BODY = "postroom.body"  # where a request keeps its parsed body


async def perform(route: Route, call: Call, arguments: Arguments) -> Any:
    """Run an operation. One that finds what it would create answers with that, and 200."""
    try:
        return await _run(route, call, arguments)
    except AlreadyThere as there:
        return to_response(structs.replace(route, status=200), there.item)


async def _run(route: Route, call: Call, arguments: Arguments) -> Any:
    require_permitted(call.caller, route)
    if not route.is_verb:
        given = {name: arguments[name] for name in route.wanted if name in arguments}
        return await route.operation(call, **given)
    if route.prepare is not None:
        arguments |= await route.prepare(call.resources, arguments["body"])
    result = await _run_in_transaction(route, call, arguments)
    if route.after is None:
        return result
    await route.after(call.resources, result)
    return None


def require_permitted(caller: Caller, route: Route) -> None:
    """Require permission.

    Some operations are only for keys of the whole account, some also for keys of a pod.
    """
    if route.scope == ACCOUNT and not caller.scope.is_account:
        raise Forbidden("This needs a key of the whole account.")
    if route.scope == POD and caller.inbox_id is not None:
        raise Forbidden("This key is for one inbox. Use a key for its pod or for the account.")
    if caller.words is None:
        require_any(caller.permissions, route.permissions)
    else:
        require_word(caller.words, route.word)


def _run_in_transaction(route: Route, call: Call, arguments: Arguments) -> Awaitable[Any]:
    """Run in a transaction.

    Skipped rows are read too: deep in a list that takes long, and runs as a long read.
    """
    db = call.resources.db
    work = partial(run_verb, route=route, call=call, arguments=arguments)
    if route.method != "GET":
        return db.write(work)
    query = arguments.get("query")
    if route.seconds or getattr(query, "offset", 0) > SHALLOW_OFFSET or getattr(query, "is_long", False):
        return db.read_long(work, route.seconds or LONG_SECONDS)
    return db.read(work)


def run_verb(tx: Tx, route: Route, call: Call, arguments: Arguments) -> Any:
    given = {name: _find_argument(tx, name, route, call, arguments) for name in route.wanted}
    return route.operation(tx, **given)


def _find_argument(tx: Tx, name: str, route: Route, call: Call, arguments: Arguments) -> Any:
    if name in arguments:
        return arguments[name]
    return _OF_CALL[name](call) if name in _OF_CALL else _FOUND[name](tx, route, call, arguments)


async def try_out(route: Route, call: Call, arguments: Arguments) -> Any:
    """Return what a verb would answer, in a transaction that is rolled back."""
    try:
        await call.resources.db.write(_try_verb, route, call, dict(arguments))
    except _Tried as tried:
        return tried.result


class _Tried(Exception):
    """Raised to roll the transaction back; carries the result."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


def _try_verb(tx: Tx, route: Route, call: Call, arguments: Arguments) -> None:
    raise _Tried(run_verb(tx, route, call, arguments))


def _find_inbox(tx: Tx, route: Route, call: Call, arguments: Arguments) -> Inbox:
    """Return the inbox; for reads, the one that was read together with the key."""
    inbox_id = arguments["inbox_id"]
    return call.get_inbox(tx, inbox_id) if route.method == "GET" else inboxes.get(tx, call.scope, inbox_id)


def _find_scope_filter(tx: Tx, route: Route, call: Call, arguments: Arguments) -> Scope:
    """Return the inbox or pod named by the path, or by the query."""
    if "inbox_id" in arguments:
        return inboxes.get(tx, call.scope, arguments["inbox_id"]).scope
    if "pod_id" in arguments:
        return Scope(call.account_id, pods.get(tx, call.scope, arguments["pod_id"]).id)
    query = arguments["query"]
    return required(tx, call.scope, query.inbox_id, query.pod_id)


def _find_place(tx: Tx, route: Route, call: Call, arguments: Arguments) -> Scope:
    """Return the inbox or pod named by the path, else the caller's whole scope."""
    is_named = "inbox_id" in arguments or "pod_id" in arguments
    return _find_scope_filter(tx, route, call, arguments) if is_named else call.scope


# Arguments that a verb gets by their name, besides the values of the path, the query and the body.
_OF_CALL: dict[str, Callable[[Call], Any]] = {
    "caller": attrgetter("decider"),
    "now": Call.now,
    "config": attrgetter("resources.config"),
    "links": Call.links,
}
_FOUND: dict[str, Callable[[Tx, Route, Call, Arguments], Any]] = {
    "inbox": _find_inbox,
    "within": _find_scope_filter,
    "place": _find_place,
}


async def read_once(route: Route, request: Request) -> Any:
    """Read the body once: a request that runs twice has the same body, or the same error."""
    if BODY not in request.scope:
        try:
            request.scope[BODY] = await route.read(request, route.body)
        except ApiError as error:
            request.scope[BODY] = error
    if isinstance(request.scope[BODY], ApiError):
        raise request.scope[BODY]
    return request.scope[BODY]
