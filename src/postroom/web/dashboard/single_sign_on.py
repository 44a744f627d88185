"""Redirects to a single sign-on provider, and takes its answer."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from postroom.accounts import sessions
from postroom.errors import NotFound, Unauthorized
from postroom.external_mailboxes.fetching import Fetcher
from postroom.operations.people import single_sign_on as verbs
from postroom.operations.people.single_sign_on import Attempt, ProvenAddress
from postroom.operations.people.users import SIGN_IN_PATH
from postroom.resources import Resources
from postroom.web.dashboard.display.rendering import HEADERS
from postroom.web.dashboard.forms import own_path
from postroom.web.oauth import openid
from postroom.web.oauth.openid import OpenIdClient

PATH = f"{SIGN_IN_PATH}/oidc"
ANSWER_PATH = f"{PATH}/callback"
COOKIE = "postroom_single_sign_on"
ERROR_CHARACTERS = 100


class SingleSignOn:
    def __init__(self, resources: Resources, fetcher: Fetcher) -> None:
        self._resources = resources
        self._client = OpenIdClient(resources.config, fetcher)

    @property
    def _redirect_uri(self) -> str:
        return f"{self._resources.config.base_url}{ANSWER_PATH}"

    async def begin(self, wanted: str) -> tuple[Response, str]:
        """Return the redirect, and a secret for this browser."""
        if not verbs.is_offered(self._resources.config):
            raise NotFound("Single sign-on is not set up on this server.")
        config, now = self._resources.config, self._resources.now()
        provider = await self._client.find_provider(now)
        state, browser = sessions.new_token(), sessions.new_token()
        attempt = await self._resources.db.write(verbs.begin_attempt, state, browser, own_path(wanted), now)
        url = openid.authorization_url(provider, config, attempt, state, self._redirect_uri)
        return RedirectResponse(url, 303, headers=HEADERS), browser

    async def take_answer(self, request: Request, browser: str) -> tuple[Attempt, ProvenAddress]:
        """Take the provider's answer. The attempt is used up first, whatever it says."""
        query, now = request.query_params, self._resources.now()
        attempt = await self._resources.db.write(verbs.take_attempt, query.get("state", ""), browser, now)
        issuer = query.get("iss")
        if issuer is not None and issuer != self._resources.config.oidc_issuer:
            raise Unauthorized("The response came from a different provider. Try again.")  # RFC 9207
        code = query.get("code", "")
        if not code or len(code) > openid.CODE_CHARACTERS:
            raise Unauthorized(f"The provider did not sign you in{reason_of(query.get('error', ''))}.")
        return attempt, await self._client.prove(attempt, code, self._redirect_uri, now)


def reason_of(error: str) -> str:
    shown = "".join(character for character in error if character.isalnum() or character in " _-")
    return f": {shown[:ERROR_CHARACTERS]}" if shown else ""


def way_to(wanted: str) -> str:
    return f"{PATH}?{urlencode({'next': wanted})}"
