"""Answers to clients: results as JSON, errors in the format of the interface used."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from postroom.errors import ApiError
from postroom.mailbox.inboxes import Outdated
from postroom.web.agentmail import errors as agentmail_errors
from postroom.web.agentmail.names import PREFIX
from postroom.web.call import REPLAYED, Call
from postroom.web.requests.page_cache import PageCache
from postroom.web.routing import Route


def is_of_agentmail(request: Request) -> bool:
    return bool(request.scope["path"].startswith(PREFIX))


def to_error_response(request: Request, error: ApiError, challenge: str = "Bearer") -> Response:
    respond = agentmail_errors.error_response if is_of_agentmail(request) else error_response
    return respond(error, challenge)


def with_replay(request: Request, response: Response) -> Response:
    if REPLAYED in request.scope:
        response.headers["Idempotent-Replayed"] = "true"
    return response


def to_response(route: Route, answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    if answer is None:
        return Response(status_code=route.status)
    content = bytes(answer) if isinstance(answer, Raw) else msgspec.json.encode(answer)
    return Response(content, route.status, media_type="application/json")


async def answer_call(
    pages: PageCache, route: Route, call: Call, make: Callable[[], Awaitable[Any]]
) -> Response:
    """Return what `make` answers; for a kept route, what it last answered if nothing was written since."""
    if not route.is_kept:
        return with_replay(call.request, to_response(route, await make()))
    version, now, scope = call.resources.db.version(), call.now(), call.request.scope
    key = (call.caller, scope["path"], scope["query_string"])
    kept = pages.find(key, version, now)
    if kept is not None:
        return Response(kept, route.status, media_type="application/json")
    response = to_response(route, await make())
    pages.put(key, version, now, bytes(response.body))
    return response


def error_response(error: ApiError, challenge: str = "Bearer") -> Response:
    headers = agentmail_errors.headers_of(error, challenge)
    return Response(
        msgspec.json.encode(error.to_json()), error.status, headers, media_type="application/json"
    )


def is_browser(request: Request) -> bool:
    return request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


def is_fault(error: ApiError | Outdated) -> bool:
    """Return whether the error is a fault of the server.

    A database that did not answer is not asked again.
    """
    return isinstance(error, ApiError) and error.status >= 500
