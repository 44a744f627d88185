"""CORS: which other sites may call the interface with a key, by POSTROOM_CORS_ORIGINS."""

from starlette.requests import Request
from starlette.responses import Response

from postroom.config import Config

PREFIXES = ("/v1/", "/mcp")
METHODS = "GET, POST, PUT, PATCH, DELETE"
REQUEST_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, Mcp-Protocol-Version, Mcp-Session-Id, Last-Event-ID"
)
ANSWER_HEADERS = (
    "X-Request-Id, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, Idempotent-Replayed,"
    " Content-Disposition, Mcp-Session-Id"
)
PREFLIGHT_SECONDS = 600


def is_trusted(config: Config, origin: str | None) -> bool:
    return origin is not None and origin in config.cors_origins


def headers(config: Config, request: Request) -> dict[str, str]:
    """Return the headers of every answer.

    No cache may give one site's answer to another, and cookies are not used.
    """
    if not config.cors_origins or not request.scope["path"].startswith(PREFIXES):
        return {}
    origin = request.headers.get("origin")
    if origin is None or not is_trusted(config, origin):
        return {"Vary": "Origin"}
    return {
        "Vary": "Origin",
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": ANSWER_HEADERS,
    }


def preflight(config: Config, request: Request) -> Response | None:
    """Return the answer to a preflight request, which browsers send without a key; None for all others."""
    if request.method != "OPTIONS" or "access-control-request-method" not in request.headers:
        return None
    if "Access-Control-Allow-Origin" not in headers(config, request):
        return None
    allowed = {
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": REQUEST_HEADERS,
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    return Response(status_code=204, headers=allowed)
