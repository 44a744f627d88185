"""The key that the API reference creates for a signed-in person: no more than the person, for an hour."""

from typing import Any

import pytest

from postroom.clock import HOUR
from tests.api.test_dashboard import browser, signed_in
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone
PATH = "/app/reference/key"


async def keys_of(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.api.get("/v1/api-keys")).json()["data"]
    return [each for each in found if each["name"] == "API reference"]


async def test_a_key_can_do_what_the_person_can_for_an_hour_and_the_next_one_replaces_it(
    server: Server,
) -> None:
    body = {"name": "reader", "permissions": ["read", "manage"]}
    reader = (await server.api.post("/v1/api-keys", json=body)).json()["token"]
    async with signed_in(server, reader) as page:
        made = await page.post(PATH)
        assert made.headers["cache-control"] == "no-store"
        async with server.client(made.json()["token"]) as tried:
            assert (await tried.get("/v1/me")).json()["permissions"] == ["read", "manage"]
            server.clock.turn(HOUR)
            assert (await tried.get("/v1/me")).status_code == 401
        [old] = await keys_of(server)
        assert (await page.post(PATH)).status_code == 200
        [new] = await keys_of(server)
        assert new["id"] != old["id"]
        assert (await page.post(PATH)).status_code == 200
        assert len(await keys_of(server)) == 2  # a second tab keeps its key


async def test_a_key_is_created_for_nobody_else(server: Server) -> None:
    reader = (await server.api.post("/v1/api-keys", json={"permissions": ["read"]})).json()["token"]
    async with signed_in(server, reader) as page:
        assert (await page.post(PATH)).status_code == 403
    async with signed_in(server) as page:
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.example"}):
            assert (await page.post(PATH, headers=headers)).status_code == 403
        assert (await page.get(PATH)).status_code in (404, 405)
    async with browser(server) as page:
        assert (await page.post(PATH)).status_code == 303
    assert await keys_of(server) == []
