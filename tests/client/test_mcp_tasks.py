"""The Tasks extension: a held send is a task, which a person ends; other clients see nothing of it."""

import re
from typing import Any

import httpx2
import pytest

from postroom.clock import DAY
from tests.api.test_messages import stranger
from tests.conftest import Server
from tests.outward.test_holds import EVERYTHING, add_key, decide, set_rule

pytestmark = pytest.mark.sqlite_alone  # a client speaks to no database

VERSION = "2026-07-28"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
BROWSER: dict[str, Any] = {**TASKS, "elicitation": {"url": {}}}


async def ask(
    api: httpx2.AsyncClient,
    method: str,
    params: dict[str, Any],
    capabilities: dict[str, Any],
    **more: str,
) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        **more,
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
        "Mcp-Name": params.get("name") or params.get("taskId") or params.get("uri") or "",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {name: value for name, value in headers.items() if value}
    answer: dict[str, Any] = (await api.post("/mcp", json=body, headers=headers)).json()
    return answer


async def sent(server: Server, inbox_id: str, capabilities: dict[str, Any], text: str) -> dict[str, Any]:
    order = {"to": "carol@there.example", "subject": "Offer", "body": text, "inbox_id": inbox_id}
    params = {"name": "send_email", "arguments": order}
    result: dict[str, Any] = (await ask(server.api, "tools/call", params, capabilities))["result"]
    return result


async def task(server: Server, task_id: str, capabilities: dict[str, Any] = TASKS) -> dict[str, Any]:
    result: dict[str, Any] = (await ask(server.api, "tasks/get", {"taskId": task_id}, capabilities))["result"]
    return result


async def test_a_held_send_is_a_task_until_a_person_decides(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    assert (await sent(server, inbox_id, TASKS, "free"))["resultType"] == "complete"
    await server.resources.db.write(set_rule, "inboxes", inbox_id, "always")
    plain = await sent(server, inbox_id, {}, "no tasks here")
    assert plain["structuredContent"]["is_held"] is True
    assert re.fullmatch(MOMENT, plain["structuredContent"]["hold"]["expires_at"])
    assert re.search(f"by {MOMENT},", plain["structuredContent"]["what_happens_next"])

    made = [await sent(server, inbox_id, TASKS, f"number {number}") for number in range(4)]
    assert {(each["resultType"], each["status"]) for each in made} == {("task", "working")}
    ids = [each["taskId"] for each in made]
    waiting = await task(server, ids[0])
    assert (waiting["resultType"], waiting["status"], "inputRequests" in waiting) == (
        "complete",
        "working",
        False,
    )
    page = f"{server.base_url}/app/approvals?message={ids[0]}"
    assert page in waiting["statusMessage"]
    asked = await task(server, ids[0], BROWSER)
    assert asked["status"] == "input_required"
    assert asked["inputRequests"]["approval"]["params"]["url"] == page

    answer = {"taskId": ids[0], "inputResponses": {"approval": {"action": "accept"}}}
    assert (await ask(server.api, "tasks/update", answer, BROWSER))["result"]["resultType"] == "complete"
    assert (await task(server, ids[0], BROWSER))["status"] == "input_required"  # nobody decided

    message = (await server.api.get(f"/v1/messages/{ids[0]}")).json()
    assert (await decide(server, message)).status_code == 200
    done = await task(server, ids[0])
    assert (done["status"], done["result"]["structuredContent"]["hold"]["state"]) == ("completed", "approved")

    person = await server.resources.db.write(add_key, server, None, EVERYTHING)
    async with server.client(person) as api:
        assert (await api.post(f"/v1/messages/{ids[1]}/reject", json={"note": "No"})).status_code == 200
    rejected = await task(server, ids[1])
    assert (rejected["status"], rejected["error"]["message"]) == ("failed", rejected["statusMessage"])

    for _ in range(2):
        assert "result" in await ask(server.api, "tasks/cancel", {"taskId": ids[2]}, TASKS)
    assert (await task(server, ids[2]))["status"] == "cancelled"
    assert "result" in await ask(server.api, "tasks/cancel", {"taskId": ids[0]}, TASKS)
    assert (await task(server, ids[0]))["status"] == "completed"

    server.clock.turn(4 * DAY)  # nobody decided
    while (await task(server, ids[3]))["status"] == "working":
        server.resources.db.ring("holds")
    assert (await task(server, ids[3]))["status"] == "failed"


async def test_nobody_sees_or_cancels_tasks_of_others(server: Server) -> None:
    """An unknown id, one of another account, and one of a message that never was held are answered alike."""
    inbox_id = await server.new_inbox("bob")
    free = (await sent(server, inbox_id, TASKS, "free"))["structuredContent"]["message_id"]
    await server.resources.db.write(set_rule, "inboxes", inbox_id, "always")
    held = (await sent(server, inbox_id, TASKS, "held"))["taskId"]
    reader = await server.resources.db.write(add_key, server, inbox_id, ["read"])
    async with await stranger(server) as outside, server.client(reader) as reading:
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            asked = ((outside, held), (server.api, free), (server.api, f"{held[:-1]}x"), (server.api, "task"))
            answers = [await ask(api, method, {"taskId": task_id}, TASKS) for api, task_id in asked]
            assert {each["error"]["code"] for each in answers} == {-32602}, method
            assert len({each["error"]["message"] for each in answers}) == 1, method
        refused = await ask(reading, "tasks/cancel", {"taskId": held}, TASKS)
        assert "permission" in refused["error"]["message"]
        assert (await task(server, held))["status"] == "working"
