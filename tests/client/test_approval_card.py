"""The approval card: hosts with MCP Apps show a person what will be sent; nobody else gets any more."""

import json
from typing import Any

import pytest

from tests.api.test_send import first_message
from tests.client.test_mcp_tasks import TASKS, ask
from tests.conftest import Server
from tests.outward.test_holds import set_rule
from tests.outward.test_origin_guard import IBAN, lured

pytestmark = pytest.mark.sqlite_alone

APPS: dict[str, Any] = {
    "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
}
URI = "ui://postroom/approval.html"
KEY = "postroom/approval"


async def call(server: Server, name: str, capabilities: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    answer = await ask(server.api, "tools/call", {"name": name, "arguments": arguments}, capabilities)
    result: dict[str, Any] = answer["result"]
    return result


async def test_a_host_with_apps_gets_what_will_be_sent(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await server.resources.db.write(set_rule, "inboxes", inbox_id, "always")
    order = {
        "to": ["carol@there.example", "dora@there.example"],
        "subject": "Offer",
        "body": "x" * 30_000,
        "inbox_id": inbox_id,
        "attachments": [{"filename": "a.txt", "text": "hi"}],
        "options": {"bcc": ["eve@there.example"]},
    }
    made = await call(server, "send_email", APPS, **order)
    assert KEY in made["_meta"], made
    card = made["_meta"][KEY]
    assert (card["state"], card["reasons"], card["subject"]) == ("held", ["always"], "Offer")
    assert "carol@there.example" in card["to"]
    assert "dora@there.example" in card["to"]
    assert (card["bcc"], card["files"], card["fileCount"]) == (
        "eve@there.example",
        [{"name": "a.txt", "bytes": 2}],
        1,
    )
    assert (len(card["text"]), card["isCut"]) == (20_000, True)
    base_url, message_id = server.resources.config.base_url, made["structuredContent"]["message_id"]
    assert card["url"] == f"{base_url}/app/approvals?message={message_id}"
    assert server.token not in json.dumps(made)
    assert "x" * 100 not in json.dumps(made["content"])  # the model gets the same answer as before
    later = await call(server, "get_message_status", APPS, message_id=message_id)
    assert later["_meta"][KEY] == card
    for capabilities in ({}, TASKS):
        assert KEY not in (await call(server, "get_message_status", capabilities, message_id=message_id)).get(
            "_meta", {}
        )


async def test_the_page_is_a_resource_that_loads_nothing(server: Server) -> None:
    tools = (await ask(server.api, "tools/list", {}, APPS))["result"]["tools"]
    bound = {tool["name"] for tool in tools if tool.get("_meta", {}).get("ui", {}).get("resourceUri") == URI}
    assert bound == {"send_email", "reply_to_thread", "forward_message", "send_draft", "get_message_status"}
    read = await ask(server.api, "resources/read", {"uri": URI}, APPS)
    [page] = read["result"]["contents"]
    assert page["mimeType"] == "text/html;profile=mcp-app"
    assert page["_meta"]["ui"]["csp"] == {"connectDomains": [], "resourceDomains": []}
    for way in ("src=", "href=", "http://", "fetch(", "innerHTML", "eval(", "approve("):
        assert way not in page["text"], way


async def test_an_agent_is_told_of_which_email_a_value_came_and_not_which_value(server: Server) -> None:
    bob = await lured(server, "hold")
    bait = await first_message(server, bob)
    order = {"to": ["dan@example.org"], "subject": "Hi", "body": f"Pay to {IBAN}", "inbox_id": bob}
    made = await call(server, "send_email", {}, **order)
    said = made["structuredContent"]["what_happens_next"]
    assert f"iban of {bait['id']}" in said
    assert "DE89" not in json.dumps(made)
    shown = await call(server, "get_message_status", APPS, message_id=made["structuredContent"]["message_id"])
    assert shown["_meta"][KEY]["origins"] == [f"{IBAN.replace(' ', '')} (iban) of {bait['id']}"]
