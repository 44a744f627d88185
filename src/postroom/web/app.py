"""Entry of all requests: each goes through the specified order of checks and gets an answer in its format."""

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from postroom import ids, log
from postroom.accounts import keys
from postroom.accounts.keys import Caller
from postroom.accounts.rules import limits
from postroom.deliverability.unsubscribe import LINKS_IN_MAILS
from postroom.errors import ApiError, InternalError
from postroom.external_mailboxes.fetching import Fetcher
from postroom.external_mailboxes.posts import PostIntake
from postroom.mailbox import inboxes
from postroom.mailbox.file_links import PATHS
from postroom.mailbox.inboxes import Inbox, Outdated
from postroom.operations.audit_log import REFUSALS, audit_refusal
from postroom.operations.calendars.dav_requests import AnswerDav
from postroom.operations.keys import who_am_i
from postroom.outward.courier import WebhookCourier
from postroom.processes import pools, struct_types
from postroom.processes.process_metrics import RequestCounts
from postroom.resources import Resources
from postroom.web import dav, inbox_names, operations, packed
from postroom.web.agentmail import names as agentmail_names
from postroom.web.agentmail import stream as agentmail_stream
from postroom.web.agentmail.routes import ROUTES as AGENTMAIL_ROUTES
from postroom.web.answers import (
    answer_call,
    is_browser,
    is_fault,
    is_of_agentmail,
    to_error_response,
    to_response,
)
from postroom.web.api import file_links
from postroom.web.api.messages import get_attachment_by_link, get_raw_by_link, is_signed_link
from postroom.web.call import Call, RequestOrigin, calls_from, require_owned
from postroom.web.dashboard.forms import HOME
from postroom.web.dashboard.live import PATH as LIVE_PATH
from postroom.web.dashboard.live import Live
from postroom.web.mcp import ASKED_PATH, NARROWING, McpApp, Narrowing, narrowing_of
from postroom.web.mcp import INBOX_PREFIX as MCP_INBOX_PREFIX
from postroom.web.mcp import PATH as MCP_PATH
from postroom.web.oauth import endpoints as oauth
from postroom.web.public import Site
from postroom.web.readiness import Readiness
from postroom.web.requests import cors
from postroom.web.requests.authentication import (
    CallerAndInbox,
    CallerCache,
    bearer_token,
    identify,
    require_at,
)
from postroom.web.requests.collected_use import KeyUse
from postroom.web.requests.page_cache import PageCache
from postroom.web.requests.posted_mail import PREFIX as POSTS_PREFIX
from postroom.web.requests.posted_mail import take_post
from postroom.web.requests.request_body import is_small, read_query, require_scope_filters_taken
from postroom.web.requests.request_limit import RequestLimit
from postroom.web.routes import ROUTES
from postroom.web.routing import Found, Route, Router, inbox_of_path
from postroom.web.streams.stream import Streams

if TYPE_CHECKING:
    from postroom.web.dashboard.dashboard import Dashboard

API_PREFIXES = ("/v1/", agentmail_names.PREFIX)
AGENTMAIL_STREAM = "/v0"
NO_ROUTE = "none"
ROUTER, AGENTMAIL_ROUTER = Router(ROUTES), Router(AGENTMAIL_ROUTES)
PATH_CHARACTERS = 200


class RequestState(Struct):
    """One request under way, and what its answer must carry whatever happens."""

    request: Request
    headers: dict[str, str]
    route: str = NO_ROUTE
    started: float = field(default_factory=time.perf_counter)
    call: Call | None = None


class App:
    def __init__(
        self,
        resources: Resources,
        webhook_courier: WebhookCourier,
        streams: Streams,
        posts: PostIntake,
        answer_dav: AnswerDav | None = None,
    ) -> None:
        self._streams = streams
        self._dav = None if answer_dav is None else dav.DavAnswers(resources, answer_dav)
        self._posts = posts
        self.live = Live(resources, streams.hubs)
        self._dashboard: Dashboard | None = None
        self._opening = asyncio.Lock()
        self._resources = resources
        self._webhook_courier = webhook_courier
        self._limit = RequestLimit()
        self._requests = RequestCounts()
        self._site = Site(resources, ROUTES, self._requests, Readiness(resources), self._open_dashboard)
        self._mcp = McpApp(self, resources)
        self.key_use = KeyUse(resources)
        self._caller_cache = CallerCache()
        self._pages = PageCache()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._serve_socket(scope, receive, send)
            return
        state = RequestState(Request(scope, receive), {"X-Request-Id": f"req_{ids.trace()}"})
        state.headers.update(cors.headers(self._resources.config, state.request))
        try:
            response = await self._answer_in_shape(state)
        except ClientDisconnect:
            return
        response.raw_headers += [
            (name.lower().encode(), value.encode()) for name, value in state.headers.items()
        ]
        self._requests.count(state.route, response.status_code, time.perf_counter() - state.started)
        await response(scope, receive, send)

    async def save_use(self) -> None:
        """Saves the collected use of keys and tools."""
        await self.key_use.save()
        await self._mcp.tool_use.save()

    async def _serve_socket(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["path"] == LIVE_PATH:
            await self.live.serve(scope, receive, send)
        else:
            listen = agentmail_stream.listen if scope["path"] == AGENTMAIL_STREAM else None
            await self._streams.serve(scope, receive, send, listen)

    async def _answer_in_shape(self, state: RequestState) -> Response:
        request_id = state.headers["X-Request-Id"]
        try:
            return await self._answer(state)
        except ClientDisconnect:
            raise
        except ApiError as error:
            if isinstance(error, InternalError):
                error.extras["request_id"] = request_id
            if error.status >= 500:
                reason = f"{error.message} {error.__cause__ or ''}".rstrip()
                write_log = log.get().seldom if error.status == 503 else log.get().error
                write_log("request failed", request_id=request_id, reason=reason)
            await self._record_refusal(state, error)
            return to_error_response(state.request, error, dav.challenge(self._resources, state.request))
        except Exception:
            log.get().exception("unexpected error", request_id=request_id, route=state.route)
            fault = InternalError("Something went wrong on our side.", request_id=request_id)
            return to_error_response(state.request, fault)

    async def _answer(self, state: RequestState) -> Response:
        """Check authentication, rate limit, route and permission in this order, then run the handler."""
        request = state.request
        path = request.scope["path"]
        is_api, is_agentmail = path.startswith(API_PREFIXES), is_of_agentmail(request)
        if (allowed := cors.preflight(self._resources.config, request)) is not None:
            return allowed
        if is_signed_link(request):
            return await self._open_link(state)
        if not is_api and (answer := await self._answer_beside(state, path)) is not None:
            return answer
        if is_agentmail:
            return await self._answer_agentmail(state)
        found = ROUTER.find(request.method, path)
        found = await inbox_names.in_path(self._resources, found)
        call = await self._admit(state, found) if is_api else None
        if isinstance(found, ApiError):
            raise found
        route, values = found
        state.route = route.name
        if call is None:
            await require_scope_filters_taken(request, route.query)
            return await packed.pack(request, to_response(route, await route.operation(self._site, **values)))
        try:
            return await self._carry_out(route, call, values)
        except (ApiError, Outdated) as error:
            if not call.is_remembered or is_fault(error):
                raise
            return await self._retry_uncached(state, found, call, error)

    async def _answer_agentmail(self, state: RequestState) -> Response:
        """Answer a request to /v0 with the same checks in the same order; only the names in paths differ."""
        request = state.request
        found = agentmail_names.find(AGENTMAIL_ROUTER, request.method, request.scope["path"])
        call = await self._admit(state)
        if isinstance(found, ApiError):
            raise found
        route, named = found
        state.route = route.name
        operations.require_permitted(call.caller, route)

        async def make() -> Any:
            state.call, values = await agentmail_names.resolve(call, named)
            return await self._handle(route, state.call, values)

        return await answer_call(self._pages, route, call, make)

    async def _answer_beside(self, state: RequestState, path: str) -> Response | None:
        """Answer everything besides the API: links in emails, mail services, MCP, the dashboard."""
        if (link := next((each for each in LINKS_IN_MAILS if path.startswith(each)), None)) is not None:
            state.route = f"{link}{{token}}"
            return await (await self._open_dashboard()).links[link].answer(state.request)
        if path.startswith(POSTS_PREFIX):
            state.route = f"{POSTS_PREFIX}{{token}}"
            return await take_post(self._resources, self._posts, state.request)
        if self._dav is not None and dav.is_own(path):
            state.route = dav.PREFIX
            return await self._dav.answer(state.request, partial(self._admitted, state))
        if (kind := file_links.kind_of(path)) is not None:
            state.route = f"{PATHS[kind]}{{token}}"
            return await file_links.answer(self._resources, kind, state.request)
        if (narrowing := narrowing_of(path)) is not None:
            narrowed = await inbox_names.in_narrowing(self._resources, narrowing)
            state.request.scope.update({"path": narrowed.path, ASKED_PATH: path})
            return await self._open_mcp(state, narrowed)
        if oauth.is_own(path):
            state.route = path if path in oauth.METHODS else oauth.RESOURCE_PREFIX
            return await oauth.answer(self._resources, state.request)
        if path == HOME or path.startswith(f"{HOME}/"):
            dashboard = await self._open_dashboard()
            state.route, page = await dashboard.answer(state.request, state.headers["X-Request-Id"])
            return page
        if path == "/" and is_browser(state.request):
            return RedirectResponse(HOME, 303)
        return None

    async def _open_dashboard(self) -> "Dashboard":
        """Open the dashboard at the first request: its pages and templates take a while to load."""
        async with self._opening:
            if self._dashboard is None:
                self._dashboard = await pools.ONCE.run(
                    make_dashboard, self._resources, self._webhook_courier, self._posts.fetcher
                )
            return self._dashboard

    async def _admit(self, state: RequestState, found: Found | ApiError | None = None) -> Call:
        token = bearer_token(state.request)
        known = self._recall(state.request, token, found)
        caller, inbox = known or await self._identify(token, inbox_of_path(found))
        if caller.resource is not None:
            require_at(caller, self._resource_of(state.request))
        if (narrowing := state.request.scope.get(NARROWING)) is not None:
            caller = narrowing.of(caller)
        return self._admitted(state, caller, inbox, known is not None)

    def _admitted(
        self, state: RequestState, caller: Caller, inbox: Inbox | None, is_remembered: bool = False
    ) -> Call:
        """Return the call of a known caller, unless it asks too often."""
        now = self._resources.now()
        most = limits.in_force(self._resources.config, caller.account_limits).requests_per_minute
        allowance = self._limit.count(caller.account_id, most, now)
        state.headers.update(allowance.headers())
        allowance.require()
        self.key_use.record(caller.key_id, now)
        origin = RequestOrigin.of(state.request)
        state.call = Call(
            self._resources, caller, state.request, self._webhook_courier, inbox, is_remembered, origin
        )
        return state.call

    def _resource_of(self, request: Request) -> str | None:
        """Return the resource that a token may be bound to: /v0, or an address of MCP, also for its tools."""
        if is_of_agentmail(request):
            return keys.V0_RESOURCE
        narrowing = request.scope.get(NARROWING) or narrowing_of(request.scope["path"])
        return None if narrowing is None else f"{self._resources.config.base_url}{narrowing.path}"

    def _recall(self, request: Request, token: str, found: Found | ApiError | None) -> CallerAndInbox | None:
        """Return the cached caller, only where the transaction checks it again and the body is small."""
        if found is None or isinstance(found, ApiError):
            return None
        route, values = found
        if not route.proves or NARROWING in request.scope or not is_small(request):
            return None
        return self._caller_cache.find(token, values["inbox_id"])

    async def _identify(self, token: str, inbox_id: str | None) -> CallerAndInbox:
        """Return the caller. The database version is read only for callers already in the cache."""
        has_asked = self._caller_cache.find(token, inbox_id) is not None
        version = self._resources.db.version() if has_asked else None
        known = self._caller_cache.find_unchanged(token, inbox_id, version, self._resources.now())
        if known is not None:
            return known
        caller, inbox = await identify(self._resources, token, inbox_id)
        if inbox is not None or inbox_id is None:
            self._caller_cache.put(token, (caller, inbox), version)
        return caller, inbox

    async def _record_refusal(self, state: RequestState, error: ApiError) -> None:
        """Record a refused attempt of a key in the audit log, however it is answered."""
        call = state.call
        if call is None or not isinstance(error, REFUSALS) or state.route == NO_ROUTE:
            return
        try:
            asked = (call.caller, call.scope, state.route, error, call.address, call.now())
            path = call.request.scope["path"][:PATH_CHARACTERS]
            await self._resources.db.write(audit_refusal, *asked, path)
        except Exception as fault:
            log.get().error("a refusal could not be recorded", route=state.route, reason=str(fault))

    async def _open_link(self, state: RequestState) -> Response:
        """Answer the link to an attachment. Its signature replaces a key."""
        found = ROUTER.find(state.request.method, state.request.scope["path"])
        if isinstance(found, ApiError):
            raise found
        route, values = found
        state.route = route.name
        await require_scope_filters_taken(state.request, route.query)
        query = state.request.query_params
        expires, signature = query.get("expires", ""), query.get("signature", "")
        if "filename" not in values:
            return await get_raw_by_link(self._resources, values["message_id"], expires, signature)
        return await get_attachment_by_link(
            self._resources, values["message_id"], values["filename"], expires, signature
        )

    async def _open_mcp(self, state: RequestState, narrowing: Narrowing) -> Response:
        call = await self._admit(state)
        state.route = f"POST {MCP_PATH}"
        if narrowing.inbox_id is not None:
            state.route = f"POST {MCP_INBOX_PREFIX}{{inbox_id}}"
            await self._resources.db.read(inboxes.get, call.scope, narrowing.inbox_id)
        with calls_from(call.origin):
            narrowed = narrowing.of(call.caller)
            me = await self._resources.db.read(who_am_i, narrowed, self._resources.config)
            return await self._mcp.answer(state.request, narrowed, me.canary or "")

    async def _carry_out(self, route: Route, call: Call, values: dict[str, str]) -> Response:
        operations.require_permitted(call.caller, route)
        return await answer_call(self._pages, route, call, partial(self._handle, route, call, values))

    async def _retry_uncached(
        self, state: RequestState, found: Found, known: Call, error: ApiError | Outdated
    ) -> Response:
        """Looks the cached caller up again: if the caller or the inbox has changed, the request is retried.

        Otherwise an error of the request stands.
        """
        route, values = found
        token = bearer_token(state.request)
        self._caller_cache.forget(token, values["inbox_id"])
        caller, inbox = await self._identify(token, values["inbox_id"])
        if isinstance(error, ApiError) and (caller, inbox) == (known.caller, known.inbox):
            raise error
        state.call = replace(known, caller=caller, inbox=inbox, is_remembered=False)
        return await self._carry_out(route, state.call, values)

    async def _handle(self, route: Route, call: Call, values: dict[str, str]) -> Any:
        """Run the handler. Errors of ownership come first, so that a stranger learns nothing."""
        arguments: dict[str, Any] = dict(values)
        try:
            await require_scope_filters_taken(call.request, route.query)
            if route.query is not None:
                query = await read_query(call.request, route.query)
                arguments["query"] = await inbox_names.in_fields(call, query)
        except ApiError:
            await require_owned(call, values)
            raise
        if route.body is not None:
            if not route.answers_gone:
                await require_owned(call, values, arguments.get("query"))
            if route.before_body is not None:
                route.before_body(call.request)
            arguments["body"] = await self._read_body(route, call, values)
        return await operations.perform(route, call, arguments)

    async def _read_body(self, route: Route, call: Call, values: dict[str, str]) -> Any:
        try:
            return await inbox_names.in_fields(call, await operations.read_once(route, call.request))
        except ApiError:
            await require_owned(call, values)
            raise


def make_dashboard(resources: Resources, webhook_courier: WebhookCourier, fetcher: Fetcher) -> "Dashboard":
    from postroom.web.dashboard.dashboard import Dashboard

    struct_types.prepare()
    return Dashboard(resources, webhook_courier, fetcher)
