"""One request of a signed-in person, as a page sees it."""

from collections.abc import Awaitable, Callable
from hashlib import blake2s
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from postroom.accounts import pods
from postroom.accounts.people import users
from postroom.accounts.pods import Pod
from postroom.accounts.rules import pauses
from postroom.accounts.rules.pauses import Pause
from postroom.accounts.scope import Scope
from postroom.accounts.sessions import Session
from postroom.config import Endpoint
from postroom.events import event_log as events
from postroom.mailbox import holds, inboxes
from postroom.mailbox.holds import Choice
from postroom.mailbox.inboxes import Inbox
from postroom.operations import operator
from postroom.queue import delayed_actions
from postroom.queue.delayed_actions import DelayedAction
from postroom.web import operations
from postroom.web.call import Call, Tx
from postroom.web.dashboard.display.rendering import HEADERS, Renderer
from postroom.web.dashboard.forms import COOKIE, own_page, own_path
from postroom.web.requests import cookies
from postroom.web.routes import ROUTE_OF

P = ParamSpec("P")
T = TypeVar("T")

NOTICE = "postroom_notice"
ALERT = "postroom.alert"  # in the scope of a request: why the form on this page was refused
UNDO = "postroom_undo"  # the path to which a button next to the notice posts
NOTICE_SECONDS = 20
NOTICE_CHARACTERS = 4000
INBOXES_SHOWN = 100
PODS_SHOWN = 100
EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104


class Layout(Struct, frozen=True):
    """The data around every page."""

    pods: list[Pod]  # to choose from; empty if there is no choice
    pod_id: str  # the one that is chosen
    own_pod: str  # the name of the pod of this session
    inboxes: list[Inbox]
    inbox_total: int
    unread: dict[str, int]
    held: int
    pause: Pause | None
    last_event_id: str
    is_operator: bool
    own_pods: list[Pod]  # of a user with several, to choose from
    delayed: list[DelayedAction]  # what can still be undone, or was refused

    @property
    def unread_total(self) -> int:
        return sum(self.unread.values())


class PageContext(Struct, frozen=True):
    call: Call
    session: Session
    renderer: Renderer

    async def show(self, template: str, here: str, status: int = 200, /, **values: Any) -> Response:
        """Show a page. `here` is the entry of the navigation that it belongs to."""
        layout = await self.read(read_layout, self)
        request = self.call.request
        notice = read_notice(request)
        response = self.renderer.page(
            template,
            status,
            context=self,
            caller=self.call.caller,
            session=self.session,
            layout=layout,
            here=here,
            address=address_of(request),
            notice=notice,
            undo=read_undo(request) if notice else "",
            alert=request.scope.get(ALERT),
            nonce=nonce_of(cookies.find(request, COOKIE)),
            **values,
        )
        if notice:
            response.delete_cookie(NOTICE, path="/app")
            response.delete_cookie(UNDO, path="/app")
        return response

    async def run(self, verb: Callable[..., T], **arguments: Any) -> T:
        """Runs an operation of the interface, with its checks, for the person on the page."""
        result: T = await operations.perform(ROUTE_OF[verb], self.call, arguments)
        return result

    async def perform(self, operation: Callable[..., Awaitable[T]], **arguments: Any) -> T:
        """Run an operation of more than one transaction."""
        result: T = await operations.perform(ROUTE_OF[operation], self.call, arguments)
        return result

    async def ask(self, operation: Callable[..., Any], **arguments: Any) -> Any:
        """Return the answer of an operation as the plain values that the API would show."""
        return plain(await operations.perform(ROUTE_OF[operation], self.call, arguments))

    async def read(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.call.resources.db.read(work, *args, **kwargs)

    def waiting_for_me(self, tx: Tx) -> Choice:
        """Choose held mail that needs a decision, without what this session decided and may still undo."""
        leaving = delayed_actions.targets_of(tx, self.session.id)
        return replace(holds.FOR_A_PERSON, without=tuple(sorted(leaving)))

    async def decide(self, verb: Callable[..., T], *arguments: Any) -> T:
        """Runs a verb without a route: called with the person, the arguments and the time."""
        return await self.call.resources.db.write(verb, self.call.decider, *arguments, self.call.now())

    def may(self, permission: str) -> bool:
        return permission in self.call.caller.permissions

    @property
    def smtp(self) -> str:
        """Return where mail is handed in: if the server listens everywhere, at the host of its pages."""
        resources = self.call.resources
        host = resources.config.smtp.host
        if host in EVERYWHERE:
            host = urlsplit(resources.config.base_url).hostname or host
        return str(Endpoint(host, resources.ports.smtp))


def plain(answer: Any) -> Any:
    """Return the answer of an operation as plain values, as the API shows it."""
    return msgspec.json.decode(msgspec.json.encode(answer))


def go(path: str, notice: str = "", undo: str = "") -> Response:
    """Redirects to a page that shows a notice, with a button that posts to `undo`."""
    response = RedirectResponse(path, 303, headers=HEADERS)
    for name, value in ((NOTICE, notice), (UNDO, undo)):
        if value:
            response.set_cookie(
                name, quote(value), max_age=NOTICE_SECONDS, path="/app", httponly=True, samesite="lax"
            )
    return response


def read_notice(request: Request) -> str:
    """Return the notice. A part of a page that refreshes itself leaves it to the page that opens next."""
    if "hx-request" in request.headers:
        return ""
    return unquote(cookies.find(request, NOTICE)[:NOTICE_CHARACTERS])


def read_undo(request: Request) -> str:
    """Return the path that undoes. Only one of our own: a cookie set by somebody else leads nowhere."""
    path = unquote(cookies.find(request, UNDO)[:NOTICE_CHARACTERS])
    return path if path and own_path(path) == path else ""


def read_layout(tx: Tx, context: PageContext) -> Layout:
    scope = context.call.scope
    pod = pods.find(tx, scope, context.call.request.query_params.get("podId", ""))
    within = Scope(scope.account_id, pod.id) if pod is not None else scope
    shown, total = inboxes.list_within(tx, within, INBOXES_SHOWN, 0)
    found = pods.list_within(tx, scope, PODS_SHOWN, 0)[0] if scope.is_account else []
    return Layout(
        pods=found if len(found) > 1 else [],
        pod_id=pod.id if pod is not None else "",
        own_pod=name_of_own_pod(tx, scope),
        inboxes=shown,
        inbox_total=total,
        unread=inboxes.count_unread(tx, [inbox.id for inbox in shown]),
        held=holds.count_within(tx, scope, holds.HELD, choice=context.waiting_for_me(tx)),
        pause=pauses.find(tx, pauses.scope_of(scope)),
        last_event_id=events.last_id(tx, scope) or "",
        is_operator=operator.is_operator(tx, context.call.caller),
        own_pods=list_own_pods(tx, context),
        delayed=delayed_actions.list_of_session(tx, context.session.id),
    )


def name_of_own_pod(tx: Tx, scope: Scope) -> str:
    pod = pods.find(tx, scope, scope.pod_id) if scope.pod_id else None
    return "" if pod is None else pod.name or pod.client_id or ("default" if pod.is_default else pod.id)


def list_own_pods(tx: Tx, context: PageContext) -> list[Pod]:
    user = (
        users.find(tx, context.session.user_id)
        if context.session.user_id and context.call.scope.pod_id
        else None
    )
    if user is None or len(user.pod_ids) < 2:
        return []
    found = [pods.find(tx, Scope(user.account_id), pod_id) for pod_id in user.pod_ids]
    return [pod for pod in found if pod is not None]


def nonce_of(token: str) -> str:
    """Return the nonce of our own htmx attributes.

    It is the same for a session, since parts of a page are reloaded.
    """
    return blake2s(token.encode(), person=b"hx-nonce", digest_size=12).hexdigest()


def address_of(request: Request) -> str:
    """Return the open page, to return to; for a part of a page, the page that asked for it."""
    if "hx-current-url" in request.headers:
        return own_page(request.headers["hx-current-url"])
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path
