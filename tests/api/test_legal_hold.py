"""A legal hold on an inbox or a thread keeps it, whoever wants to delete it and by whatever way."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.accounts import accounts
from postroom.clock import DAY
from postroom.errors import LegalHold
from postroom.upkeep import account_removal, mail_retention
from postroom.upkeep.upkeep_loop import one_round
from tests.api.test_keys import second_account
from tests.api.test_threads import receive
from tests.conftest import Server, api_client
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok, running_imap


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_imap(tmp_path, clock, database_url) as running:
        yield running


async def put(server: Server, path: str, is_held: bool) -> dict[str, Any]:
    answer = await server.api.patch(path, json={"legalHold": is_held})
    assert (answer.status_code, answer.json()["legalHold"]) == (200, is_held), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def listed(server: Server, inbox_id: str) -> list[str]:
    page = await server.api.get(f"/v1/inboxes/{inbox_id}/messages?include=trash")
    return [each["id"] for each in page.json()["data"]]


def expunge_all(server: Server) -> str:
    """Returns what the server answered: first into Trash, then for good."""
    client = log_in(server, "hello")
    for folder in ("INBOX", "Trash"):
        ok(client.select(folder))
        ok(client.store("1:*", "+FLAGS", "\\Deleted"))
        word, told = client.expunge()
    client.logout()
    return f"{word} {told}"


@pytest.mark.sqlite_alone
async def test_a_hold_keeps_what_it_covers_from_every_way_of_deletion(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    kept = await receive(server, message_id="<1@x>")
    other = await receive(server, message_id="<2@x>", subject="other")
    note = await server.api.post(f"/v1/threads/{kept}/notes", json={"body": "Keep"})
    (message,) = (await server.api.get(f"/v1/threads/{kept}/messages")).json()["data"]
    ways = [
        f"/v1/messages/{message['id']}",
        f"/v1/threads/{kept}",
        f"/v1/threads/{kept}/notes/{note.json()['id']}",
        f"/v1/inboxes/{inbox_id}",
    ]
    inbox = f"/v1/inboxes/{inbox_id}"
    for path, extra in ((f"/v1/threads/{kept}", {"threadId": kept}), (inbox, {"inboxId": inbox_id})):
        await put(server, path, True)
        for way in ways:
            answer = await server.api.delete(way)
            told = {name: answer.json().get(name) for name in ("error", *extra)}
            assert (answer.status_code, told) == (409, {"error": "legal_hold", **extra}), way
            assert next(iter(extra.values())) in answer.json()["message"]
        await put(server, path, False)

    await put(server, f"/v1/threads/{kept}", True)
    taken_out = await server.api.post(f"/v1/messages/{message['id']}/junk", json={})
    assert (taken_out.status_code, taken_out.json()["threadId"]) == (409, kept), "in Junk it could be deleted"
    await server.api.patch(inbox, json={"retentionDays": 1})
    server.clock.turn(2 * DAY)
    await one_round(server.resources)
    assert await listed(server, inbox_id) == [message["id"]]
    assert (await server.api.get(f"/v1/threads/{other}")).status_code == 404
    assert (await aside(lambda: expunge_all(server))).startswith("NO ")
    assert await listed(server, inbox_id) == [message["id"]]
    await put(server, f"/v1/threads/{kept}", False)
    await put(server, inbox, True)
    await one_round(server.resources)
    assert await listed(server, inbox_id) == [message["id"]]
    await put(server, inbox, False)
    await one_round(server.resources)
    assert await listed(server, inbox_id) == []
    assert (await server.api.delete(inbox)).status_code == 204
    actions = [each["action"] for each in (await server.api.get("/v1/audit?limit=100")).json()["data"]]
    assert actions.count("thread.legal_hold") == 4


@pytest.mark.sqlite_alone
async def test_each_hold_is_told_when_it_is_set_and_when_it_is_lifted(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    thread_id = await receive(server)
    for path in (f"/v1/inboxes/{inbox_id}", f"/v1/threads/{thread_id}"):
        for is_held in (True, True, False, False):
            await put(server, path, is_held)
    page = (await server.api.get("/v1/events?limit=100")).json()["data"]
    told = [
        (each["event"], each["inbox_id"], each["thread_id"], each["actor"]["type"])
        for each in page
        if each["event"].startswith("legal_hold.")
    ]
    words = ("legal_hold.set", "legal_hold.lifted")
    assert told == [(word, inbox_id, thread, "key") for thread in ("", thread_id) for word in words]


@pytest.mark.sqlite_alone
async def test_an_account_with_a_hold_is_not_deleted(server: Server) -> None:
    async with server.client(await second_account(server)) as owner:
        me = (await owner.get("/v1/me")).json()
        made = (await owner.post("/v1/inboxes", json={"mailboxName": "theirs"})).json()
        await owner.patch(f"/v1/inboxes/{made['id']}", json={"legalHold": True})
        account = await server.resources.db.read(accounts.get, me["accountId"])
        with pytest.raises(LegalHold, match=made["id"]):
            await server.resources.db.write(account_removal.close, account, server.clock.now())
        await owner.patch(f"/v1/inboxes/{made['id']}", json={"legalHold": False})
    await server.resources.db.write(account_removal.close, account, server.clock.now())


async def test_a_hold_set_between_the_list_and_the_deletion_counts(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await receive(server)
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"retentionDays": 1})
    (rule,) = await server.resources.db.read(mail_retention.list_rules, "", 10)
    await put(server, f"/v1/inboxes/{inbox_id}", True)
    assert await server.resources.db.read(mail_retention.list_rules, "", 10) == []
    late = server.clock.now() + 2 * DAY
    assert await server.resources.db.write(mail_retention.expire, late, 10, rule) is None


@pytest.mark.sqlite_alone
async def test_holds_need_manage_and_an_agent_lifts_none(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    thread_id = await receive(server)
    await put(server, f"/v1/threads/{thread_id}", True)
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})
    async with api_client(server.base_url, made.json()["token"]) as agent:
        for path in (f"/v1/threads/{thread_id}", f"/v1/inboxes/{inbox_id}"):
            refused = await agent.patch(path, json={"legalHold": False})
            assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
        assert (await agent.patch(f"/v1/threads/{thread_id}", json={"is_read": True})).status_code == 200
    assert (await server.api.get(f"/v1/threads/{thread_id}")).json()["legalHold"]
    made = await server.api.post("/v1/api-keys", json={"permissions": ["manage"]})
    async with api_client(server.base_url, made.json()["token"]) as counsel:
        lifted = await counsel.patch(f"/v1/threads/{thread_id}", json={"legalHold": False})
        assert (lifted.status_code, lifted.json()["legalHold"]) == (200, False)
        for more in ({"is_read": True}, {"legalHold": True, "is_read": True}):
            refused = await counsel.patch(f"/v1/threads/{thread_id}", json=more)
            assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
