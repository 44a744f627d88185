"""Contacts: made from email that came and left, counted once, inside the scope of who asks."""

from typing import Any

import pytest

from postroom.mailbox import contact_counting
from postroom.storage.database import Tx
from tests.api.test_threads import receive
from tests.conftest import Server, api_client
from tests.outbound import send
from tests.waiting import until


async def contact(server: Server, address: str, api: Any = None) -> dict[str, Any]:
    answer = await (api or server.api).get(f"/v1/contacts/{address}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def listed(server: Server, query: str = "", api: Any = None) -> list[str]:
    page = (await (api or server.api).get(f"/v1/contacts?{query}")).json()
    assert page["total"] == len(page["data"]), query
    return [each["address"] for each in page["data"]]


async def test_a_contact_is_made_of_email_that_comes_and_leaves(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    thread_id = await receive(server, message_id="<1@x>", **{"from": "Ann Lee <Ann@Example.com>"})
    assert (
        await receive(server, message_id="<2@x>", in_reply_to="<1@x>", **{"from": "ann@example.com"})
        == thread_id
    )
    await server.new_inbox("ben")
    sent = await send(server, inbox_id, "Ben <ben@postroom.localhost>")
    await until(lambda: is_sent(server, sent), "it is sent")
    found = await contact(server, "ANN@example.com")
    first, last = found.pop("firstSeenAt"), found.pop("lastSeenAt")
    assert first < last
    assert found == {
        "address": "ann@example.com",
        "name": "Ann Lee",
        "received": 2,
        "sent": 0,
        "threads": 1,
        "authPassed": 0,
        "authFailed": 0,
        "verdicts": {"clean": 2, "suspicious": 0, "malicious": 0},
        "suppressed": None,
        "isKnown": True,
    }
    ben = await contact(server, "ben@postroom.localhost")
    assert (ben["name"], ben["received"], ben["sent"], ben["isKnown"]) == ("Ben", 0, 1, False)
    await server.api.post("/v1/suppressions", json={"address": "ben@postroom.localhost"})
    assert (await contact(server, "ben@postroom.localhost"))["suppressed"] == "manual"
    within = f"inboxId={inbox_id}"
    assert await listed(server, within) == ["ann@example.com", "ben@postroom.localhost"]
    for asked in ("an", "example.com", "LEE", "ann@exa"):
        assert await listed(server, f"q={asked}") == ["ann@example.com"], asked
    for asked in ("nn", "there.example%00", "x" * 321, "zzz"):
        assert "ann@example.com" not in (await server.api.get(f"/v1/contacts?q={asked}")).text
    for unknown in ("nobody@example.com", "a%0ab", "x"):
        assert (await server.api.get(f"/v1/contacts/{unknown}")).status_code == 404
    await server.api.delete(f"/v1/threads/{thread_id}")
    after = await contact(server, "ann@example.com")
    assert (after["threads"], after["received"], after["sent"]) == (0, 2, 0)


async def is_sent(server: Server, message_id: str) -> bool:
    return bool((await server.api.get(f"/v1/messages/{message_id}")).json()["status"] == "sent")


async def test_a_key_sees_the_contacts_of_its_own_scope(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    pod_id = (await server.api.post("/v1/pods", json={"name": "elsewhere"})).json()["id"]
    other = await server.api.post("/v1/inboxes", json={"mailboxName": "other", "podId": pod_id})
    for name, sender in (("hello", "ann@a.example"), ("other", "ann@a.example"), ("other", "zoe@z.example")):
        await receive(server, name, **{"from": sender})
    assert (await contact(server, "ann@a.example"))["received"] == 2

    async def client(**fields: Any) -> Any:
        token = (await server.api.post("/v1/api-keys", json=fields)).json()["token"]
        return api_client(server.base_url, token)

    async with await client(inboxId=inbox_id) as agent, await client(podId=pod_id) as tenant:
        assert await listed(server, api=agent) == ["ann@a.example"]
        assert (await contact(server, "ann@a.example", agent))["received"] == 1
        assert (await agent.get("/v1/contacts/zoe@z.example")).status_code == 404
        assert await listed(server, "q=zoe", agent) == []
        assert await listed(server, f"inboxId={other.json()['id']}", agent) == []
        assert await listed(server, "q=zoe", tenant) == ["zoe@z.example"]
        assert await listed(server, f"podId={pod_id}") == ["ann@a.example", "zoe@z.example"]
    page = (await server.api.get("/v1/contacts?limit=1&offset=1")).json()
    assert ([each["address"] for each in page["data"]], page["total"]) == (["zoe@z.example"], 2)
    await server.api.delete(f"/v1/inboxes/{inbox_id}")
    await until(lambda: count_of(server, inbox_id), "its contacts are removed")


async def count_of(server: Server, inbox_id: str) -> bool:
    from postroom.upkeep.upkeep_loop import one_round

    await one_round(server.resources)
    tables = ("contacts", "contact_words", "contact_threads")

    def left(tx: Tx) -> list[Any]:
        return [
            row
            for name in tables
            for row in tx.all(f"select * from {name} where inbox_id = :id", id=inbox_id)
        ]

    return not await server.resources.db.read(left)


async def test_email_from_before_contacts_were_counted_is_counted_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contact_counting, "OLDER_AT_ONCE", 2)
    inbox_id = await server.new_inbox("hello")
    for number in range(5):
        await receive(server, message_id=f"<{number}@x>", **{"from": f"Ann <ann{number % 2}@a.example>"})
    before = (await server.api.get("/v1/contacts")).json()

    def forget(tx: Tx) -> None:
        for table in ("contacts", "contact_words", "contact_threads"):
            tx.run(f"delete from {table}")
        tx.run(
            "insert into uncounted_contacts (inbox_id, behind_at, behind_id, until_at)"
            " select inbox_id, 0, '', max(created_at) from messages group by inbox_id"
        )

    await server.resources.db.write(forget)
    assert await listed(server) == []
    rounds = 0
    while await server.resources.db.write(contact_counting.count_some_older):
        rounds += 1
    assert rounds == 4
    assert (await server.api.get("/v1/contacts")).json() == before
    assert await listed(server, f"q=ann1&inboxId={inbox_id}") == ["ann1@a.example"]


@pytest.mark.sqlite_alone
async def test_a_stranger_does_not_rename_a_contact_and_hostile_names_count(server: Server) -> None:
    await server.new_inbox("hello")
    await receive(server, **{"from": '"Ann\u202e \x07Lee" <ann@a.example>'})
    assert (await contact(server, "ann@a.example"))["name"] == "Ann Lee"
    long = f"{'x' * 400}@a.example"
    await receive(server, **{"from": f"{'y' * 3000} <{long}>"})
    await receive(server, **{"from": "=?utf-8?q?B=00n=ED=A0=80?= <ben@a.example>"})
    assert await listed(server) == ["ann@a.example", "ben@a.example"]
