"""Signing in and out: a key, link, mail or passkey becomes a session, whose token is in a cookie."""

import asyncio
from urllib.parse import quote

import msgspec
from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from postroom.accounts import sessions
from postroom.accounts.people import challenges, mail_links, users
from postroom.accounts.sessions import SignInOrigin
from postroom.errors import ApiError, MethodNotAllowed, NotFound, Unauthorized, Unavailable
from postroom.external_mailboxes.fetching import Fetcher
from postroom.operations.people import passkeys
from postroom.operations.people import sign_in as verbs
from postroom.operations.people.sign_in import NewSession, Offer, SignInInput
from postroom.operations.people.single_sign_on import begin_with_address, is_offered
from postroom.operations.people.users import SIGN_IN_PATH
from postroom.processes import pools
from postroom.resources import Resources
from postroom.web.dashboard import single_sign_on, undo
from postroom.web.dashboard.attempts import FAILURE_SECONDS, Attempts
from postroom.web.dashboard.display.rendering import HEADERS, Renderer
from postroom.web.dashboard.forms import COOKIE, HOME, own_path, read_form, require_own_page
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.single_sign_on import SingleSignOn
from postroom.web.requests import cookies
from postroom.web.requests.request_limit import RequestLimit

PATH = SIGN_IN_PATH
PASSKEY_PATH = f"{PATH}/passkey"
BROWSER_COOKIE = "postroom_browser"
ATTEMPT_COOKIE = "postroom_attempt"
OFFERS_PER_MINUTE = 30  # to one address


class SignIn(Struct, frozen=True):
    key: str = ""
    link: str = ""
    invitation: str = ""
    mail: str = ""
    name: str = ""
    email: str = ""  # of the first owner
    address: str = ""  # where to send a sign-in link
    credential: str = ""  # what a device signed with a passkey
    next: str = HOME

    @property
    def input(self) -> SignInInput:
        return SignInInput(self.key.strip(), self.link, self.invitation, self.mail, self.name, self.email)

    @property
    def guessed(self) -> str:
        """The secret that could be guessed by repeated tries."""
        return self.invitation or self.mail or self.link or self.key.strip() or self.address or "passkey"


class SignInPage:
    """Pages for people without a session."""

    def __init__(self, resources: Resources, renderer: Renderer, fetcher: Fetcher) -> None:
        self._resources = resources
        self._renderer = renderer
        self._attempts = Attempts()
        self._offers = RequestLimit()
        self._single_sign_on = SingleSignOn(resources, fetcher)

    async def answer(self, request: Request) -> Response:
        if request.scope["path"] == PASSKEY_PATH:
            return await self._offer(request)
        if request.scope["path"] == single_sign_on.PATH:
            return await self._go_to_provider(request)
        if request.scope["path"] == single_sign_on.ANSWER_PATH:
            return await self._come_from_provider(request)
        if request.scope["path"] != PATH:
            raise NotFound("There is nothing at this address.")
        require_method(request, "GET", "HEAD", "POST")
        if request.method == "POST":
            return await self._post(request)
        query = request.query_params
        named = {name: query.get(name, "") for name in ("link", "invitation", "mail")}
        return await self._show(SignIn(**named, next=own_path(query.get("next", ""))))

    async def _show(self, form: SignIn, error: ApiError | None = None, is_asked: bool = False) -> Response:
        offer = Offer()
        if form.link or form.invitation or form.mail:
            offer = await self._resources.db.read(verbs.look_at, form.input, self._resources.now())
        response = self._renderer.page(
            "sign_in.html",
            200 if error is None else error.status,
            form=form,
            error=error,
            offer=offer,
            is_asked=is_asked,
            has_passkeys=passkeys.relying_party(self._resources.config) is not None,
            single_sign_on=single_sign_on.way_to(form.next) if self._is_single_sign_on else "",
        )
        if error is not None and error.retry_after is not None:
            response.headers["Retry-After"] = str(error.retry_after)
        return response

    async def _post(self, request: Request) -> Response:
        require_own_page(request, self._resources.config.base_url)
        form: SignIn = await read_form(request, SignIn)
        new, now = new_session(request), self._resources.now()
        visitor = new.visitor
        try:
            self._attempts.require(visitor.address, form.guessed, now)
            if form.address:
                return await self._ask(form, visitor)
            await self._begin(request, form, new)
        except Unauthorized as error:
            self._attempts.record_failure(visitor.address, form.guessed, now)
            await asyncio.sleep(FAILURE_SECONDS)
            return await self._show(without_secrets(form), error)
        except ApiError as error:
            return await self._show(without_secrets(form, keep=error.status == 400), error)
        self._attempts.forget(visitor.address, form.guessed)
        return with_cookie(go(own_path(form.next)), new.token, self._resources.config.base_url)

    async def _begin(self, request: Request, form: SignIn, new: NewSession) -> None:
        if form.credential:
            return await self._begin_with_passkey(request, form.credential, new)
        browser = cookies.find(request, BROWSER_COOKIE)
        config, now = self._resources.config, self._resources.now()
        await self._resources.db.write(verbs.begin, form.input, new, browser, config, now)

    async def _offer(self, request: Request) -> Response:
        """Return a challenge for the browser, and a cookie: the answer must come from this browser."""
        require_method(request, "POST")
        config, now = self._resources.config, self._resources.now()
        require_own_page(request, config.base_url)
        self._offers.count(visitor_of(request).address, OFFERS_PER_MINUTE, now).require()
        browser = sessions.new_token()
        options = await self._resources.db.write(passkeys.offer_sign_in, browser, config, now)
        response = Response(msgspec.json.encode(options), media_type="application/json", headers=HEADERS)
        return with_secret(response, ATTEMPT_COOKIE, browser, challenges.LIFETIME, config.base_url)

    @property
    def _is_single_sign_on(self) -> bool:
        return is_offered(self._resources.config)

    async def _go_to_provider(self, request: Request) -> Response:
        require_method(request, "GET")
        self._offers.count(visitor_of(request).address, OFFERS_PER_MINUTE, self._resources.now()).require()
        wanted = own_path(request.query_params.get("next", ""))
        try:
            response, browser = await self._single_sign_on.begin(wanted)
        except (Unauthorized, Unavailable) as error:
            return await self._show(SignIn(next=wanted), error)
        secret, base_url = single_sign_on.COOKIE, self._resources.config.base_url
        return with_secret(response, secret, browser, challenges.LIFETIME, base_url)

    async def _come_from_provider(self, request: Request) -> Response:
        """Finish a sign-in that another site redirected here: only the attempt of this browser counts."""
        require_method(request, "GET")
        config, now = self._resources.config, self._resources.now()
        new, browser = new_session(request), cookies.find(request, single_sign_on.COOKIE)
        try:
            attempt, proven = await self._single_sign_on.take_answer(request, browser)
            await self._resources.db.write(begin_with_address, proven, new, config, now)
        except ApiError as error:
            return await self._show(SignIn(), error)
        return with_cookie(go(own_path(attempt.next)), new.token, config.base_url)

    async def _begin_with_passkey(self, request: Request, credential: str, new: NewSession) -> None:
        """Sign in with a passkey. The challenge is used up first, whatever the result."""
        db, now = self._resources.db, self._resources.now()
        party = passkeys.require_party(self._resources.config)
        answer = passkeys.read_answer(credential)
        await db.write(passkeys.take_sign_in, answer, cookies.find(request, ATTEMPT_COOKIE), now)
        found = await db.read(passkeys.find_passkey, answer)
        sign_count = await pools.ONCE.run(passkeys.verify_use, answer, found, party)
        await db.write(verbs.begin_with_passkey, found, sign_count, new, now)

    async def _ask(self, form: SignIn, visitor: SignInOrigin) -> Response:
        """Send a sign-in link. The answer is the same for every address; repeated requests have to wait."""
        config, now = self._resources.config, self._resources.now()
        self._attempts.record_failure(visitor.address, form.address, now)
        browser = sessions.new_token()
        email = users.require_email(form.address)
        await self._resources.db.write(verbs.ask_for_link, email, browser, own_path(form.next), config, now)
        response = await self._show(SignIn(next=own_path(form.next)), is_asked=True)
        return with_secret(response, BROWSER_COOKIE, browser, mail_links.SIGN_IN_LIFETIME, config.base_url)


def with_secret(
    response: Response, name: str, secret: str, lifetime: int, base_url: str, path: str = PATH
) -> Response:
    """Sets a cookie that identifies this browser, for this path only."""
    response.set_cookie(
        name,
        secret,
        max_age=lifetime // 1000,
        path=path,
        secure=base_url.startswith("https://"),
        httponly=True,
        samesite="lax",
    )
    return response


def require_method(request: Request, *allowed: str) -> None:
    if request.method not in allowed:
        raise MethodNotAllowed(f"This page accepts {', '.join(allowed)}.", allow=allowed)


def without_secrets(form: SignIn, keep: bool = False) -> SignIn:
    """Return what is shown again after a refusal; a link is still valid after an error in its form."""
    shown = SignIn(name=form.name, email=form.email, next=own_path(form.next))
    return structs.replace(shown, link=form.link, invitation=form.invitation) if keep else shown


async def sign_out(context: PageContext) -> Response:
    await undo.do_all_now(context)
    await context.decide(verbs.sign_out)
    response = go(PATH)
    response.delete_cookie(COOKIE, path="/app")
    return response


def with_cookie(response: Response, token: str, base_url: str) -> Response:
    return with_secret(response, COOKIE, token, sessions.LIFETIME, base_url, path="/app")


def to_sign_in(request: Request) -> Response:
    """Returns to the wanted page after signing in. A part of a page reloads the whole page."""
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={**HEADERS, "HX-Refresh": "true"})
    query = f"?{request.url.query}" if request.url.query else ""
    wanted = own_path(f"{request.url.path}{query}") if request.method == "GET" else HOME
    return RedirectResponse(f"{PATH}?next={quote(wanted, safe='')}", 303, headers=HEADERS)


def new_session(request: Request) -> NewSession:
    return NewSession(visitor_of(request), sessions.new_token(), cookies.find(request, COOKIE))


def visitor_of(request: Request) -> SignInOrigin:
    address = request.client.host if request.client else ""
    return SignInOrigin(address, request.headers.get("user-agent", ""))
