"""Endpoints for programs that sign in by OAuth 2.1, and for codes of those without a browser."""

from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from postroom.accounts.oauth import device_codes
from postroom.accounts.oauth.oauth_error import OauthError
from postroom.clock import SECOND
from postroom.config import Config
from postroom.errors import BadRequest, MethodNotAllowed, NotFound, UnsupportedMediaType
from postroom.operations.people import oauth_consent
from postroom.operations.people.oauth_consent import Asked
from postroom.resources import Resources
from postroom.web.requests.authentication import client_address
from postroom.web.requests.request_body import read_bytes, require_bounded

BODY_LIMIT_BYTES = 64 * 1024
WELL_KNOWN = "/.well-known/oauth-authorization-server"
RESOURCE_PREFIX = "/.well-known/oauth-protected-resource/mcp/"
CONSENT_PATH = "/app/authorize"
DEVICE_PATH = "/app/device"
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
METHODS = {
    WELL_KNOWN: "GET",
    "/oauth/register": "POST",
    "/oauth/authorize": "GET",
    "/oauth/token": "POST",
    "/oauth/revoke": "POST",
    "/auth/cli/start": "POST",
    "/auth/cli/poll": "GET",
}


def is_own(path: str) -> bool:
    return path in METHODS or path.startswith(RESOURCE_PREFIX)


async def answer(resources: Resources, request: Request) -> Response:
    path = request.scope["path"]
    allowed = METHODS.get(path, "GET")
    if request.method != allowed and not (allowed == "GET" and request.method == "HEAD"):
        raise MethodNotAllowed(f"{path} accepts {allowed}, not {request.method[:20]}.", allow=[allowed])
    try:
        return await _answer(resources, request, path)
    except OauthError as error:
        return refusal(error)


async def _answer(resources: Resources, request: Request, path: str) -> Response:
    if path.startswith(RESOURCE_PREFIX):
        return to_json(describe_resource(require_described(path, resources.config), resources.config))
    if path == WELL_KNOWN:
        return to_json(describe_server(resources.config))
    if path == "/oauth/authorize":
        return RedirectResponse(f"{CONSENT_PATH}?{request.url.query}", 303, headers=NO_STORE)
    if path == "/oauth/register":
        return await register(resources, request)
    if path == "/auth/cli/start":
        return await start(resources, request)
    if path == "/auth/cli/poll":
        return await poll(resources, request)
    form = await read_form(request)
    if path == "/oauth/revoke":
        await resources.db.write(oauth_consent.revoke, require_parameter(form, "token"))
        return to_json({})
    require_parameter(form, "grant_type")
    tokens = await resources.db.write(oauth_consent.give_tokens, form, resources.config, resources.now())
    if tokens is None:
        raise OauthError(
            "This was already used, or the person who allowed it may no longer do that. Ask again.",
            oauth="invalid_grant",
        )
    return to_json(oauth_consent.show_tokens(tokens))


def require_described(path: str, config: Config) -> str:
    described = config.base_url + path.removeprefix("/.well-known/oauth-protected-resource")
    try:
        return oauth_consent.require_resource(described, config)
    except OauthError as error:
        raise NotFound(error.message) from None


def describe_server(config: Config) -> dict[str, object]:
    """Return the authorization server metadata (RFC 8414)."""
    base = config.base_url
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/oauth/authorize",
        "token_endpoint": f"{base}/oauth/token",
        "registration_endpoint": f"{base}/oauth/register",
        "revocation_endpoint": f"{base}/oauth/revoke",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "scopes_supported": ["read", "draft", "send"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


def describe_resource(resource: str, config: Config) -> dict[str, object]:
    """Return the protected resource metadata (RFC 9728)."""
    return {
        "resource": resource,
        "resource_name": "Postroom",
        "resource_documentation": f"{config.base_url}/docs",
        "bearer_methods_supported": ["header"],
        "authorization_servers": [config.base_url],
    }


async def register(resources: Resources, request: Request) -> Response:
    try:
        raw = await read_bytes(request, BODY_LIMIT_BYTES)
        require_bounded(raw)
        body: Any = msgspec.json.decode(raw)
    except BadRequest as error:
        raise OauthError(error.message, oauth="invalid_client_metadata") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise OauthError("The body must be JSON.", oauth="invalid_client_metadata") from None
    address, now = client_address(request), resources.now()
    client = await resources.db.write(oauth_consent.register, body, address, resources.config, now)
    registered = {
        "client_id": client.id,
        "client_id_issued_at": now // SECOND,
        "client_name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return to_json(registered, 201)


async def start(resources: Resources, request: Request) -> Response:
    require_json(await read_bytes(request, BODY_LIMIT_BYTES) or b"{}")
    request_id, code = await resources.db.write(
        oauth_consent.start_device, client_address(request), resources.now()
    )
    query = urlencode({"code": code.user_code})
    return to_json(
        {
            "requestId": request_id,
            "userCode": code.user_code,
            "verifyUrl": f"{resources.config.base_url}{DEVICE_PATH}?{query}",
            "expiresInSeconds": device_codes.LIFETIME // SECOND,
        }
    )


def require_json(raw: bytes) -> None:
    require_bounded(raw)
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest("The body must be JSON.") from None


async def poll(resources: Resources, request: Request) -> Response:
    request_id = request.query_params.get("requestId", "")
    token = await resources.db.write(oauth_consent.poll_device, request_id, resources.now())
    if token is None:
        return to_json({"status": "pending"}, 202)
    return to_json({"status": "ready", "apiKey": token})


async def read_form(request: Request) -> dict[str, str]:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("Send a form: application/x-www-form-urlencoded.")
    raw = await read_bytes(request, BODY_LIMIT_BYTES)
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise OauthError("The form could not be read.", oauth="invalid_request") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise OauthError("A parameter was given twice.", oauth="invalid_request")
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise OauthError("A parameter has a NUL character.", oauth="invalid_request")
    return dict(pairs)


def require_parameter(form: dict[str, str], name: str) -> str:
    if not form.get(name):
        raise OauthError(f"The parameter {name} is missing.", oauth="invalid_request")
    return form[name]


def refusal(error: OauthError) -> Response:
    """Return the body of RFC 6749, section 5.2, and `message` as in every other error."""
    status = 401 if error.oauth == "invalid_client" else 400
    body = {"error": error.oauth, "error_description": error.message, "message": error.message}
    return to_json(body, status)


def to_json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json", headers=NO_STORE)


def to_client(asked: Asked, config: Config, **answer: str) -> str:
    """Return the client's address, with the answer in its query (RFC 6749, 4.1.2; RFC 9207)."""
    given = {**answer, "iss": config.base_url} | ({"state": asked.state} if asked.state else {})
    sign = "&" if "?" in asked.redirect_uri else "?"
    return f"{asked.redirect_uri}{sign}{urlencode(given)}"
