"""Signing in and out: a key, a link or a mail becomes a session, whose token only a cookie holds."""

import asyncio
from urllib.parse import quote

from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from postroom.accounts import sessions
from postroom.accounts.people import mail_links, users
from postroom.accounts.sessions import SignInOrigin
from postroom.errors import ApiError, Unauthorized
from postroom.operations.people import sign_in as verbs
from postroom.operations.people.sign_in import Offer, Proof
from postroom.operations.people.users import SIGN_IN_PATH
from postroom.resources import Resources
from postroom.web.dashboard.attempts import FAILURE_SECONDS, Attempts
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display.rendering import HEADERS, Renderer
from postroom.web.dashboard.forms import COOKIE, HOME, own_path, read_form, require_own_page
from postroom.web.requests import cookies

PATH = SIGN_IN_PATH
BROWSER_COOKIE = "postroom_browser"


class SignIn(Struct, frozen=True):
    key: str = ""
    link: str = ""
    invitation: str = ""
    mail: str = ""
    name: str = ""
    email: str = ""  # of the first owner
    address: str = ""  # to which a link shall go
    next: str = HOME

    @property
    def proof(self) -> Proof:
        return Proof(self.key.strip(), self.link, self.invitation, self.mail, self.name, self.email)

    @property
    def guessed(self) -> str:
        """What somebody could try again and again."""
        return self.invitation or self.mail or self.link or self.key.strip() or self.address


class SignInDesk:
    """Where people without a session come."""

    def __init__(self, resources: Resources, renderer: Renderer) -> None:
        self._resources = resources
        self._renderer = renderer
        self._attempts = Attempts()

    async def answer(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._post(request)
        query = request.query_params
        named = {name: query.get(name, "") for name in ("link", "invitation", "mail")}
        return await self._show(SignIn(**named, next=own_path(query.get("next", ""))))

    async def _show(self, form: SignIn, error: ApiError | None = None, is_asked: bool = False) -> Response:
        offer = Offer()
        if form.link or form.invitation or form.mail:
            offer = await self._resources.db.read(verbs.look_at, form.proof, self._resources.now())
        response = self._renderer.page(
            "sign_in.html",
            200 if error is None else error.status,
            form=form,
            error=error,
            offer=offer,
            is_asked=is_asked,
        )
        if error is not None and error.retry_after is not None:
            response.headers["Retry-After"] = str(error.retry_after)
        return response

    async def _post(self, request: Request) -> Response:
        require_own_page(request, self._resources.config.base_url)
        form: SignIn = await read_form(request, SignIn)
        visitor, now = visitor_of(request), self._resources.now()
        try:
            self._attempts.require(visitor.address, form.guessed, now)
            if form.address:
                return await self._ask(request, form, visitor)
            token = sessions.new_token()
            await self._begin(request, form, visitor, token)
        except Unauthorized as error:
            self._attempts.note_failure(visitor.address, form.guessed, now)
            await asyncio.sleep(FAILURE_SECONDS)
            return await self._show(without_secrets(form), error)
        except ApiError as error:
            return await self._show(without_secrets(form, keep=error.status == 400), error)
        self._attempts.forget(visitor.address, form.guessed)
        return with_cookie(go(own_path(form.next)), token, self._resources.config.base_url)

    async def _begin(self, request: Request, form: SignIn, visitor: SignInOrigin, token: str) -> None:
        browser, old_token = cookies.find(request, BROWSER_COOKIE), cookies.find(request, COOKIE)
        config, now = self._resources.config, self._resources.now()
        await self._resources.db.write(
            verbs.begin, form.proof, visitor, browser, token, old_token, config, now
        )

    async def _ask(self, request: Request, form: SignIn, visitor: SignInOrigin) -> Response:
        """The same answer for every address; who asks often waits."""
        config, now = self._resources.config, self._resources.now()
        self._attempts.note_failure(visitor.address, form.address, now)
        browser = mail_links.new_token()
        email = users.require_email(form.address)
        await self._resources.db.write(verbs.ask_for_link, email, browser, own_path(form.next), config, now)
        response = await self._show(SignIn(next=own_path(form.next)), is_asked=True)
        response.set_cookie(
            BROWSER_COOKIE,
            browser,
            max_age=mail_links.SIGN_IN_LIFETIME // 1000,
            path=PATH,
            secure=config.base_url.startswith("https://"),
            httponly=True,
            samesite="lax",
        )
        return response


def without_secrets(form: SignIn, keep: bool = False) -> SignIn:
    """What is shown again after a refusal; a link whose form had a fault is still good."""
    shown = SignIn(name=form.name, email=form.email, next=own_path(form.next))
    return structs.replace(shown, link=form.link, invitation=form.invitation) if keep else shown


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
