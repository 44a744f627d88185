"""CalDAV over HTTP: Basic sign-in with an inbox's address and a key, as for IMAP; then its door answers."""

import asyncio
import base64
import binascii
from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from postroom import limits
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import READING
from postroom.errors import Unauthorized
from postroom.mailbox.inboxes import Inbox
from postroom.net.failed_logins import FailedLogins
from postroom.operations.calendars.dav_requests import AnswerDav, DavRequest
from postroom.operations.folders import names
from postroom.operations.folders.names import InboxLogin
from postroom.resources import Resources
from postroom.web.call import Call
from postroom.web.mcp import ASKED_PATH, RESOURCE_METADATA, narrowing_of
from postroom.web.requests.authentication import client_address
from postroom.web.requests.request_body import header, read_bytes

PREFIX, WELL_KNOWN = "/caldav", "/.well-known/caldav"
CHALLENGE = 'Basic realm="Postroom", charset="UTF-8"'
HOW = "The user name is the inbox's address, the password an API key for it."


def challenge(resources: Resources, request: Request) -> str:
    """Return how to sign in: MCP clients are told where to read it (RFC 9728, section 5.1).

    The path is as requested: a stranger learns no id of an inbox.
    """
    path = request.scope["path"]
    if is_own(path):
        return CHALLENGE
    if narrowing_of(path) is None:
        return "Bearer"
    asked = quote(request.scope.get(ASKED_PATH, path), safe="/@+")
    described = f"{resources.config.base_url}{RESOURCE_METADATA}{asked}"
    return f'Bearer resource_metadata="{described}"'


def is_own(path: str) -> bool:
    return path == PREFIX or path.startswith((f"{PREFIX}/", WELL_KNOWN))


class DavAnswers:
    """Remembers failures to sign in: who tries keys waits, as with IMAP."""

    def __init__(self, resources: Resources, ask: AnswerDav) -> None:
        self._resources, self._ask, self._failures = resources, ask, FailedLogins()

    async def answer(self, request: Request, admit: Callable[[Caller, Inbox], Call]) -> Response:
        """Answer a request. `admit` counts it against the limit of the account."""
        if (found := without_sign_in(request)) is not None:
            return found
        login = await self._log_in(request)
        call = admit(login.caller, login.inbox)
        return await answer(request, InboxLogin(call.decider, login.inbox), self._ask)

    async def _log_in(self, request: Request) -> InboxLogin:
        name, token = read_basic(request)
        peer, failures = client_address(request), self._failures
        if failures.wait_seconds(peer, name) == 0:
            return await self._try(peer, name, token)
        async with failures.turn(peer, name):
            await asyncio.sleep(failures.wait_seconds(peer, name))
            return await self._try(peer, name, token)

    async def _try(self, peer: str, name: str, token: str) -> InboxLogin:
        resources = self._resources
        try:
            found = await resources.db.read(names.log_in, name, token, READING, resources.now())
        except Unauthorized:
            self._failures.record(peer, name)
            raise
        self._failures.forget(peer, name)
        return found


def read_basic(request: Request) -> tuple[str, str]:
    scheme, _, given = header(request, b"authorization").partition(" ")
    try:
        decoded = base64.b64decode(given.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise Unauthorized(HOW) from None
    name, colon, token = decoded.partition(":")
    if scheme.lower() != "basic" or not colon or "\0" in name:
        raise Unauthorized(HOW)
    return name.strip(), token.strip()


def without_sign_in(request: Request) -> Response | None:
    """Answer the way from a domain to its calendars (RFC 6764), and what is possible here."""
    if request.scope["path"].startswith(WELL_KNOWN):
        return RedirectResponse(f"{PREFIX}/", 301)
    if request.method == "OPTIONS":
        allowed = "OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, REPORT, MKCALENDAR, MKCOL, POST"
        features = "1, 3, calendar-access, calendar-auto-schedule"
        return Response(headers={"DAV": features, "Allow": allowed})
    return None


async def answer(request: Request, login: InboxLogin, ask: AnswerDav) -> Response:
    body = await read_bytes(request, limits.REQUEST_BYTES)
    headers = {name.lower(): value for name, value in reversed(request.headers.items())}
    asked = DavRequest(
        request.method,
        request.scope["path"],
        headers,
        body,
        login.caller,
        login.inbox,
        header(request, b"traceparent"),
    )
    found = await ask(asked)
    return Response(found.body, found.status, dict(found.headers))
