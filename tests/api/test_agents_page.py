"""Pages about who acts by itself, and about who is told: agents, webhooks of the list, notifications."""

import re
from dataclasses import replace

import httpx2
import pytest

from postroom.web.app import App
from postroom.web.streams.hub import Hubs
from postroom.web.streams.stream import Streams
from tests.api.test_dashboard import do_it_now, new_link, signed_in
from tests.conftest import Server
from tests.doubles import post_intake
from tests.outbound import message_of, send
from tests.raw_mails import raw_mail
from tests.storage.test_hot_queries import RefusingCourier

pytestmark = pytest.mark.sqlite_alone


async def agent_of(server: Server, inbox_id: str, **fields: object) -> dict[str, str]:
    body = {"name": "night agent", **fields}
    made: dict[str, str] = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json=body)).json()
    return made


async def test_an_agent_is_shown_with_its_day_and_its_time_line(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    agent = await agent_of(server, inbox_id, limits={"perDay": 7})
    await server.deliver(raw_mail(subject="Question"), "bob")
    async with server.client(agent["token"]) as own:
        await own.post(f"/v1/inboxes/{inbox_id}/drafts", json={"subject": "A thought"})
        by_agent = replace(server, api=own)
        first = await send(by_agent, inbox_id, "carol@there.example", subject="Gone", undoSeconds=60)
        await own.post(f"/v1/messages/{first}/cancel")
        await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
        second = await send(
            by_agent, inbox_id, "carol@there.example", subject="Answer", expectReplyBy={"days": 1}
        )
        await own.delete(f"/v1/inboxes/{inbox_id}")
    async with signed_in(server, name="Ann", link=await new_link(server)) as page:
        listed = (await page.get("/app/agents")).text
        assert f">night agent</a> <code>…{agent['token'][-4:]}</code>" in " ".join(listed.split())
        row = re.findall(rf'<tr data-row="{agent["id"]}".*?</tr>', listed, re.DOTALL)[0]
        assert row.count("<a ") == 1
        assert "2 of 7" in " ".join(listed.split())
        assert '<td class="number" data-label="Held">' in row
        assert '<span class="state amber">1</span>' in row
        waiting = (await page.get(f"/app/approvals?key={agent['id']}")).text
        assert f'data-row="{second}"' in waiting
        assert f'data-row="{first}"' not in waiting
        waiting_for = (await page.get(f"/app/agents/{agent['id']}")).text
        form = {"decision": "reject", "contentHash": "", "note": "not like this"}
        await page.post(f"/app/approvals/{second}", data=form)
        await do_it_now(page)
        shown = (await page.get(f"/app/agents/{agent['id']}")).text
        for words in ("from Alice: Question", "A thought", "to carol@there.example: Answer", "not like this"):
            assert words in shown
        asked = f'<a href="/app/mail?state=awaiting&amp;inboxId={inbox_id}">1 answer</a>'
        assert asked in waiting_for
        assert "overdue" not in waiting_for
        assert "rejected by Ann: Answer" in shown
        assert ">submitted</span>" in shown
        assert ">refused</span>" in shown
        assert (await page.get("/app/agents/key_unknown")).status_code == 404


async def test_the_time_line_has_the_tools_that_an_agent_called(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    agent = await agent_of(server, inbox_id)
    resources = server.resources
    app = App(resources, RefusingCourier(), Streams(resources, Hubs(resources)), post_intake(resources))
    headers = {"Authorization": f"Bearer {agent['token']}", "Accept": "application/json, text/event-stream"}
    inside = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(
        transport=inside, base_url=resources.config.base_url, headers=headers
    ) as own:
        for tool, arguments in (
            ("list_unread_threads", {}),
            ("list_unread_threads", {}),
            ("read_thread", {"thread_id": "thr_of_nobody"}),
            ("no_such_tool", {"inbox_id": 5}),
        ):
            call = {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
            await own.post("/mcp", json={"jsonrpc": "2.0", "id": 1, **call})
    await app.save_use()
    async with signed_in(server) as page:
        shown = " ".join((await page.get(f"/app/agents/{agent['id']}")).text.split())
    assert "list_unread_threads for bob@postroom.localhost 2 times" in shown
    assert "read_thread for bob@postroom.localhost</span> <span" in shown
    assert ">not_found</span>" in shown
    assert "no_such_tool" in shown


async def test_an_agent_is_stopped_by_a_pause_of_what_it_is_for(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    agent = await agent_of(server, inbox_id)
    async with signed_in(server) as page:
        path = f"/app/agents/{agent['id']}"
        assert (await page.post(f"{path}/pause", data={"action": "pause"})).status_code == 303
        assert ">paused</span>" in (await page.get(path)).text
        sent = await send(server, inbox_id, "carol@there.example")
        assert (await message_of(server, sent))["hold"]["reasons"] == ["paused"]
        assert (await page.post(f"{path}/pause", data={"action": "resume"})).status_code == 303
        assert ">paused</span>" not in (await page.get(path)).text


async def test_webhooks_of_the_list_are_added_switched_and_removed_on_the_page(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    async with signed_in(server) as page:
        form = {
            "url": "http://127.0.0.1:9/more",
            "eventTypes": ["message.held", "message.sent"],
            "places": [inbox_id],
            "headers": "X-Team: support\nX-Place: office",
        }
        made = await page.post("/app/webhooks/listed", data=form)
        assert "whsec_" in made.text
        [webhook] = (await server.api.get("/v1/webhooks")).json()["data"]
        assert webhook["inboxIds"] == [inbox_id]
        assert sorted(webhook["headers"]) == ["X-Place", "X-Team"]
        assert webhook["eventTypes"] == ["message.held", "message.sent"]
        shown = (await page.get("/app/webhooks")).text
        assert "<td> http://127.0.0.1:9/more <br>" in " ".join(shown.split())
        assert "bob@postroom.localhost</a>" in shown
        path = f"/app/webhooks/listed/{webhook['id']}"
        assert "whsec_" in (await page.post(f"{path}/rotate")).text
        await page.post(f"{path}/test")
        assert "did not answer with success" in (await page.get("/app/webhooks")).text
        await page.post(f"{path}/switch", data={"action": "disable"})
        assert "It was disabled by hand." in (await page.get("/app/webhooks")).text
        refused = await page.post("/app/webhooks/listed", data={**form, "headers": "no colon"})
        assert refused.status_code == 400
        await page.post(f"{path}/remove")
        await do_it_now(page)
    assert (await server.api.get("/v1/webhooks")).json()["total"] == 0


async def test_who_is_told_is_set_on_the_page(server: Server) -> None:
    async with signed_in(server) as page:
        path = "/app/settings/notifications"
        chat = {"kind": "ntfy", "target": "http://127.0.0.1:9/team", "on": ["held", "paused"]}
        other = {"kind": "webhook", "target": "http://127.0.0.1:9/hook", "on": ["suspicious"]}
        for form in (chat, other, {**chat, "on": ["held"]}):
            assert (await page.post(path, data=form)).status_code == 303
        targets = (await server.api.get("/v1/notifications")).json()["targets"]
        told = [(each["kind"], each["target"], each["on"]) for each in targets]
        assert told == [("webhook", other["target"], ["suspicious"]), ("ntfy", chat["target"], ["held"])]
        shown = (await page.get(path)).text
        assert "email needs approval" in shown
        assert "None yet" in shown
        for wrong in ({**chat, "kind": "pigeon"}, {**chat, "on": []}):
            assert (await page.post(path, data=wrong)).status_code == 400
        await page.post(f"{path}/remove", data={"kind": "ntfy", "target": chat["target"]})
        await do_it_now(page)
    [left] = (await server.api.get("/v1/notifications")).json()["targets"]
    assert left["kind"] == "webhook"
