"""Passkeys: added, named, used and removed, with a device in software; and every refusal."""

import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.clock import MINUTE
from tests.api.test_dashboard import browser, do_it_now, signed_in
from tests.api.test_people import audit_of, invite, links_of
from tests.authenticator import Authenticator, to_text
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.ports import free_port

pytestmark = pytest.mark.sqlite_alone

PAGE = "/app/settings/passkeys"
SIGN_IN = "/app/sign-in"


@pytest.fixture
async def named(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    """A server that is reached by a name: browsers know no passkeys at a bare address."""
    port = free_port()
    where = {"HTTP": f"127.0.0.1:{port}", "BASE_URL": f"http://localhost:{port}"}
    config = settings(tmp_path, DATABASE_URL=database_url, **where)
    async with running_server(config, clock) as running:
        yield running


@asynccontextmanager
async def user(server: Server, email: str = "ann@example.org") -> AsyncIterator[httpx2.AsyncClient]:
    await invite(server, email)
    async with browser(server) as page:
        token = (await links_of(server, "invitation"))[-1]
        answer = await page.post(SIGN_IN, data={"invitation": token, "name": "Ann"})
        assert answer.status_code == 303, answer.text
        yield page


async def options_for_adding(page: httpx2.AsyncClient) -> dict[str, Any]:
    answer = await page.post(f"{PAGE}/new/options", data={})
    assert answer.status_code == 200, answer.text
    options: dict[str, Any] = answer.json()
    return options


async def add(page: httpx2.AsyncClient, device: Authenticator, name: str = "Phone") -> httpx2.Response:
    credential = device.create(await options_for_adding(page))
    return await page.post(PAGE, data={"credential": credential, "name": name})


async def options_for_sign_in(page: httpx2.AsyncClient) -> dict[str, Any]:
    answer = await page.post(f"{SIGN_IN}/passkey")
    assert answer.status_code == 200, answer.text
    options: dict[str, Any] = answer.json()
    return options


async def show(page: httpx2.AsyncClient, credential: str) -> httpx2.Response:
    return await page.post(SIGN_IN, data={"credential": credential})


async def sign_in(page: httpx2.AsyncClient, device: Authenticator, **changed: str) -> httpx2.Response:
    return await show(page, device.get(await options_for_sign_in(page), **changed))


def device_of(server: Server) -> Authenticator:
    return Authenticator(server.base_url)


@pytest.mark.both_databases
async def test_a_user_adds_passkeys_names_them_signs_in_and_removes_one(named: Server) -> None:
    phone, key = device_of(named), device_of(named)
    async with user(named) as page, browser(named) as elsewhere:
        assert (await add(page, phone)).headers["location"] == PAGE
        assert (await add(page, key, "Key")).status_code == 303
        shown = (await page.get(PAGE)).text
        assert 'value="Phone"' in shown
        assert 'value="Key"' in shown
        for device in (phone, key, phone):
            answer = await sign_in(elsewhere, device)
            assert (answer.status_code, answer.headers["location"]) == (303, "/app")
        assert "Ann" in (await elsewhere.get("/app/sessions")).text
        [first] = [each for each in await passkeys_of(named) if each["name"] == "Phone"]
        await page.post(f"{PAGE}/{first['id']}", data={"name": "Old phone"})
        assert 'value="Old phone"' in (await page.get(PAGE)).text
        assert (await page.post(f"{PAGE}/{first['id']}/remove")).status_code == 303
        await do_it_now(page)
        refused = await sign_in(elsewhere, phone)
        assert (refused.status_code, "is unknown here" in refused.text) == (401, True)
        assert (await sign_in(elsewhere, key)).status_code == 303
    [ann] = (await named.api.get("/v1/users")).json()["data"]
    assert ann["passkeys"] == 1
    for action in ("passkey.added", "passkey.renamed", "passkey.removed"):
        assert (await audit_of(named, action))[0]["actor"]["id"] == ann["id"], action
    letters = await named.resources.db.read(lambda tx: tx.all("select subject from letters"))
    assert [row["subject"] for row in letters].count("A passkey was added") == 2


async def passkeys_of(server: Server) -> list[Any]:
    return await server.resources.db.read(lambda tx: tx.all("select * from passkeys order by created_at, id"))


async def refusals(server: Server, page: httpx2.AsyncClient, device: Authenticator) -> dict[str, str]:
    """What is shown at the sign-in page, and why it must not do."""
    elsewhere = Authenticator("https://evil.example", held=device.held)
    unverified = Authenticator(device.origin, verifies=False, held=device.held)
    stranger = Authenticator(device.origin)
    stranger.create(
        {
            **await options_for_sign_in(page),
            "attestation": "none",
            "pubKeyCredParams": [{"alg": -7}],
            "rp": {"id": "localhost"},
            "user": {"id": device.held[-1].user_handle},
        }
    )
    forged = Authenticator(device.origin, held=[stranger.held[0]])
    forged.held[0].id = device.held[-1].id
    used = await options_for_sign_in(page)
    assert (await show(page, device.get(used))).status_code == 303
    of_other_browser = await _options_elsewhere(server)
    return {
        "wrong origin": elsewhere.get(await options_for_sign_in(page)),
        "not verified": unverified.get(await options_for_sign_in(page)),
        "wrong challenge": device.get(await options_for_sign_in(page), challenge=to_text(b"x" * 32)),
        "used challenge": device.get(used),
        "challenge of another browser": device.get(of_other_browser),
        "other account's user": device.get(
            await options_for_sign_in(page), user_handle=to_text(b"usr_somebody")
        ),
        "signed by another key": forged.get(await options_for_sign_in(page)),
        "no JSON": "{",
        "odd id": device.get(await options_for_sign_in(page)).replace('"id": "', '"id": "\\u0000'),
    }


async def _options_elsewhere(server: Server) -> dict[str, Any]:
    async with browser(server) as other:
        return await options_for_sign_in(other)


async def test_what_a_passkey_must_not_open(named: Server) -> None:
    device = device_of(named)
    async with user(named) as page:
        await add(page, device)
    async with browser(named) as page:
        tried = await refusals(named, page, device)
        named.clock.turn(MINUTE)
        for why, credential in tried.items():
            named.clock.turn(MINUTE)
            assert (await show(page, credential)).status_code == 401, why


async def test_a_count_that_does_not_grow_is_a_copy_and_none_at_all_is_fine(named: Server) -> None:
    device = device_of(named)
    async with user(named) as page:
        await add(page, device)
        for _ in range(2):
            assert (await sign_in(page, device)).status_code == 303
        device.held[0].count = 0  # as a copy made before has it
        refused = await sign_in(page, device)
        assert (refused.status_code, "sign count" in refused.text) == (401, True)
        shared = Authenticator(named.base_url, counts=False)
        await add(page, shared)
        for _ in range(2):
            assert (await sign_in(page, shared)).status_code == 303


async def test_a_challenge_ends_after_ten_minutes(named: Server) -> None:
    device = device_of(named)
    async with user(named) as page:
        await add(page, device)
        late = device.create(await options_for_adding(page))
        options = await options_for_sign_in(page)
        named.clock.turn(10 * MINUTE)
        assert (await show(page, device.get(options))).status_code == 401
        assert (await page.post(PAGE, data={"credential": late, "name": "Late"})).status_code == 401


async def test_a_passkey_is_added_by_the_session_that_asked_alone(named: Server) -> None:
    device = device_of(named)
    async with user(named) as ann, user(named, "bob@example.org") as bob:
        stolen = device.create(await options_for_adding(ann))
        assert (await bob.post(PAGE, data={"credential": stolen})).status_code == 401
        lying = Authenticator("https://evil.example").create(await options_for_adding(ann))
        assert (await ann.post(PAGE, data={"credential": lying})).status_code == 401
        good = device.create(await options_for_adding(ann))
        assert (await ann.post(PAGE, data={"credential": good})).status_code == 303
        assert (await ann.post(PAGE, data={"credential": good})).status_code == 401
        [kept] = await passkeys_of(named)
        for path in (f"{PAGE}/{kept['id']}", f"{PAGE}/{kept['id']}/remove"):
            assert (await bob.post(path, data={"name": "Mine"})).status_code == 404
        copied = Authenticator(named.base_url)
        copied.create(await options_for_adding(bob))
        copied.held[0].id = device.held[-1].id
        again = copied.created_again(await options_for_adding(bob))
        assert (await bob.post(PAGE, data={"credential": again})).status_code == 400
    assert len(await passkeys_of(named)) == 1


async def test_a_user_has_at_most_twenty_and_they_end_with_him(named: Server) -> None:
    device = device_of(named)
    async with user(named) as page:
        for _ in range(20):
            assert (await add(page, device)).status_code == 303
        refused = await add(page, device)
        assert (refused.status_code, "at most 20" in refused.text) == (400, True)
        kept = Authenticator(named.base_url, held=device.held[:1])
        assert (await sign_in(page, kept)).status_code == 303
        [ann] = (await named.api.get("/v1/users")).json()["data"]
        assert (await named.api.delete(f"/v1/users/{ann['id']}")).status_code == 204
        assert (await sign_in(page, kept)).status_code == 401
    assert await passkeys_of(named) == []


async def test_a_session_of_a_key_has_no_passkeys_and_a_bare_address_neither(server: Server) -> None:
    async with signed_in(server) as page:
        assert "Sign in as a user to add passkeys" in html.unescape((await page.get(PAGE)).text)
        assert (await page.post(f"{PAGE}/new/options", data={})).status_code == 400
    async with user(server) as page:
        assert "POSTROOM_BASE_URL" in (await page.get(PAGE)).text
        assert (await page.post(f"{SIGN_IN}/passkey")).status_code == 400
        assert "data-passkey" not in (await page.get(SIGN_IN)).text


async def test_offers_are_for_users_on_our_own_pages_and_limited_by_address(named: Server) -> None:
    async with signed_in(named) as page:
        assert (await page.post(f"{PAGE}/new/options", data={})).status_code == 403
    async with browser(named, Origin="https://evil.example") as page:
        assert (await page.post(f"{SIGN_IN}/passkey")).status_code == 403
    async with browser(named) as page:
        assert (await page.get(f"{SIGN_IN}/passkey")).status_code == 405
        assert (await page.get(f"{SIGN_IN}/nothing")).status_code == 404
        codes = [(await page.post(f"{SIGN_IN}/passkey")).status_code for _ in range(31)]
        assert codes == [200] * 30 + [429]
