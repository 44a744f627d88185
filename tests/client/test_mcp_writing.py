"""The tools for writing: what waits says so, and nobody is offered what his key may not do."""

import asyncio
from typing import Any

import pytest

from tests.api.test_send import first_message
from tests.client.live import LiveServer
from tests.client.test_mcp import Agent, http_agent, unfenced
from tests.conftest import Server
from tests.outward.test_holds import add_key, decide, set_rule
from tests.plain_transport import http_client

pytestmark = pytest.mark.sqlite_alone  # a client speaks to no database

READING = {
    *("auth_me", "list_inboxes", "list_threads", "read_thread"),
    *("wait_for_message", "get_attachment_text", "list_drafts", "get_message_status", "search_messages"),
    *("read_message", "wait_for_decision"),
}
WRITING = {
    *("send_email", "reply_to_thread", "forward_message", "create_draft", "send_draft"),
    *("respond_to_invitation", "cancel_message", "mark_thread_read", "label_thread"),
    *("assign_thread", "create_file_link"),
}
MAIL = (
    b"From: Alice <alice@example.com>\r\nTo: bob@postroom.localhost, carol@postroom.localhost\r\n"
    b"Subject: Question\r\nMessage-ID: <q@example.com>\r\n\r\nHow many?\r\n"
)


def live(server: Server) -> LiveServer:
    return LiveServer(server.base_url, server.smtp_port)


async def names(agent: Agent) -> set[str]:
    return {tool.name for tool in (await agent.client.list_tools()).tools}


async def status_when(agent: Agent, message_id: str, wanted: str) -> dict[str, Any]:
    while True:
        found = await agent.call("get_message_status", message_id=message_id)
        if found["status"] == wanted:
            return found
        await asyncio.sleep(0.05)


async def test_a_held_mail_says_so_and_what_happens_next(server: Server) -> None:
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    await server.resources.db.write(set_rule, "inboxes", bob, "always")
    order = {"to": "carol@postroom.localhost", "subject": "Offer", "body": "Seven", "inbox_id": bob}
    async with http_agent(live(server), server.token) as agent:
        sent = await agent.call("send_email", **order)
        assert (sent["status"], sent["is_held"]) == ("pending", True)
        assert sent["hold"]["reasons"] == ["always"]
        assert "a person has to approve it" in sent["what_happens_next"]
        assert sent["hold"]["expires_at"][:16] in sent["what_happens_next"]
        held = await agent.call("get_message_status", message_id=sent["message_id"])
        assert (held["is_held"], held["recipients"][0]["address"]) == (True, "carol@postroom.localhost")
        still = await agent.call("wait_for_decision", message_id=sent["message_id"], timeout_seconds=0)
        assert still["is_held"]
        message = (await server.api.get(f"/v1/messages/{sent['message_id']}")).json()
        waiting = asyncio.create_task(agent.call("wait_for_decision", message_id=sent["message_id"]))
        assert (await decide(server, message)).status_code == 200
        decided = await waiting
        assert (decided["is_held"], decided["hold"]["state"]) == (False, "approved")
        done = await status_when(agent, sent["message_id"], "sent")
        assert (done["is_held"], done["hold"]["state"]) == (False, "approved")
        assert "accepted" in done["what_happens_next"]


async def test_a_scheduled_mail_can_be_cancelled_and_stays_so(server: Server) -> None:
    bob = await server.new_inbox("bob")
    order = {"to": "carol@example.com", "subject": "Later", "body": "x", "inbox_id": bob}
    async with http_agent(live(server), server.token) as agent:
        sent = await agent.call("send_email", **order, send_at="2026-11-20T10:00:00Z")
        assert (sent["is_held"], sent["hold"]["state"]) == (False, "scheduled")
        assert "It is sent at 2026-11-20T10:00:00" in sent["what_happens_next"]
        cancelled = await agent.call("cancel_message", message_id=sent["message_id"])
        assert (cancelled["status"], cancelled["hold"]["state"]) == ("failed", "cancelled")
        assert "It will not be sent" in cancelled["what_happens_next"]
        assert "nothing_to_do" in await agent.fail("cancel_message", message_id=sent["message_id"])


async def test_a_draft_is_written_listed_and_sent(server: Server) -> None:
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    async with http_agent(live(server), server.token) as agent:
        file = {"filename": "a.txt", "data_base64": "YQ==", "content_type": "text/plain"}
        made = await agent.call(
            "create_draft",
            inbox_id=bob,
            to="carol@postroom.localhost",
            subject="Offer",
            attachments=[file],
        )
        assert made["files"] == ["a.txt"]
        assert '"field":"body"' in await agent.fail("send_draft", draft_id=made["draft_id"])
        whole = await agent.call(
            "create_draft", inbox_id=bob, to=["carol@postroom.localhost"], subject="Offer", body="Seven"
        )
        listed = await agent.call("list_drafts", inbox_id=bob)
        assert [one["draft_id"] for one in listed["drafts"]] == [whole["draft_id"], made["draft_id"]]
        assert "Subject: Offer\n\nSeven" in unfenced(listed["drafts"][0]["content"])
        sent = await agent.call("send_draft", draft_id=whole["draft_id"], idempotency_key="one")
        assert await agent.call("send_draft", draft_id=whole["draft_id"], idempotency_key="one") == sent
        await status_when(agent, sent["message_id"], "sent")
        assert (await agent.call("list_drafts", inbox_id=bob))["total"] == 1


async def test_files_go_beside_the_model(server: Server) -> None:
    """A link takes a file once, and another gives it once; text and received files need no base64."""
    bob, _ = await server.new_inbox("bob"), await server.new_inbox("carol")
    order = {"to": "carol@postroom.localhost", "subject": "Files", "body": "See them", "inbox_id": bob}
    async with http_agent(live(server), server.token) as agent, http_client() as keyless:
        link = await agent.call("create_file_link", filename="a.bin", inbox_id=bob, size_bytes=4)
        assert (await keyless.put(link["url"], content=b"four")).status_code == 200
        files = [{"upload_id": link["upload_id"]}, {"filename": "note.txt", "text": "words"}]
        sent = await agent.call("send_email", **order, attachments=files)
        named = {"message_id": sent["message_id"], "filename": "a.bin"}
        again = await agent.call("create_draft", **order, attachments=[named])
        assert again["files"] == ["a.bin"]
        given = await agent.call("create_file_link", **named)
        assert (await keyless.get(given["url"])).content == b"four"
        assert (await keyless.get(given["url"])).status_code == 404
        assert "size_bytes" in await agent.fail("create_file_link", filename="a.bin", inbox_id=bob)
        assert "one of text" in await agent.fail("send_email", **order, attachments=[{"filename": "a"}])


async def test_templates_fill_drafts_and_answers(server: Server) -> None:
    bob = await server.new_inbox("bob")
    await server.deliver(MAIL, "bob")
    event = await server.next_event()
    template = {"inboxId": bob, "name": "thanks", "subject": "Hello {{name}}", "body": "Thank you, {{name}}."}
    assert (await server.api.post("/v1/templates", json=template)).status_code == 201
    filled = {"options": {"template": "thanks", "template_fields": {"name": "Ann"}}}
    async with http_agent(live(server), server.token) as agent:
        draft = await agent.call("create_draft", inbox_id=bob, to="ann@there.example", **filled)
        assert "Subject: Hello Ann\n\nThank you, Ann." in unfenced(draft["content"])
        answer = await agent.call("reply_to_thread", thread_id=event["thread_id"], **filled)
        assert '"field":"body"' in await agent.fail("reply_to_thread", thread_id=event["thread_id"])
    sent = (await server.api.get(f"/v1/messages/{answer['message_id']}")).json()
    assert sent["bodyText"].startswith("Thank you, Ann.")


async def test_a_mail_is_answered_to_all_and_passed_on(server: Server) -> None:
    await server.new_inbox("bob")
    await server.deliver(MAIL, "bob")
    event = await server.next_event()
    async with http_agent(live(server), server.token) as agent:
        to_all = await agent.call(
            "reply_to_thread", thread_id=event["thread_id"], body="Three", reply_all=True
        )
        on = await agent.call(
            "forward_message", message_id=event["message"]["id"], to="dave@example.com", body="See"
        )
    answer = (await server.api.get(f"/v1/messages/{to_all['message_id']}")).json()
    assert (answer["headerTo"], answer["cc"]) == ("Alice <alice@example.com>", ["carol@postroom.localhost"])
    passed_on = (await server.api.get(f"/v1/messages/{on['message_id']}")).json()
    assert (passed_on["headerTo"], passed_on["subject"]) == ("dave@example.com", "Fwd: Question")


async def test_an_agent_names_the_alias_that_it_sends_from(server: Server) -> None:
    bob, alias = await server.new_inbox("bob"), "billing@postroom.localhost"
    made = await server.api.post(f"/v1/inboxes/{bob}/aliases", json={"address": alias})
    assert made.status_code == 201, made.text
    await server.deliver(MAIL, "bob")
    event = await server.next_event()
    answered, passed_on = {"thread_id": event["thread_id"]}, {"message_id": event["message"]["id"]}
    new = {"to": "dave@example.com", "subject": "Hi", "inbox_id": bob}
    async with http_agent(live(server), server.token) as agent:
        for tool, more in (
            ("send_email", new),
            ("reply_to_thread", answered),
            ("forward_message", {**passed_on, "to": "dave@example.com"}),
            ("create_draft", new),
        ):
            named = {"body": "Hello", **more}
            refused = await agent.fail(tool, **named, from_address="ceo@postroom.localhost")
            assert '"field":"from_address"' in refused
            told = await agent.call(tool, **named, from_address=alias)
        sent = await agent.call("send_draft", draft_id=told["draft_id"])
    assert sent["message_id"]
    page = (await server.api.get(f"/v1/inboxes/{bob}/messages?direction=outbound")).json()
    assert [each["fromAddr"] for each in page["data"]] == [alias] * 4


async def test_an_agent_invites_and_answers_invitations(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    when = {"start": "2027-01-20T15:00:00Z", "end": "2027-01-20T16:00:00Z"}
    order = {"to": "carol@postroom.localhost", "subject": "Review", "body": "Come", "inbox_id": bob}
    async with http_agent(live(server), server.token) as agent:
        await agent.call("send_email", **order, options={"calendar": {"summary": "Review", **when}})
        invited = await first_message(server, carol)
        answered = await agent.call(
            "respond_to_invitation", message_id=invited["id"], status="declined", comment="Away"
        )
    told = (await server.api.get(f"/v1/messages/{answered['message_id']}")).json()
    assert (told["headerTo"], told["subject"]) == ("bob@postroom.localhost", "Declined: Review")
    assert told["calendar"]["attendees"][0]["participationStatus"] == "declined"


OFFERED: list[tuple[list[str], set[str]]] = [
    (["read"], READING),
    (["read", "draft"], READING | WRITING),
    (["read", "send"], (READING | WRITING) - {"create_draft"}),
    (
        ["draft"],
        {
            "auth_me",
            "send_email",
            "create_draft",
            "send_draft",
            "respond_to_invitation",
            "cancel_message",
            "mark_thread_read",
            "label_thread",
            "assign_thread",
            "create_file_link",
        },
    ),
]


MANAGING = {"create_inbox"}


def test_tools_are_offered_by_what_a_key_may_do() -> None:
    from postroom_client.mcp.server import offered  # to load it takes a second of every worker

    for asked, tools in OFFERED:
        assert set(offered(asked, is_of_one_inbox=True, is_of_account=False)) == tools, asked
        managing = offered([*asked, "manage"], is_of_one_inbox=False, is_of_account=True)
        assert set(managing) == tools | MANAGING, asked
    both = offered(["manage"], is_of_one_inbox=False, is_of_account=True, sets="mail,setup")
    assert set(both) == {"auth_me", "create_inbox", "create_key_for_inbox", "check_domain"}


async def test_only_tools_of_what_the_key_may_do_are_offered(server: Server) -> None:
    bob = await server.new_inbox("bob")
    asked, offered = OFFERED[-1]
    token = await server.resources.db.write(add_key, server, bob, asked)
    async with http_agent(live(server), token) as agent:
        assert await names(agent) == offered
    account = await server.resources.db.write(add_key, server, None, [*asked, "manage"])
    async with http_agent(live(server), account) as agent:
        assert await names(agent) == offered | MANAGING


async def test_the_readonly_address_offers_and_does_nothing_but_read(server: Server) -> None:
    bob = await server.new_inbox("bob")
    async with http_agent(live(server), server.token, path="/mcp/readonly") as agent:
        assert await names(agent) == READING
        assert (await agent.call("auth_me"))["scope"] == "account"
        assert (await agent.call("list_threads", inbox_id=bob))["total"] == 0
        result = await agent.client.call_tool("send_email", {"to": "a@b.c", "subject": "s", "body": "b"})
        assert result.is_error
        hints = [tool.annotations for tool in (await agent.client.list_tools()).tools]
        assert all(hint is not None and hint.read_only_hint for hint in hints)


async def test_the_address_of_one_inbox_reaches_no_other(server: Server) -> None:
    bob, other = await server.new_inbox("bob"), await server.new_inbox("other")
    await server.deliver(MAIL, "other")
    event = await server.next_event()
    async with http_agent(live(server), server.token, path=f"/mcp/inbox/{bob}") as agent:
        assert await names(agent) == READING | WRITING
        me = await agent.call("auth_me")
        assert (me["scope"], me["inbox_id"]) == ("inbox", bob)
        assert [one["inbox_id"] for one in (await agent.call("list_inboxes"))["inboxes"]] == [bob]
        for tool, arguments in (
            ("list_threads", {"inbox_id": other}),
            ("read_thread", {"thread_id": event["thread_id"]}),
            ("get_message_status", {"message_id": event["message"]["id"]}),
            ("reply_to_thread", {"thread_id": event["thread_id"], "body": "x", "reply_all": True}),
            ("label_thread", {"thread_id": event["thread_id"], "add": ["x"]}),
            ("assign_thread", {"thread_id": event["thread_id"]}),
            ("forward_message", {"message_id": event["message"]["id"], "to": "a@b.example", "body": "x"}),
            ("create_draft", {"inbox_id": other}),
        ):
            assert "not_found" in await agent.fail(tool, **arguments), tool
        sent = await agent.call("send_email", to="carol@example.com", subject="s", body="b")
        assert sent["inbox_id"] == bob
    async with http_agent(live(server), server.token, path="/mcp/inbox/Bob@postroom.localhost") as agent:
        assert (await agent.call("auth_me"))["inbox_id"] == bob


async def test_an_address_of_a_foreign_or_unknown_inbox_is_not_there(server: Server) -> None:
    bob, other = await server.new_inbox("bob"), await server.new_inbox("other")
    token = await server.resources.db.write(add_key, server, bob, ["read"])
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with server.client(token) as api:
        unknown = ("inb_" + "0" * 32, "other@postroom.localhost", "nobody@postroom.localhost", "")
        for place in (f"/mcp/inbox/{other}", *(f"/mcp/inbox/{each}" for each in unknown), "/mcp/other"):
            answer = await api.post(place, json=rpc)
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), place
        assert (await api.get("/mcp/readonly")).status_code == 405
    async with server.client("pr_wrong") as stranger:
        assert (await stranger.post(f"/mcp/inbox/{bob}", json=rpc)).status_code == 401
