"""People work together on threads: assigned, snoozed, done, and notes that no agent sees."""

from typing import Any

from postroom.upkeep.wake_threads import wake
from tests.api.test_threads import receive
from tests.conftest import Server, api_client


async def kinds_of(server: Server) -> list[tuple[str, str]]:
    page = (await server.api.get("/v1/events?limit=100")).json()
    found = [each for each in page["data"] if each["event"].startswith("thread.")]
    return [(each["event"], each.get("reason", each.get("actor", {}).get("type", ""))) for each in found]


async def change(server: Server, thread_id: str, **fields: Any) -> dict[str, Any]:
    answer = await server.api.patch(f"/v1/threads/{thread_id}", json=fields)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def listed(server: Server, **query: str) -> list[str]:
    page = (await server.api.get("/v1/threads", params=query)).json()
    assert page["total"] == len(page["data"]), query
    return [each["id"] for each in page["data"]]


async def test_a_snoozed_thread_wakes_at_its_time_once_and_an_answer_ends_snooze_and_done(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    first = await receive(server, message_id="<1@x>")
    second = await receive(server, message_id="<2@x>")
    third = await receive(server, message_id="<3@x>")
    for wrong, field in (
        ({"snoozedUntil": "2026-11-14T09:00:00Z"}, "snoozedUntil"),
        ({"snoozedUntil": "2028-11-14T09:00:00Z"}, "snoozedUntil"),
        ({"snoozedUntil": "2026-11-15T09:00:00Z", "isDone": True}, "isDone"),
        ({"assigneeId": "usr_" + "0" * 32}, "assigneeId"),
        ({"assigneeId": "x"}, "assigneeId"),
        ({}, "is_read"),
    ):
        answer = await server.api.patch(f"/v1/threads/{first}", json=wrong)
        assert (answer.status_code, answer.json()["field"]) == (400, field), wrong
    snoozed = await change(server, first, snoozedUntil="2026-11-14T11:00:00Z")
    assert (snoozed["snoozedUntil"], snoozed["isDone"]) == ("2026-11-14T11:00:00.000Z", False)
    await change(server, second, snoozedUntil="2026-11-15T11:00:00+01:00")
    assert (await change(server, third, isDone=True))["isDone"]
    await change(server, third, isDone=True)  # the same again is no second event
    place = {"inboxId": inbox_id}
    for where in ({}, place):
        assert await listed(server, state="open", **where) == []
        assert await listed(server, state="snoozed", **where) == [second, first]
        assert await listed(server, state="done", isRead="false", **where) == [third]
        assert await listed(server, **where) == [third, second, first]
    for unknown in ("late", "x"):
        assert (await server.api.get(f"/v1/threads?state={unknown}")).json()["field"] == "state"

    server.clock.turn(2 * 3600 * 1000)
    woken = [await server.resources.db.write(wake, server.clock.now()) for _ in range(2)]
    assert sum(woken) <= 1  # the server's own loop may have been first
    assert await receive(server, message_id="<4@x>", in_reply_to="<2@x>") == second
    assert await receive(server, message_id="<5@x>", in_reply_to="<3@x>") == third
    assert await receive(server, message_id="<6@x>", in_reply_to="<3@x>") == third
    assert await listed(server, state="open") == [third, second, first]
    await change(server, first, isDone=True)
    await change(server, first, isDone=False)
    assert await kinds_of(server) == [
        *([("thread.snoozed", "key")] * 2),
        ("thread.done", "key"),
        ("thread.woken", "time"),
        *([("thread.woken", "message")] * 2),
        ("thread.done", "key"),
        ("thread.woken", "key"),
    ]
    audited = (await server.api.get("/v1/audit?action=thread.snoozed")).json()
    assert audited["total"] == 2
    assert audited["data"][1]["after"]["snoozedUntil"] == "2026-11-14T11:00:00.000Z"


async def test_threads_are_assigned_to_people_who_see_the_inbox_until_they_go(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    thread_id, other = await receive(server), await receive(server)
    pod_id = (await server.api.post("/v1/pods", json={"name": "elsewhere"})).json()["id"]
    people = [
        (await server.api.post("/v1/users", json={"email": f"{name}@people.example", **more})).json()["id"]
        for name, more in (
            ("ann", {"role": "approver"}),
            ("ben", {"role": "approver", "podIds": [pod_id]}),
        )
    ]
    ann, ben = people
    wrong = await server.api.patch(f"/v1/threads/{thread_id}", json={"assigneeId": ben})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "assigneeId")
    assert (await change(server, thread_id, assigneeId=ann))["assigneeId"] == ann
    assert await listed(server, assignee=ann) == [thread_id]
    assert await listed(server, assignee=ann, state="done") == []
    assert await listed(server, assignee="none", inboxId=inbox_id) == [other]
    assert await listed(server, assignee="nonsense") == []
    assert (await server.api.get("/v1/threads?assignee=me")).json()["field"] == "assignee"
    await server.api.patch(f"/v1/users/{ann}", json={"podIds": [pod_id]})
    assert (await server.api.get(f"/v1/threads/{thread_id}")).json()["assigneeId"] is None
    await server.api.patch(f"/v1/users/{ann}", json={"podIds": []})
    await change(server, thread_id, assigneeId=ann)
    await server.api.delete(f"/v1/users/{ann}")
    assert await listed(server, assignee="none") == [other, thread_id]


async def test_a_note_is_for_people_and_for_keys_that_may_read_notes(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    thread_id = await receive(server)
    path, secret = f"/v1/threads/{thread_id}/notes", "**Wait** for legal: zebracanary"
    made = await server.api.post(path, json={"body": secret})
    assert made.status_code == 201
    note = made.json()
    assert note["id"].startswith("note_")
    assert (note["body"], note["author"]["type"]) == (secret, "key")
    for wrong in ("", " \n", "a\0b", "x" * 20_001, None):
        answer = await server.api.post(path, json={"body": wrong})
        assert (answer.status_code, answer.json()["field"]) == (400, "body")
    events = (await server.api.get("/v1/events?limit=100")).text
    assert '"thread.noted"' in events
    assert note["id"] in events
    assert "zebracanary" not in events + (await server.api.get("/v1/audit")).text

    async def client(**fields: Any) -> Any:
        token = (await server.api.post("/v1/api-keys", json=fields)).json()["token"]
        return api_client(server.base_url, token)

    async with (
        await client(inboxId=inbox_id) as agent,
        await client(inboxId=inbox_id, permissions=["read", "draft", "notes"]) as trusted,
        await client(permissions=["read", "send"]) as reader,
    ):
        for refused in (agent, reader):
            for asked in (refused.get(path), refused.post(path, json={"body": "x"})):
                assert (await asked).status_code == 403
            assert (await refused.delete(f"{path}/{note['id']}")).status_code == 403
        assert (await trusted.get(path)).json() == {"data": [note], "total": 1}
        assert (await trusted.delete(f"{path}/{note['id']}")).status_code == 403  # somebody else's
        own = (await trusted.post(path, json={"body": "mine"})).json()
        assert (await trusted.delete(f"{path}/{own['id']}")).status_code == 204
        assert (await trusted.delete(f"{path}/{own['id']}")).status_code == 404
        more = await agent.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"permissions": ["notes"]})
        assert more.status_code == 403
        assert (await trusted.get("/v1/me")).json()["permissions"] == ["read", "draft", "notes"]
    assert (await server.api.delete(f"{path}/{note['id']}")).status_code == 204
    await server.api.post(path, json={"body": secret})
    await server.api.delete(f"/v1/threads/{thread_id}")
    assert await server.resources.db.read(lambda tx: tx.all("select id from notes")) == []
