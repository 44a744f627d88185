"""The audit log: what was decided, by whom, from where; and what was tried in vain."""

from typing import Any

import pytest

from postroom.clock import DAY, MINUTE
from postroom.upkeep import keep_evidence, upkeep_loop
from tests.conftest import Server


async def entries(server: Server, **query: str) -> list[dict[str, Any]]:
    answer = await server.api.get("/v1/audit", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


@pytest.mark.sqlite_alone
async def test_an_attempt_without_permission_is_counted_once_a_minute(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    key = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "agent"})).json()
    async with server.client(key["token"]) as agent:
        for _ in range(3):
            assert (await agent.delete(f"/v1/inboxes/{inbox_id}")).status_code == 403
        server.clock.turn(MINUTE)
        assert (await agent.delete(f"/v1/inboxes/{inbox_id}")).status_code == 403
        assert (await agent.get("/v1/audit")).status_code == 403
    tried = await entries(server, actor=key["id"], action="refused")
    assert [(entry["target"], entry["count"]) for entry in tried] == [
        ("GET /v1/audit", 1),
        ("DELETE /v1/inboxes/{inbox_id}", 1),
        ("DELETE /v1/inboxes/{inbox_id}", 3),
    ]
    assert tried[1]["actor"] == {"type": "key", "id": key["id"], "name": "agent"}
    assert tried[1]["address"] == "127.0.0.1"
    assert tried[1]["after"]["error"] == "forbidden"
    assert inbox_id in tried[1]["after"]["path"]


async def test_the_audit_is_filtered_by_time_and_kept_for_a_year(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    token = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()["token"]
    async with server.client(token) as agent:
        await agent.delete(f"/v1/inboxes/{inbox_id}")
        server.clock.turn(10 * MINUTE)
        await agent.delete(f"/v1/inboxes/{inbox_id}")
    assert len(await entries(server, action="refused", since="2026-11-14T10:05:00Z")) == 1
    assert len(await entries(server, action="refused", until="2026-11-14T10:05:00Z")) == 1
    assert (await server.api.get("/v1/audit?since=yesterday")).json()["field"] == "since"
    server.clock.turn(364 * DAY)
    await keep_evidence.one_round(server.resources)  # attempts join the chain once they are counted
    await upkeep_loop.one_round(server.resources)
    assert len(await entries(server, action="refused")) == 2
    server.clock.turn(2 * DAY)
    await upkeep_loop.one_round(server.resources)
    assert await entries(server, action="refused") == []
