"""Signing in and out: a key or a link becomes a session, whose token only the browser's cookie holds."""

import asyncio
from urllib.parse import quote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from postroom.accounts import keys, sessions
from postroom.accounts.sessions import SignInOrigin, SignInProof
from postroom.errors import ApiError, Forbidden, Unauthorized
from postroom.resources import Resources, Tx
from postroom.web.dashboard.attempts import FAILURE_SECONDS, Attempts
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display.rendering import HEADERS, Renderer
from postroom.web.dashboard.forms import COOKIE, HOME, own_path, read_form, require_own_page
from postroom.web.requests import cookies

PATH = "/app/sign-in"


class SignIn(Struct, frozen=True):
    key: str = ""
    link: str = ""
    name: str = ""
    next: str = HOME


class SignInDesk:
    """Where people without a session come."""

    def __init__(self, resources: Resources, renderer: Renderer) -> None:
        self._resources = resources
        self._renderer = renderer
        self._attempts = Attempts()

    async def answer(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._sign_in(request)
        query = request.query_params
        return self._show(SignIn(link=query.get("link", ""), next=own_path(query.get("next", ""))))

    def _show(self, form: SignIn, error: ApiError | None = None) -> Response:
        response = self._renderer.page(
            "sign_in.html", 200 if error is None else error.status, form=form, error=error
        )
        if error is not None and error.retry_after is not None:
            response.headers["Retry-After"] = str(error.retry_after)
        return response

    async def _sign_in(self, request: Request) -> Response:
        require_own_page(request, self._resources.config.base_url)
        form: SignIn = await read_form(request, SignIn)
        visitor = visitor_of(request)
        proof, now = form.link or form.key.strip(), self._resources.now()
        try:
            self._attempts.require(visitor.address, proof, now)
            token = sessions.new_token()
            await self._resources.db.write(begin, form, visitor, token, cookies.find(request, COOKIE), now)
        except Unauthorized as error:
            self._attempts.note_failure(visitor.address, proof, now)
            await asyncio.sleep(FAILURE_SECONDS)
            return self._show(SignIn(name=form.name, next=own_path(form.next)), error)
        except ApiError as error:
            return self._show(SignIn(name=form.name, next=own_path(form.next)), error)
        self._attempts.forget(visitor.address, proof)
        return with_cookie(go(own_path(form.next)), token, self._resources.config.base_url)


def begin(tx: Tx, form: SignIn, visitor: SignInOrigin, token: str, old_token: str, now: int) -> None:
    """A new session with a new token; one that the browser had before ends."""
    proof, name = prove(tx, form, now)
    old = sessions.find(tx, old_token, now) if old_token else None
    if old is not None:
        sessions.remove(tx, old[1].reach, old[0].id)
    sessions.add(tx, proof, form.name.strip() or name, visitor, token, now)


def prove(tx: Tx, form: SignIn, now: int) -> tuple[SignInProof, str]:
    """What the session may do, and a name for it."""
    if form.link:
        link = sessions.take_link(tx, form.link, now)
        if link is None:
            raise Unauthorized(
                "This link was used before, or is too old. `postroom login-link` makes a new one."
            )
        return link, "owner"
    caller = keys.find_caller(tx, form.key.strip(), now)
    if caller is None:
        raise Unauthorized("This API key is not valid. It may have been revoked.")
    if caller.inbox_id is not None:
        raise Forbidden("A key of one inbox is for programs. Sign in with a key of the account or of a pod.")
    proof = SignInProof(caller.account_id, caller.key_id, is_operator=False, by_key=True)
    return proof, caller.key_name or "owner"


async def sign_out(desk: Desk) -> Response:
    await desk.call.resources.db.write(sessions.remove, desk.call.reach, desk.session.id)
    response = go(PATH)
    response.delete_cookie(COOKIE, path="/app")
    return response


def with_cookie(response: Response, token: str, base_url: str) -> Response:
    response.set_cookie(
        COOKIE,
        token,
        max_age=sessions.LIFETIME // 1000,
        path="/app",
        secure=base_url.startswith("https://"),
        httponly=True,
        samesite="lax",
    )
    return response


def to_sign_in(request: Request) -> Response:
    """Back to where he wanted to be, after signing in. A part of a page reloads the whole of it."""
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={**HEADERS, "HX-Refresh": "true"})
    query = f"?{request.url.query}" if request.url.query else ""
    wanted = own_path(f"{request.url.path}{query}") if request.method == "GET" else HOME
    return RedirectResponse(f"{PATH}?next={quote(wanted, safe='')}", 303, headers=HEADERS)


def visitor_of(request: Request) -> SignInOrigin:
    address = request.client.host if request.client else ""
    return SignInOrigin(address, request.headers.get("user-agent", ""))
