"""Who calls is remembered for as long as nothing at all is written; what changes counts for the next call."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from postroom.accounts import keys, permissions
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import MINUTE, to_iso
from postroom.storage.database import Tx
from postroom.web.requests.authentication import CallerCache
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

CALLER = Caller("key_1", "acc_1", "first", "free", Scope("acc_1"), expires_at=1_000)


@pytest.fixture
async def inbox_id(server: Server) -> str:
    return await server.new_inbox("hello")


@pytest.fixture
async def key(server: Server, inbox_id: str) -> dict[str, Any]:
    ends = to_iso(server.clock.now() + MINUTE)
    made = await server.api.post("/v1/api-keys", json={"name": "agent", "expiresAt": ends})
    found: dict[str, Any] = made.json()
    return found


@pytest.fixture
async def agent(server: Server, key: dict[str, Any], inbox_id: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Has read before, and is remembered."""
    async with server.client(key["token"]) as client:
        for _ in range(3):
            assert (await read(client, inbox_id)).status_code == 200
        yield client


async def read(client: httpx2.AsyncClient, inbox_id: str) -> httpx2.Response:
    return await client.get(f"/v1/inboxes/{inbox_id}/messages")


async def test_a_key_that_was_revoked_elsewhere_reads_nothing_more(
    server: Server, inbox_id: str, key: dict[str, Any], agent: httpx2.AsyncClient
) -> None:
    await server.resources.db.write(keys.remove, key["id"])
    assert (await read(agent, inbox_id)).status_code == 401
    assert (await agent.get("/v1/me")).status_code == 401


async def test_a_key_that_expires_reads_nothing_more_though_nothing_was_written(
    server: Server, inbox_id: str, agent: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.resources.db, "version", lambda: 1)
    for _ in range(3):
        assert (await read(agent, inbox_id)).status_code == 200
    server.clock.turn(MINUTE)
    assert (await read(agent, inbox_id)).status_code == 401


async def test_a_permission_that_was_taken_away_counts_for_the_next_call(
    server: Server, inbox_id: str, key: dict[str, Any], agent: httpx2.AsyncClient
) -> None:
    def leave_sending(tx: Tx) -> None:
        tx.run("update keys set permissions = :kept where id = :id", kept=permissions.SEND, id=key["id"])

    await server.resources.db.write(leave_sending)
    assert (await read(agent, inbox_id)).status_code == 403


@pytest.mark.both_databases
async def test_an_inbox_that_is_gone_or_out_of_reach_is_not_there_for_the_next_call(
    server: Server, inbox_id: str, key: dict[str, Any], agent: httpx2.AsyncClient
) -> None:
    other = await server.new_inbox("other")
    for _ in range(3):
        assert (await read(agent, other)).status_code == 200

    def narrow(tx: Tx) -> None:
        tx.run("update keys set inbox_id = :inbox_id where id = :id", inbox_id=other, id=key["id"])

    await server.resources.db.write(narrow)
    assert (await read(agent, inbox_id)).status_code == 404
    assert (await server.api.delete(f"/v1/inboxes/{other}")).status_code == 204
    assert (await read(server.api, other)).status_code == 404


async def test_who_asks_again_and_again_is_looked_up_only_after_something_was_written(
    server: Server, inbox_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, looked_up, version = server.resources.db, [], [1]
    look_up = db.look_up

    def counted(*args: Any) -> Any:
        looked_up.append(args)
        return look_up(*args)

    monkeypatch.setattr(db, "look_up", counted)
    monkeypatch.setattr(db, "version", lambda: version[0])
    for path in (f"/v1/inboxes/{inbox_id}/messages", "/v1/me"):
        for _ in range(2):
            assert (await server.api.get(path)).status_code == 200
        looked_up.clear()
        for at, expected in ((1, 0), (1, 0), (2, 1), (2, 1)):
            version[0] = at
            assert (await server.api.get(path)).status_code == 200
            assert len(looked_up) == expected, path
        version[0] = 1


def test_nobody_is_remembered_whose_key_expired_or_where_nothing_tells_of_writes() -> None:
    known = CallerCache()
    known.put("pr_secret", (CALLER, None), 7)
    assert known.find_unchanged("pr_secret", None, 7, 999) == (CALLER, None)
    assert known.find_unchanged("pr_secret", None, 7, 1_000) is None
    assert known.find_unchanged("pr_secret", None, 8, 999) is None
    assert known.find_unchanged("pr_secret", "inb_1", 7, 999) is None
    assert known.find_unchanged("pr_other", None, 7, 999) is None
    known.put("pr_secret", (CALLER, None), None)
    assert known.find_unchanged("pr_secret", None, None, 999) is None
