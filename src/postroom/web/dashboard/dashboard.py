"""Entry of the dashboard: session, route, permission, then the page; in the order of the interface."""

import gzip
from typing import Any
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from postroom import log
from postroom.accounts import sessions
from postroom.accounts.keys import Caller
from postroom.accounts.rules import limits
from postroom.accounts.sessions import USE_NOTED_AFTER, Session
from postroom.errors import ApiError, Forbidden, InternalError, NotFound
from postroom.external_mailboxes.fetching import Fetcher
from postroom.outward.courier import WebhookCourier
from postroom.resources import Resources
from postroom.web.call import Call, RequestOrigin
from postroom.web.dashboard import sign_in, single_sign_on
from postroom.web.dashboard.delivery import connections
from postroom.web.dashboard.display import assets
from postroom.web.dashboard.display.rendering import HEADERS, Renderer
from postroom.web.dashboard.forms import COOKIE, HOME, own_page, require_own_page
from postroom.web.dashboard.page_context import ALERT, PageContext
from postroom.web.dashboard.reference import reference
from postroom.web.dashboard.review import LinkPage, ReviewPage
from postroom.web.dashboard.routes import PAGES
from postroom.web.dashboard.unsubscribe import UnsubscribePage
from postroom.web.oauth.endpoints import CONSENT_PATH
from postroom.web.operations import require_permitted
from postroom.web.requests import cookies
from postroom.web.requests.request_body import UNQUOTE_IN_LOOP_BYTES, read_query, require_short_query
from postroom.web.requests.request_limit import RequestLimit
from postroom.web.routing import ACCOUNT, Route, Router

PACKED_ABOVE_BYTES = 2_000
PACKING = 4
ROUTER = Router(PAGES)
# Apps may ask with a long state, which signing in encodes once more. Codes of providers may be long.
LONG_QUERIES = {
    CONSENT_PATH: 4_000,
    **dict.fromkeys((sign_in.PATH, single_sign_on.PATH, single_sign_on.ANSWER_PATH), 8_000),
    connections.CONSENT_PATH: 8_000,
}
SIGNED_IN = "postroom.signed_in"  # in the scope of a request: its session and caller, once found
UNAVAILABLE = 503
FIELDS = {
    "invalid_domain": "domain",
    "domain_taken": "domain",
    "invalid_mailbox_name": "mailboxName",
    "address_taken": "mailboxName",
    "template_exists": "name",
    "invalid_webhook_url": "url",
    "invalid_target": "target",
    "user_exists": "email",
    "address_is_an_inbox": "email",
}
TITLES = {
    403: "You do not have access to this page",
    404: "This page does not exist",
    429: "Too many requests",
}


class Dashboard:
    def __init__(self, resources: Resources, webhook_courier: WebhookCourier, fetcher: Fetcher) -> None:
        self._resources = resources
        self._webhook_courier = webhook_courier
        self._renderer = Renderer(resources.config.base_url)
        self._sign_in = sign_in.SignInPage(resources, self._renderer, fetcher)
        link_pages = (ReviewPage(resources, self._renderer), UnsubscribePage(resources, self._renderer))
        self.links: dict[str, LinkPage] = {context.path: context for context in link_pages}
        self._limit = RequestLimit()

    async def answer(self, request: Request, request_id: str) -> tuple[str, Response]:
        """Return the name of the route, and its page. Errors are pages too."""
        try:
            route, response = await self._answer(request)
            return route, pack(request, response)
        except ClientDisconnect:
            raise
        except ApiError as error:
            if error.status >= 500:
                log.get().error("request failed", request_id=request_id, reason=error.message)
                error.extras["request_id"] = request_id
            return "error", await self._explain(request, error)
        except Exception:
            log.get().exception("unexpected error", request_id=request_id, route=request.url.path)
            fault = InternalError("Something went wrong on our side.", request_id=request_id)
            return "error", await self._error(request, fault)

    def show_reference(self, page: str) -> Response:
        return reference.answer(page, self._resources.config.base_url)

    async def _answer(self, request: Request) -> tuple[str, Response]:
        path = request.scope["path"]
        require_short_query(request, LONG_QUERIES.get(path, UNQUOTE_IN_LOOP_BYTES))
        if path.startswith(f"{assets.PATH}/"):
            return "static", assets.answer(request, self._renderer.by_url)
        if path in assets.FIXED:
            return "static", assets.answer_fixed(path)
        if path == sign_in.PATH or path.startswith(f"{sign_in.PATH}/"):
            return "sign-in", await self._sign_in.answer(request)
        if path == f"{HOME}/":
            return HOME, RedirectResponse(HOME, 303, headers=HEADERS)
        found = await self._find_session(request)
        if found is None:
            return "sign-in", sign_in.to_sign_in(request)
        request.scope[SIGNED_IN] = found
        return await self._open_page(request, *found)

    async def _find_session(self, request: Request) -> tuple[Session, Caller] | None:
        token = cookies.find(request, COOKIE)
        if not token:
            return None
        db, now = self._resources.db, self._resources.now()
        found = await db.read(sessions.find, token, now)
        if found is not None and found[0].last_used_at < now - USE_NOTED_AFTER:
            await db.write(sessions.mark_used, found[0].id, now)
        return found

    async def _open_page(self, request: Request, session: Session, caller: Caller) -> tuple[str, Response]:
        """Open a page. A person's clicks are limited separately from the account's agents."""
        most = limits.in_force(self._resources.config, caller.account_limits).requests_per_minute
        self._limit.count(session.id, most, self._resources.now()).require()
        found = ROUTER.find(request.method, request.scope["path"])
        if isinstance(found, ApiError):
            raise NotFound("There is nothing at this address.") if found.status == 404 else found
        route, values = found
        require_access(caller, route)
        context = self._context_of(request, session, caller)
        return f"{route.method} {route.path}", await handle(route, context, values)

    def _context_of(self, request: Request, session: Session, caller: Caller) -> PageContext:
        origin = RequestOrigin.of(request)
        call = Call(self._resources, caller, request, self._webhook_courier, None, origin=origin)
        return PageContext(call, session, self._renderer)

    async def _explain(self, request: Request, error: ApiError) -> Response:
        """Show an error. One in a form is shown on the page of the form."""
        page = own_page(request.headers.get("referer", ""))
        if request.method != "POST" or error.status >= 500 or page == HOME:
            return await self._error(request, error)
        try:
            _, response = await self._answer(opening(request, page, error))
        except ApiError:
            return await self._error(request, error)
        if response.status_code != 200:
            return await self._error(request, error)
        response.status_code = error.status
        return with_retry(response, error)

    async def _error(self, request: Request, error: ApiError) -> Response:
        """Show the error page, in the layout if a person is signed in.

        Without a session or a database, it has no layout. A part of a page keeps what it shows.
        """
        if "hx-request" in request.headers:
            return Response(status_code=error.status, headers={**HEADERS, "HX-Reswap": "none"})
        shown = {
            "title": title_of(error),
            "error": error,
            "back": own_page(request.headers.get("referer", "")),
        }
        signed_in = request.scope.get(SIGNED_IN)
        if signed_in is not None and error.status < UNAVAILABLE:
            try:
                context = self._context_of(request, *signed_in)
                return with_retry(await context.show("error.html", "", error.status, **shown), error)
            except Exception as fault:
                log.get().seldom("the layout of an error page failed", reason=str(fault))
        return with_retry(self._renderer.page("plain_error.html", error.status, **shown), error)


def require_access(caller: Caller, route: Route) -> None:
    """Require access as the API does, with the refusal in words for people."""
    try:
        require_permitted(caller, route)
    except Forbidden:
        if route.scope == ACCOUNT and not caller.scope.is_account:
            raise Forbidden("This needs access to the whole account. You are signed in to one pod.") from None
        needed = " or ".join(route.permissions)
        raise Forbidden(f"This needs the permission {needed}. You do not have it.") from None


def title_of(error: ApiError) -> str:
    if error.status >= UNAVAILABLE:
        return "Postroom is not available right now"
    return TITLES.get(error.status, "Something went wrong" if error.status >= 500 else "That did not work")


def with_retry(response: Response, error: ApiError) -> Response:
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def opening(request: Request, page: str, error: ApiError) -> Request:
    """Return a request of the same person for that page, which shows the error."""
    path, _, query = page.partition("?")
    scope = {
        **request.scope,
        "method": "GET",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        ALERT: at_field(error),
    }
    return Request(scope)


def at_field(error: ApiError) -> ApiError:
    """Return the error at its field. Some errors are always about the same field."""
    if error.code in FIELDS:
        error.extras.setdefault("field", FIELDS[error.code])
    return error


async def handle(route: Route, context: PageContext, values: dict[str, str]) -> Response:
    arguments: dict[str, Any] = dict(values)
    request = context.call.request
    if route.query is not None:
        arguments["query"] = await read_query(request, route.query)
    if route.method != "GET":
        require_own_page(request, context.call.resources.config.base_url)
    if route.body is not None:
        arguments["body"] = await route.read(request, route.body)
    response: Response = await route.operation(context, **arguments)
    return response


def pack(request: Request, response: Response) -> Response:
    """Compress a page, unless another site opened it: the compressed size might reveal its content.

    Content sent while it is read or made stays uncompressed.
    """
    if isinstance(response, StreamingResponse):
        return response
    is_own = request.headers.get("sec-fetch-site") in ("same-origin", "none")
    is_long = len(response.body) > PACKED_ABOVE_BYTES and "content-encoding" not in response.headers
    if is_own and is_long and "gzip" in request.headers.get("accept-encoding", ""):
        response.body = gzip.compress(response.body, PACKING)
        response.headers["Content-Length"] = str(len(response.body))
        response.headers["Content-Encoding"] = "gzip"
    return response
