"""MCP over HTTP: the client's tools, run through the same checks with the caller's key.

/mcp offers what the key may do, /mcp/readonly only reading, /mcp/inbox/{id} only one inbox. Loaded at the
first request: the MCP library costs more time and memory than all the rest of the server.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct, structs
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from postroom.accounts.keys import Caller
from postroom.accounts.permissions import OF_AN_INBOX, READ
from postroom.accounts.scope import Scope
from postroom.config import Config
from postroom.errors import BadRequest, Forbidden, MethodNotAllowed, PayloadTooLarge
from postroom.operations.people import oauth_consent
from postroom.processes import pools
from postroom.resources import Resources
from postroom.web.requests import cors
from postroom.web.requests.authentication import bearer_token
from postroom.web.requests.collected_use import ToolUse
from postroom.web.requests.request_body import read_bytes, require_bounded, require_json_type

if TYPE_CHECKING:
    import httpx2
    from mcp.server import MCPServer
    from mcp.server.context import ServerRequestContext

    from postroom_client.transport.exchange import Call, Steps

T = TypeVar("T")
PATH = oauth_consent.MCP_PATH
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
READONLY_PATH = oauth_consent.READONLY_PATH
INBOX_PREFIX = oauth_consent.INBOX_PREFIX
MOST_SERVERS = 64
KEEP_ALIVE_SECONDS = 75  # a slow client asks again on the same connection
BODY_LIMIT_BYTES = 4 * 1024 * 1024
SMALL_BODY_BYTES = 64 * 1024
HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\[\]:@/]+)(:[0-9]+)?")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
LONGEST_SETS = 200  # characters of `?tools=`
PARTS_LIMIT = 50_000  # of a larger body: values, names and separators in texts together
ASKED_PATH = "postroom.asked_path"  # as requested, before an address in it becomes an id
NARROWING = "postroom.narrowing"  # in the scope of a request that a tool makes


class Narrowing(Struct, frozen=True):
    """The restriction that an address puts on any key used there. It never adds anything."""

    inbox_id: str | None = None
    is_readonly: bool = False

    @property
    def path(self) -> str:
        if self.inbox_id is not None:
            return f"{INBOX_PREFIX}{self.inbox_id}"
        return READONLY_PATH if self.is_readonly else PATH

    def of(self, caller: Caller) -> Caller:
        left = caller.permissions
        if self.is_readonly:
            left &= {READ}
        if self.inbox_id is None:
            return structs.replace(caller, permissions=left)
        scope = Scope(caller.account_id, caller.pod_id, caller.inbox_id or self.inbox_id)
        return structs.replace(caller, permissions=left & set(OF_AN_INBOX), scope=scope)


_narrowing: ContextVar[Narrowing] = ContextVar("narrowing")


def narrowing_of(path: str) -> Narrowing | None:
    """Return the restriction of the address, or None if it is no address of MCP."""
    if path == PATH:
        return Narrowing()
    if path == READONLY_PATH:
        return Narrowing(is_readonly=True)
    inbox_id = path.removeprefix(INBOX_PREFIX)
    return Narrowing(inbox_id=inbox_id) if path.startswith(INBOX_PREFIX) and "/" not in inbox_id else None


class McpApp:
    """Answers MCP over HTTP. Stateless: each request has its key, and any node can answer it."""

    def __init__(self, app: ASGIApp, resources: Resources) -> None:
        self._app = app
        self._resources = resources
        self._config = resources.config
        self.tool_use = ToolUse(resources)
        # By the offered tools, and by the extra line for one inbox.
        self._servers: dict[tuple[tuple[str, ...], str, bool], MCPServer] = {}
        self._loading = asyncio.Lock()

    async def answer(self, request: Request, caller: Caller, more: str) -> Response:
        """Answer a request. `caller` is restricted by the address; `more` is an extra line for its agent."""
        require_post(request)
        require_known_host(request, self._config)
        require_known_origin(request, self._config)
        require_json_type(request)
        sets = request.query_params.get("tools", "")[:LONGEST_SETS]
        body = await read_bytes(request, BODY_LIMIT_BYTES)
        await require_readable(body)
        server = await self._load(caller, sets, more, request.query_params.get("answers") == "text")
        response = await unless_disconnected(request, lambda: answer_once(server, request, body))
        self.tool_use.record(caller, body, bytes(response.body), self._resources.now())
        if response.status_code == 406:  # which the library answers with nothing
            raise BadRequest("The Accept header must allow application/json.")
        response.headers["Keep-Alive"] = f"timeout={KEEP_ALIVE_SECONDS}"
        return response

    async def _load(self, caller: Caller, sets: str, more: str, is_text: bool) -> "MCPServer":
        async with self._loading:
            names = await pools.ONCE.run(offered, caller, sets)
            if (names, more, is_text) not in self._servers:
                if len(self._servers) >= MOST_SERVERS:
                    del self._servers[next(iter(self._servers))]
                made = await pools.ONCE.run(build, self._app, self._config, names, more, is_text)
                self._servers[names, more, is_text] = made
        return self._servers[names, more, is_text]


def offered(caller: Caller, sets: str) -> tuple[str, ...]:
    from postroom_client.mcp import server

    try:
        return server.offered(
            caller.permissions,
            is_of_one_inbox=caller.inbox_id is not None,
            is_of_account=caller.scope.is_account,
            sets=sets,
        )
    except ValueError as error:
        raise BadRequest(str(error), field="tools") from None


def build(app: ASGIApp, config: Config, names: tuple[str, ...], more: str, is_text: bool) -> "MCPServer":
    import httpx2

    from postroom_client.mcp import api_caller, server

    logging.basicConfig(level=logging.WARNING)  # plain lines, before the library sets up colourful ones
    base_url = config.base_url
    inside = httpx2.AsyncClient(transport=httpx2.ASGITransport(narrowed(app)), base_url=base_url)

    def caller_of(ctx: "ServerRequestContext[Any, Any]") -> api_caller.Caller:
        request = ctx.request
        assert request is not None  # over HTTP there always is one
        narrowing = narrowing_of(request.scope["path"])
        assert narrowing is not None
        carrier = Inside(inside, bearer_token(request), narrowing)
        return api_caller.Caller(carrier, narrowing.inbox_id, base_url)

    return server.build(caller_of, names, more, is_text, bool(config.mcp_events))


def narrowed(app: ASGIApp) -> ASGIApp:
    """Return the app with the restriction of the address in its scope, which no request can set."""

    async def pass_on(scope: AsgiScope, receive: Receive, send: Send) -> None:
        await app({**scope, NARROWING: _narrowing.get()}, receive, send)

    return pass_on


class Inside(Struct, frozen=True):
    """Runs calls inside this process, each through the whole order of checks."""

    http: "httpx2.AsyncClient"
    token: str
    narrowing: Narrowing

    async def run(self, work: "Call[T] | Steps[T]") -> T:
        from postroom_client.transport.exchange import carry_out

        return await carry_out(work, self._exchange)

    async def _exchange(self, call: "Call[T]") -> T:
        from postroom_client.transport import wire
        from postroom_client.transport.exchange import require_success

        _narrowing.set(self.narrowing)
        call = replace(call, headers={**call.headers, **wire.headers(self.token)})
        outcome = await wire.async_attempt(self.http, wire.build(self.http, call, None), call, None)
        return call.read(require_success(call, outcome, 1))


def require_post(request: Request) -> None:
    """Refuse all but POST: there is no stream to GET and no session to DELETE (MCP, Streamable HTTP)."""
    if request.method != "POST":
        raise MethodNotAllowed(
            f"{request.scope['path']} accepts POST, not {request.method[:20]}.", allow=["POST"]
        )


async def require_readable(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError:
        raise BadRequest("The body is not UTF-8.") from None
    if len(body) > SMALL_BODY_BYTES:
        await pools.COMPOSING.run(require_bounded, body)
    else:
        require_bounded(body)
    require_few_parts(body)


def require_few_parts(body: bytes) -> None:
    """Refuse a body with many values: the library parses it in the event loop, where these take long.

    It also decodes texts that look like JSON, so separators in texts count too.
    """
    if len(body) <= SMALL_BODY_BYTES:
        return
    if sum(body.count(mark) for mark in (b",", b":", b"[", b"{")) > PARTS_LIMIT:
        raise PayloadTooLarge(
            f"The body has more than {PARTS_LIMIT} parts. Send long texts and files by REST."
        )


def require_known_host(request: Request, config: Config) -> None:
    """Refuse an unknown Host: a page may have pointed its name to this server (DNS rebinding)."""
    host = request.headers.get("host", "")
    written = HOST.fullmatch(host.lower())
    name = written["name"].strip("[]") if written is not None else ""
    known = {urlsplit(url).hostname for url in (config.base_url, *config.cors_origins)}
    if name not in known and name not in LOOPBACK and not is_address(name):
        raise Forbidden(
            f"This server is not {host[:255]!r}. Use {config.base_url}, or add the address of that host to"
            " POSTROOM_CORS_ORIGINS."
        )


def is_address(name: str) -> bool:
    """Return whether this is an IP address: only names can be rebound."""
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def require_known_origin(request: Request, config: Config) -> None:
    """Refuse requests from pages of unknown sites (MCP, Streamable HTTP, Security Warning)."""
    origin = request.headers.get("origin")
    parts = urlsplit(config.base_url)
    hosts = {parts.netloc}
    if parts.hostname in LOOPBACK:
        port = f":{parts.port}" if parts.port is not None else ""
        hosts |= {f"{name}{port}" for name in ("127.0.0.1", "[::1]", "localhost")}
    own = {f"{parts.scheme}://{host}" for host in hosts}
    if origin is not None and origin not in own and not cors.is_trusted(config, origin):
        raise Forbidden(
            "This request comes from a page of another site. Add that site to POSTROOM_CORS_ORIGINS."
        )


async def answer_once(server: "MCPServer", request: Request, body: bytes) -> Response:
    """Answer by a transport for this one request: nothing keeps running after it."""
    from mcp.server.transport_security import TransportSecuritySettings

    server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        # Checked above, with the hosts of this server.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    transport = server.session_manager
    answer = CollectedAnswer()
    async with transport.run():
        await transport.handle_request(trimmed(request.scope), replay(body), answer.send)
    return answer.response()


def trimmed(scope: AsgiScope) -> AsgiScope:
    """Return the scope without spaces around the values of headers (RFC 9110, section 5.5)."""
    return {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}


def replay(body: bytes) -> Callable[[], Awaitable[Message]]:
    """Return a `receive` that gives the body once, and then waits forever."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return left.pop() if left else await asyncio.get_running_loop().create_future()

    return receive


class CollectedAnswer:
    """Collects what an ASGI application sends."""

    def __init__(self) -> None:
        self._start: Message = {"status": 500, "headers": []}
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._body += message.get("body", b"")

    def response(self) -> Response:
        response = Response(bytes(self._body), self._start["status"])
        for name, value in self._start["headers"]:
            response.headers[name.decode("latin-1")] = value.decode("latin-1")
        return response


async def unless_disconnected(request: Request, work: Callable[[], Awaitable[Response]]) -> Response:
    """Do the work, but cancel it when the client disconnects: a tool may wait for an email."""
    answering = asyncio.ensure_future(work())
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            return answering.result()
        raise ClientDisconnect
    finally:
        answering.cancel()
        leaving.cancel()
        await asyncio.wait((answering, leaving))
