"""Feedback: any key gives it, within limits, and whoever runs the server reads it."""

import asyncio
import json
from typing import Any

import pytest

from postroom.clock import DAY, start_of_day
from postroom.events import feedback
from postroom.limits import FEEDBACK_A_DAY, FEEDBACK_CONTEXT_BYTES
from tests.api.test_dashboard import new_link, signed_in
from tests.api.test_keys import second_account
from tests.conftest import Server

TOLD: dict[str, Any] = {"type": "bug", "message": "The <b>search</b> finds nothing.\nNot even once."}
REFUSED: list[tuple[Any, str]] = [
    ({"message": "x"}, "type"),
    ({**TOLD, "type": "praise"}, "type"),
    ({"type": "bug"}, "message"),
    ({**TOLD, "message": ""}, "message"),
    ({**TOLD, "message": " \n"}, "message"),
    ({**TOLD, "message": "a\0b"}, "message"),
    ({**TOLD, "message": "x" * (feedback.MESSAGE_CHARACTERS + 1)}, "message"),
    ({**TOLD, "context": [1]}, "context"),
    ({**TOLD, "context": "x"}, "context"),
    ({**TOLD, "context": {"a": "x" * FEEDBACK_CONTEXT_BYTES}}, "context"),
]


async def kept(server: Server) -> list[feedback.Feedback]:
    return await server.resources.db.read(feedback.list_newest, None, 100)


@pytest.mark.sqlite_alone
async def test_any_key_gives_feedback_with_a_context_of_its_own(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    made = await server.api.post(
        f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "agent", "permissions": ["read"]}
    )
    context = {"route": "GET /v1/search", "tries": [1, {"a": None}], "é": "\0"}
    async with server.client(made.json()["token"]) as agent:
        answer = await agent.post("/v1/feedback", json={**TOLD, "context": context})
    assert answer.status_code == 201, answer.text
    [told] = await kept(server)
    assert answer.json() == {"id": told.id}
    assert (told.type, told.message, told.key_name) == ("bug", TOLD["message"], "agent")
    assert told.context is not None
    assert json.loads(told.context) == context
    async with server.client("pr_wrong") as stranger:
        assert (await stranger.post("/v1/feedback", json=TOLD)).status_code == 401


@pytest.mark.sqlite_alone
async def test_what_is_no_feedback_is_refused_at_its_field(server: Server) -> None:
    for body, field in REFUSED:
        answer = await server.api.post("/v1/feedback", json=body)
        told = answer.status_code, answer.json()["error"], answer.json()["field"]
        assert told == (400, "bad_request", field), body
    deep = b'{"type": "bug", "message": "m", "context": {"a": ' + b"[" * 100_000 + b"}}"
    headers = {"Content-Type": "application/json"}
    assert (await server.api.post("/v1/feedback", content=deep, headers=headers)).status_code == 400
    assert await kept(server) == []
    most = {"a": "x" * (FEEDBACK_CONTEXT_BYTES - len('{"a":""}'))}
    fits = {"type": "bug", "message": "x" * feedback.MESSAGE_CHARACTERS, "context": most}
    assert (await server.api.post("/v1/feedback", json=fits)).status_code == 201


@pytest.mark.sqlite_alone
async def test_a_key_gives_twenty_a_day_also_at_once(server: Server) -> None:
    answers = await asyncio.gather(*[server.api.post("/v1/feedback", json=TOLD) for _ in range(25)])
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 5
    assert all(answer.json()["error"] == "rate_limit_exceeded" for answer in refused)
    assert len(await kept(server)) == FEEDBACK_A_DAY
    other = (await server.api.post("/v1/api-keys", json={"name": "other"})).json()["token"]
    async with server.client(other) as second:
        assert (await second.post("/v1/feedback", json=TOLD)).status_code == 201
    tomorrow = start_of_day(server.clock.now()) + DAY
    assert int(refused[0].headers["retry-after"]) <= DAY // 1000
    server.clock.turn(tomorrow - server.clock.now())
    assert (await server.api.post("/v1/feedback", json=TOLD)).status_code == 201


async def test_whoever_runs_the_server_reads_exports_and_removes_it(server: Server) -> None:
    stranger = await second_account(server)
    async with server.client(stranger) as api:
        told = {"type": "friction", "message": "=HYPERLINK(1)", "context": {"b": 1}}
        given = (await api.post("/v1/feedback", json=told)).json()["id"]
    await server.api.post("/v1/feedback", json=TOLD)
    async with signed_in(server, stranger) as page:
        for path in ("/app/operator/feedback", "/app/operator/feedback.csv", "/app/operator/captured"):
            assert (await page.get(path)).status_code == 403
        assert (await page.post(f"/app/operator/feedback/{given}/remove")).status_code == 403
    async with signed_in(server, link=await new_link(server, is_operator=True)) as page:
        shown = (await page.get("/app/operator/feedback")).text
        assert "The &lt;b&gt;search&lt;/b&gt; finds nothing." in shown
        assert "HYPERLINK" in shown
        bugs = (await page.get("/app/operator/feedback?type=bug")).text
        assert "search" in bugs
        assert "HYPERLINK" not in bugs
        assert "'=HYPERLINK" in (await page.get("/app/operator/feedback.csv")).text
        assert (await page.post(f"/app/operator/feedback/{given}/remove")).status_code == 303
        assert (await page.post(f"/app/operator/feedback/{given}/remove")).status_code == 404
    assert [each.type for each in await kept(server)] == ["bug"]
    async with server.client(stranger) as api:
        [removed] = (await api.get("/v1/audit?action=feedback.removed")).json()["data"]
    assert removed["target"] == given
