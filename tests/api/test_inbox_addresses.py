"""An inbox is named by its address wherever its id may stand; a stranger learns no more than by an id."""

import json
from typing import Any

import pytest

from postroom.accounts import accounts
from postroom.mailbox import inboxes
from postroom.storage.database import Tx
from tests.api.test_stream import open_stream
from tests.conftest import Server
from tests.raw_mails import raw_mail

DAY, NEXT_DAY = "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"
UNKNOWN = "inb_" + "1" * 32


async def get(server: Server, path: str, expected: int = 200) -> Any:
    answer = await server.api.get(path)
    assert answer.status_code == expected, answer.text
    return answer.json()


@pytest.mark.sqlite_alone
async def test_an_address_is_as_good_as_an_id(server: Server) -> None:
    inbox_id, other = await server.new_inbox("hello"), await server.new_inbox("other")
    await server.deliver(raw_mail(message_id="<1@x>"), "hello")
    await server.next_event()
    shown = await get(server, f"/v1/inboxes/{inbox_id}")
    for named in ("hello@postroom.localhost", "Hello%40POSTROOM.localhost", "hello%2Btag@postroom.localhost"):
        assert await get(server, f"/v1/inboxes/{named}") == shown
        assert (await get(server, f"/v1/threads?inboxId={named}"))["total"] == 1
    address = shown["address"]
    listed = await get(server, f"/v1/events?inbox_ids={other},{address}&event_types=message.received")
    assert [event["inbox_id"] for event in listed["data"]] == [inbox_id]
    await get(server, f"/v1/search?q=hello&inboxId={address}")
    assert (await get(server, "/v1/threads?inboxId=other@postroom.localhost"))["total"] == 0

    body = {"to": "bob@there.example", "subject": "Hello", "body": "Hello"}
    for named in (address, inbox_id):  # the second is the first again
        sent = await server.api.post(f"/v1/inboxes/{named}/send", json=body, headers={"Idempotency-Key": "1"})
        assert sent.status_code == 200, sent.text
    assert (await get(server, f"/v1/inboxes/{address}/messages?direction=outbound"))["total"] == 1
    key = (await server.api.post("/v1/api-keys", json={"inboxId": address})).json()
    assert key["inboxId"] == inbox_id
    webhook = {"url": "https://93.184.216.34/hook", "inboxIds": [address]}
    made = await server.api.post("/v1/webhooks", json=webhook)
    assert made.json().get("inboxIds") == [inbox_id], made.text

    copied = {
        "name": "x",
        "query": "x",
        "actions": [{"type": "copyTo", "inboxId": "other@postroom.localhost"}],
    }
    rule = (await server.api.post(f"/v1/rules?inboxId={address}", json=copied)).json()
    assert rule["actions"] == [{"type": "copyTo", "inboxId": other}]

    async with open_stream(server) as stream:
        await stream.send(json.dumps({"type": "subscribe", "inbox_ids": [address]}))
        assert json.loads(await stream.recv())["inbox_ids"] == [inbox_id]
        await stream.send(json.dumps({"type": "unsubscribe", "inbox_ids": [address]}))
        assert json.loads(await stream.recv())["inbox_ids"] == [inbox_id]


@pytest.mark.sqlite_alone
async def test_an_address_outside_the_scope_is_as_unknown_as_an_id(server: Server) -> None:
    own = await server.new_inbox("hello")

    def add_stranger(tx: Tx) -> str:
        account = accounts.add(tx, "stranger", "free", server.clock.now())
        return inboxes.add(tx, account.id, "foreign", None, None, "postroom.localhost", server.clock.now()).id

    await server.resources.db.write(add_stranger)
    narrow = (await server.api.post("/v1/api-keys", json={"inboxId": own})).json()["token"]
    await server.new_inbox("beside")
    async with server.client(narrow) as agent:
        for api, named in (
            (server.api, "foreign@postroom.localhost"),
            (server.api, "nobody@postroom.localhost"),
            (server.api, "@"),
            (server.api, "x" * 5_000 + "@postroom.localhost"),
            (agent, "beside@postroom.localhost"),
        ):
            for path in ("/v1/inboxes/{}", "/v1/inboxes/{}/messages", "/v1/threads?inboxId={}"):
                answer, unknown = await api.get(path.format(named)), await api.get(path.format(UNKNOWN))
                assert (answer.status_code, answer.json()) == (unknown.status_code, unknown.json()), named[
                    :40
                ]
            for field, path in (("inboxId", "/v1/api-keys"), ("inboxIds", "/v1/webhooks")):
                bodies = [
                    {"url": "https://example.com/hook", field: [each] if field == "inboxIds" else each}
                    for each in (named, UNKNOWN)
                ]
                answer, unknown = [await api.post(path, json=body) for body in bodies]
                assert answer.status_code == unknown.status_code, answer.text
                assert 400 <= answer.status_code < 500
                assert "inb_0000" not in answer.text
            times = {"start": DAY, "end": NEXT_DAY, "from": DAY, "until": NEXT_DAY}
            asked = {"name": "n", "body": "b", "summary": "s", "durationMinutes": 30, **times}
            for path in ("/v1/calendars", "/v1/calendar-events", "/v1/find-times", "/v1/templates"):
                answer = await api.post(path, json={**asked, "inboxId": named, "inboxIds": [named]})
                if api is server.api:
                    assert answer.status_code == 400, path
                    assert answer.json()["field"] == ("inboxIds" if "find" in path else "inboxId"), path
    async with server.client("pr_nothing") as nobody:
        assert (await nobody.get("/v1/inboxes/hello@postroom.localhost")).status_code == 401
