"""What a client is answered: results as JSON, errors in the words of the interface that it speaks."""

from typing import Any

import msgspec
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from postroom.errors import ApiError
from postroom.web.agentmail import errors as agentmail_errors
from postroom.web.agentmail.names import PREFIX
from postroom.web.routing import Route


def is_of_agentmail(request: Request) -> bool:
    return bool(request.scope["path"].startswith(PREFIX))


def to_error_response(request: Request, error: ApiError, challenge: str = "Bearer") -> Response:
    tell = agentmail_errors.error_response if is_of_agentmail(request) else error_response
    return tell(error, challenge)


def to_response(route: Route, answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    if answer is None:
        return Response(status_code=route.status)
    content = bytes(answer) if isinstance(answer, Raw) else msgspec.json.encode(answer)
    return Response(content, route.status, media_type="application/json")


def error_response(error: ApiError, challenge: str = "Bearer") -> Response:
    body = error.to_json()
    response = Response(msgspec.json.encode(body), error.status, media_type="application/json")
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    if error.status == 408:
        response.headers["Connection"] = "close"  # the rest of the body may still come
    if error.status == 401:
        response.headers["WWW-Authenticate"] = challenge
    if error.status == 405:
        response.headers["Allow"] = ", ".join(error.allow)
    return response
