"""Inboxes over REST."""

import asyncio

import httpx2
import pytest

from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone


async def create(api: httpx2.AsyncClient, name: str, **fields: object) -> httpx2.Response:
    return await api.post("/v1/inboxes", json={"mailboxName": name, **fields})


async def test_an_inbox_is_created_read_back_and_changed(server: Server) -> None:
    created = await create(server.api, "support-eu", displayName="Support 👩‍💻")
    assert created.status_code == 201
    inbox = created.json()
    assert inbox["address"] == "support-eu@postroom.localhost"
    assert inbox["displayName"] == "Support 👩‍💻"
    assert inbox["createdAt"] == "2026-11-14T10:00:00.000Z"
    assert inbox["id"].startswith("inb_")
    assert (await server.api.get(f"/v1/inboxes/{inbox['id']}")).json() == inbox
    path = f"/v1/inboxes/{inbox['id']}"
    assert (await server.api.patch(path, json={})).json() == inbox
    assert (await server.api.patch(path, json={"displayName": "New"})).json()["displayName"] == "New"
    assert (await server.api.get(path)).json()["displayName"] == "New"
    assert (await server.api.patch(path, json={"displayName": None})).json()["displayName"] is None
    assert (await server.api.patch(path, json={"displayName": "x\r\n"})).status_code == 400
    assert (await server.api.get(path)).json()["displayName"] is None


BAD_NAMES = [
    "ab",
    "a" * 31,
    "Upper",
    "two..dots",
    ".dot",
    "dot.",
    "-a-",
    "sp ace",
    "tab\t",
    "line\n",
    "nul\x00x",
    "ünïcode",
    "\u0440\u0430ypal",  # Cyrillic look-alikes
    "a@b",
    "plus+tag",
    "",
    None,
    7,
    ["list"],
    {"a": 1},
    True,
]


async def test_a_bad_name_display_name_address_or_domain_is_refused_and_nothing_is_created(
    server: Server,
) -> None:
    for name in BAD_NAMES:
        answer = await server.api.post("/v1/inboxes", json={"mailboxName": name})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_mailbox_name"), name
    answer = await server.api.post("/v1/inboxes", json={})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_mailbox_name")
    for display_name in ["a\nb", "a\n", "a\x00b", "\x7f", "\u2028", "x" * 201, 5, ["a"]]:
        answer = await create(server.api, "hello", displayName=display_name)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), display_name
        assert answer.json()["field"] == "displayName"
    for name in ("postmaster", "abuse", "no-reply", "root"):
        answer = await create(server.api, name)
        assert (answer.status_code, answer.json()["error"]) == (409, "address_taken")
        assert answer.json()["field"] == "mailboxName"
    assert (await create(server.api, "hello", domain="elsewhere.example")).json()["error"] == "invalid_domain"
    assert (await server.api.get("/v1/inboxes")).json() == {"data": [], "total": 0}
    assert (await create(server.api, "hello", domain="postroom.localhost")).status_code == 201


async def test_an_address_in_use_is_taken_and_free_again_after_deletion(server: Server) -> None:
    inbox = (await create(server.api, "hello")).json()
    refused = (await create(server.api, "hello")).json()
    assert (refused["error"], refused["field"]) == ("address_taken", "mailboxName")
    deleted = await server.api.delete(f"/v1/inboxes/{inbox['id']}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert (await server.api.get(f"/v1/inboxes/{inbox['id']}")).status_code == 404
    assert (await server.api.delete(f"/v1/inboxes/{inbox['id']}")).status_code == 404
    assert (await create(server.api, "hello")).status_code == 201


async def test_of_many_at_once_one_gets_the_address(server: Server) -> None:
    answers = await asyncio.gather(*(create(server.api, "hello") for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 19
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 1


async def test_the_list_is_newest_first_and_paged_or_the_query_is_bad(server: Server) -> None:
    for number in range(5):
        server.clock.turn(1)
        await create(server.api, f"box-{number}")
    page = (await server.api.get("/v1/inboxes?limit=2&offset=1")).json()
    assert [inbox["address"].split("@")[0] for inbox in page["data"]] == ["box-3", "box-2"]
    assert page["total"] == 5
    assert len((await server.api.get("/v1/inboxes?limit=1000")).json()["data"]) == 5
    bad = ["limit=0", "limit=-1", "limit=abc", "limit=", "limit=1_0", "offset=-1", f"offset={10**30}"]
    for query in bad:
        answer = await server.api.get(f"/v1/inboxes?{query}")
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), query
        assert answer.json()["field"] == query.split("=")[0]


async def test_a_hundred_inboxes_a_day_and_on_a_page_and_deleting_does_not_make_room(
    server: Server,
) -> None:
    answers = await asyncio.gather(*(create(server.api, f"box-{number}") for number in range(130)))
    assert sorted(answer.status_code for answer in answers) == [201] * 100 + [429] * 30
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json()["error"] == "rate_limit_exceeded"
    assert refused.headers["Retry-After"] == str(14 * 3600)  # from 10:00 to midnight
    first = next(answer for answer in answers if answer.status_code == 201).json()
    await server.api.delete(f"/v1/inboxes/{first['id']}")
    assert (await create(server.api, "another")).status_code == 429
    server.clock.turn(14 * 3600 * 1000)
    assert (await create(server.api, "another")).status_code == 201
    assert (await server.api.get("/v1/inboxes")).json()["total"] == 100
    await create(server.api, "one-more")
    for limit in ("101", "9" * 40):
        page = (await server.api.get(f"/v1/inboxes?limit={limit}")).json()
        assert (len(page["data"]), page["total"]) == (100, 101)


NO_IDS = [
    "inb_" + "0" * 32,
    "inb_x",
    "x",
    "%00",
    "inb_" + "0" * 32 + "%0a",
    "inb_' or 1=1 --",
    "x" * 5000,
    "%ff",
    "é",
]


async def test_an_unknown_or_malformed_id_is_not_found(server: Server) -> None:
    for no_id in NO_IDS:
        path = f"/v1/inboxes/{no_id}"
        for answer in [
            await server.api.get(path),
            await server.api.delete(path),
            await server.api.patch(path, json={"displayName": "x"}),
            await server.api.get(f"{path}/api-keys"),
            await server.api.delete(f"{path}/api-keys/{no_id}"),
        ]:
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), no_id
