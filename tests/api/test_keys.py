"""Keys: who may do what, and how long."""

import pytest

from postroom.accounts import accounts, keys
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone


async def second_account(server: Server) -> str:
    token = keys.new_token()
    account = await server.resources.db.write(accounts.add, "other", "developer", server.clock.now())
    await server.resources.db.write(keys.add, account.id, None, "key", token, server.clock.now())
    return token


async def new_inbox(server: Server, name: str = "hello") -> str:
    answer = await server.api.post("/v1/inboxes", json={"mailboxName": name})
    inbox_id: str = answer.json()["id"]
    return inbox_id


async def test_a_key_says_who_asks_and_without_one_every_api_path_is_unauthorized(server: Server) -> None:
    bad = ["", "Bearer", "Basic abc", "Bearer pr_wrong", f"Token {server.token}", "Bearer é"]
    for header in bad:
        for path in ("/v1/me", "/v1/inboxes", "/v1/no-such-path"):
            answer = await server.api.get(path, headers={b"Authorization": header.encode()})
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), header
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    answer = await server.api.get("/v1/me", headers={"Authorization": f"bEARER {server.token}"})
    assert answer.status_code == 200
    me = answer.json()
    assert me["accountName"] == "default"
    assert (me["plan"], me["scope"], me["inboxId"]) == ("free", "account", None)
    rows = await server.resources.db.read(lambda tx: tx.all("select * from keys"))
    stored = " ".join(str(row[column]) for row in rows for column in ("token_hash", "token_prefix", "name"))
    assert server.token not in stored
    assert server.token[10:30] not in stored


async def test_another_accounts_inbox_does_not_exist(server: Server) -> None:
    inbox_id = await new_inbox(server)
    async with server.client(await second_account(server)) as stranger:
        missing = await stranger.get("/v1/inboxes/inb_" + "0" * 32)
        for answer in [
            await stranger.get(f"/v1/inboxes/{inbox_id}"),
            await stranger.patch(f"/v1/inboxes/{inbox_id}", json={"displayName": "mine"}),
            await stranger.delete(f"/v1/inboxes/{inbox_id}"),
            await stranger.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "mine"}),
            await stranger.get(f"/v1/inboxes/{inbox_id}/api-keys"),
        ]:
            assert (answer.status_code, answer.json()) == (404, missing.json())
        assert (await stranger.get("/v1/inboxes")).json() == {"data": [], "total": 0}
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()["displayName"] is None


async def test_a_scoped_key_is_shown_once_listed_and_revoked_at_once(server: Server) -> None:
    inbox_id = await new_inbox(server)
    created = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "reader"})
    assert created.status_code == 201
    key = created.json()
    assert key["token"].startswith("pr_")
    assert key["last4"] == key["token"][-4:]
    listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/api-keys")).json()
    assert listed["total"] == 1
    assert set(listed["data"][0]) == {
        "id",
        "kind",
        "name",
        "podId",
        "inboxId",
        "permissions",
        "expiresAt",
        "createdBy",
        "tokenPrefix",
        "last4",
        "createdAt",
        "lastUsedAt",
        "approval",
        "limits",
        "originGuard",
    }
    async with server.client(key["token"]) as scoped:
        assert (await scoped.get("/v1/me")).json()["inboxId"] == inbox_id
        deleted = await server.api.delete(f"/v1/inboxes/{inbox_id}/api-keys/{key['id']}")
        assert deleted.status_code == 204
        assert (await scoped.get("/v1/me")).status_code == 401
    assert (await server.api.delete(f"/v1/inboxes/{inbox_id}/api-keys/{key['id']}")).status_code == 404


async def test_a_scoped_key_reaches_its_inbox_alone_and_ends_with_it(server: Server) -> None:
    own, other = await new_inbox(server, "own"), await new_inbox(server, "other")
    token = (await server.api.post(f"/v1/inboxes/{own}/api-keys", json={"name": "k"})).json()["token"]
    async with server.client(token) as scoped:
        assert (await scoped.get(f"/v1/inboxes/{own}")).status_code == 200
        assert (await scoped.get(f"/v1/inboxes/{other}")).status_code == 404
        listed = (await scoped.get("/v1/inboxes")).json()
        assert ([inbox["id"] for inbox in listed["data"]], listed["total"]) == ([own], 1)
        for answer in [
            await scoped.post("/v1/inboxes", json={"mailboxName": "third"}),
            await scoped.patch(f"/v1/inboxes/{own}", json={"displayName": "x"}),
            await scoped.delete(f"/v1/inboxes/{own}"),
            await scoped.get(f"/v1/inboxes/{own}/api-keys"),
            await scoped.post(f"/v1/inboxes/{own}/api-keys", json={"name": "more"}),
        ]:
            assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
        await server.api.delete(f"/v1/inboxes/{own}")
        assert (await scoped.get("/v1/me")).status_code == 401


async def test_an_inbox_has_at_most_twenty_keys(server: Server) -> None:
    inbox_id = await new_inbox(server)
    path = f"/v1/inboxes/{inbox_id}/api-keys"
    answers = [await server.api.post(path, json={"name": f"k{number}"}) for number in range(21)]
    assert [answer.status_code for answer in answers] == [201] * 20 + [422]
    assert answers[-1].json()["error"] == "api_key_limit_reached"


async def test_a_malformed_key_id_is_not_found_and_a_name_may_be_missing_but_not_unreadable(
    server: Server,
) -> None:
    inbox_id = await new_inbox(server)
    for no_id in ["key_" + "0" * 32, "key_x", "%00", "%ff", "x" * 5000, inbox_id]:
        answer = await server.api.delete(f"/v1/inboxes/{inbox_id}/api-keys/{no_id}")
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), no_id
    for given in ({}, {"name": ""}):
        answer = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json=given)
        assert (answer.status_code, answer.json()["name"]) == (201, "")
    for name in ["a\nb", "x" * 201, None, 3]:
        answer = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": name})
        assert (answer.status_code, answer.json()["field"]) == (400, "name")


async def test_the_last_use_of_a_key_is_remembered(server: Server) -> None:
    inbox_id = await new_inbox(server)
    key = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "k"})).json()
    await server.resources.db.write(keys.mark_used, {key["id"]: server.clock.now()})
    listed = (await server.api.get(f"/v1/inboxes/{inbox_id}/api-keys")).json()["data"]
    assert listed[0]["lastUsedAt"] == "2026-11-14T10:00:00.000Z"
