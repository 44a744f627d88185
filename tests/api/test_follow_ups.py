"""Who has not answered, and what is sent then: once, and never after an answer."""

import asyncio
from typing import Any

import pytest

from postroom.clock import DAY, HOUR
from postroom.mailbox import follow_ups, working_time
from postroom.mailbox.follow_ups import FollowUpEnded
from postroom.outward import nudges
from tests.conftest import Server
from tests.raw_mails import raw_mail
from tests.waiting import until

pytestmark = pytest.mark.both_databases
KEY = 0


async def send(server: Server, inbox_id: str, **fields: Any) -> dict[str, Any]:
    global KEY
    KEY += 1
    body = {"to": "bob@example.com", "subject": "Offer", "body": "Will you?", **fields}
    answer = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send", json=body, headers={"Idempotency-Key": f"key-{KEY}"}
    )
    assert answer.status_code == 200, answer.text
    sent: dict[str, Any] = answer.json()
    return sent


async def left(server: Server, message_id: str) -> None:
    """As if the world had taken it."""
    await server.resources.db.write(
        lambda tx: tx.run(
            "update messages set status = 'sent' where id = :id and status = 'pending'", id=message_id
        )
    )


async def thread_of(server: Server, sent: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await server.api.get(f"/v1/threads/{sent['threadId']}")).json()
    return found


async def steps(server: Server, sent: dict[str, Any]) -> list[tuple[str, str | None]]:
    page = (await server.api.get(f"/v1/threads/{sent['threadId']}/follow-ups")).json()
    return [(each["state"], each["reason"]) for each in page["data"]]


async def kinds(server: Server) -> list[str]:
    page = (await server.api.get("/v1/events?limit=100")).json()
    return [each["event"] for each in page["data"] if each["event"].startswith("thread.")]


async def answer(server: Server, sent: dict[str, Any], **fields: str) -> None:
    message = (await server.api.get(f"/v1/messages/{sent['id']}")).json()
    head = {"from": "Bob <bob@example.com>", "in_reply_to": message["rfcMessageId"], "subject": "Re: Offer"}
    await server.deliver(raw_mail("Yes, I will.", **(head | fields)), "hello")


async def sent_nudges(server: Server, sent: dict[str, Any]) -> int:
    page = (await server.api.get(f"/v1/threads/{sent['threadId']}/messages")).json()
    return [each["direction"] for each in page["data"]].count("outbound") - 1


async def test_a_thread_that_nobody_answers_is_overdue_once_and_an_answer_ends_it(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    sent = await send(server, inbox_id, expectReplyBy={"days": 2})
    await left(server, sent["id"])
    thread = await thread_of(server, sent)
    assert thread["awaiting"] == {
        "since": thread["createdAt"],
        "until": "2026-11-16T10:00:00.000Z",
        "from": "bob@example.com",
        "overdue": False,
    }

    async def listed(state: str) -> int:
        return int((await server.api.get(f"/v1/threads?state={state}")).json()["total"])

    assert [await listed("awaiting"), await listed("overdue"), await listed("open")] == [1, 0, 1]
    server.clock.turn(2 * DAY)
    for _ in range(2):
        await nudges.step(server.resources)
    assert (await thread_of(server, sent))["awaiting"]["overdue"]
    assert [await listed("awaiting"), await listed("overdue")] == [1, 1]
    for word in ("awaiting", "overdue"):

        async def found(word: str = word) -> bool:
            page = (await server.api.get("/v1/search", params={"q": f"offer is:{word}"})).json()
            return bool(page["data"])

        await until(found)
    # neither a machine nor the inbox itself answers
    await answer(server, sent, auto_submitted="auto-replied", message_id="<1@x>")
    await answer(server, sent, **{"from": "hello@postroom.localhost", "message_id": "<2@x>"})
    awaiting = (await thread_of(server, sent))["awaiting"]
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert [each["awaiting"] for each in page if each["id"] == sent["id"]] == [awaiting]
    assert [each["awaiting"] for each in page if each["id"] != sent["id"]] == [None, None]
    assert awaiting["overdue"]
    await answer(server, sent, message_id="<3@x>")
    assert (await thread_of(server, sent))["awaiting"] is None
    assert (await server.api.get(f"/v1/messages/{sent['id']}")).json()["awaiting"] is None
    assert await kinds(server) == ["thread.overdue", "thread.answered"]


async def test_nudges_are_sent_at_their_times_in_the_thread_and_a_day_apart(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    plan = [{"afterDays": 1, "body": "Did you see this?"}, {"afterDays": 3, "body": "Last call."}]
    sent = await send(server, inbox_id, followUps=plan)
    await left(server, sent["id"])
    assert (await thread_of(server, sent))["awaiting"]["until"] == "2026-11-15T10:00:00.000Z"
    server.clock.turn(DAY)
    for _ in range(2):
        await nudges.step(server.resources)
    assert await steps(server, sent) == [("sent", None), ("scheduled", None)]
    page = (await server.api.get(f"/v1/threads/{sent['threadId']}/messages")).json()["data"]
    assert [each["headerTo"] for each in page] == ["bob@example.com"] * 2
    assert page[1]["bodyText"].startswith("Did you see this?")
    assert page[1]["subject"] == "Re: Offer"
    # another send asks for a nudge that would come within the same day
    again = await send(server, inbox_id, threadId=sent["threadId"], followUps=[{"afterDays": 1, "body": "x"}])
    await left(server, again["id"])
    assert await steps(server, sent) == [("sent", None), ("scheduled", None), ("cancelled", "by hand")]
    server.clock.turn(DAY - HOUR)
    await server.resources.db.write(
        lambda tx: tx.run("update follow_ups set due_at = 0 where state = 'scheduled'")
    )
    await nudges.step(server.resources)
    assert ("scheduled", None) in await steps(server, sent)
    server.clock.turn(HOUR)
    await nudges.step(server.resources)
    assert sorted(await steps(server, sent)) == [("cancelled", "by hand"), ("sent", None), ("sent", None)]


async def prepared(server: Server, sent: dict[str, Any]) -> list[nudges.DueNudge]:
    """What two nodes have read of a nudge that is due in their view; the server's own loop sees it later."""
    db, later = server.resources.db, server.clock.now() + DAY
    [due] = await db.read(follow_ups.list_due, later)
    found = [await db.write(nudges.prepare, due, later) for _ in range(2)]
    return [each for each in found if each is not None]


@pytest.mark.sqlite_alone
async def test_no_nudge_follows_an_answer_that_was_in_the_inbox_before_it(server: Server) -> None:
    """It comes at the last second: when two nodes are about to send."""
    inbox_id = await server.new_inbox("hello")
    sent = await send(server, inbox_id, followUps=[{"afterDays": 1, "body": "Did you see this?"}])
    await left(server, sent["id"])
    ready = await prepared(server, sent)
    await answer(server, sent)
    await until(lambda: _has(server, sent, ("cancelled", "answered")))
    assert len(ready) == 2
    for nudge in ready:
        with pytest.raises(FollowUpEnded):
            await nudges.send(server.resources, nudge)
    assert await sent_nudges(server, sent) == 0


@pytest.mark.sqlite_alone
async def test_a_nudge_that_two_nodes_send_at_the_same_moment_is_sent_once(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    sent = await send(server, inbox_id, followUps=[{"afterDays": 1, "body": "Did you see this?"}])
    await left(server, sent["id"])
    ready = await prepared(server, sent)
    await asyncio.gather(*(nudges.send(server.resources, nudge) for nudge in ready), return_exceptions=True)
    for nudge in ready:  # as after a crash: whatever it had reached
        await nudges.try_to_send(server.resources, nudge.follow_up)
    assert (await steps(server, sent), await sent_nudges(server, sent)) == ([("sent", None)], 1)


async def _has(server: Server, sent: dict[str, Any], wanted: tuple[str, str | None]) -> bool:
    return wanted in await steps(server, sent)


async def _is_sent(server: Server, sent: dict[str, Any]) -> bool:
    return await steps(server, sent) == [("sent", None)]


async def test_a_nudge_that_waits_for_approval_does_not_leave_after_an_answer(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    sent = await send(server, inbox_id, followUps=[{"afterDays": 1, "body": "Did you see this?"}])
    await left(server, sent["id"])
    await server.api.patch("/v1/account", json={"approval": {"when": ["always"]}})
    server.clock.turn(DAY)
    await nudges.step(server.resources)
    await until(lambda: _is_sent(server, sent))
    [held] = (await server.api.get("/v1/approvals?state=held")).json()["data"]
    assert held["message"]["threadId"] == sent["threadId"]
    await answer(server, sent)
    assert await steps(server, sent) == [("cancelled", "answered")]
    approved = await server.api.post(
        f"/v1/messages/{held['message']['id']}/approve", json={"contentHash": held["hold"]["contentHash"]}
    )

    async def is_stopped() -> bool:
        message = (await server.api.get(f"/v1/messages/{held['message']['id']}")).json()
        return bool(message["status"] == "failed")

    if approved.status_code == 200:
        await until(is_stopped)


async def test_a_hand_a_pause_and_a_failed_email_cancel_what_was_prepared(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    plan = [{"afterDays": 1, "body": "x"}]
    by_hand, paused, lost, ended = [await send(server, inbox_id, followUps=plan) for _ in range(4)]
    for each in (by_hand, paused, ended):
        await left(server, each["id"])
    listed = (await server.api.get(f"/v1/threads/{by_hand['threadId']}/follow-ups")).json()
    path = f"/v1/threads/{by_hand['threadId']}/follow-ups/{listed['data'][0]['id']}"
    assert (await server.api.delete(path)).status_code == 204
    assert (await server.api.delete(path)).status_code == 409
    changed = await server.api.patch(f"/v1/threads/{ended['threadId']}", json={"expectReplyBy": None})
    assert changed.json()["awaiting"] is None
    await server.resources.db.write(
        lambda tx: tx.run("update messages set status = 'failed' where id = :id", id=lost["id"])
    )
    await server.api.put("/v1/pause")
    server.clock.turn(DAY)
    await nudges.step(server.resources)

    async def are_over() -> bool:
        found = [await steps(server, each) for each in (by_hand, paused, lost, ended)]
        wanted = ["by hand", "paused", "not sent", "by hand"]
        return found == [[("cancelled", reason)] for reason in wanted]

    await until(are_over)
    assert (await thread_of(server, lost))["awaiting"] is None


@pytest.mark.sqlite_alone
async def test_what_is_wrong_is_refused_with_its_field(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    for field, fields in (
        ("expectReplyBy", {"expectReplyBy": "tomorrow"}),
        ("expectReplyBy", {"expectReplyBy": "2020-01-01T00:00:00Z"}),
        ("expectReplyBy", {"expectReplyBy": {}}),
        ("expectReplyBy", {"expectReplyBy": {"days": 1, "workingDays": 1}}),
        ("followUps[0]", {"followUps": [{"afterDays": 1}]}),
        ("followUps[1]", {"followUps": [{"afterDays": 1, "body": "x"}] * 2}),
        ("followUps[0].templateId", {"followUps": [{"afterDays": 1, "templateId": "none"}]}),
        ("followUps", {"followUps": [{"afterDays": day, "body": "x"} for day in range(1, 7)]}),
    ):
        body = {"to": "bob@example.com", "subject": "x", "body": "x", **fields}
        headers = {"Idempotency-Key": f"{field}-{len(str(fields))}"}
        found = await server.api.post(f"/v1/inboxes/{inbox_id}/send", json=body, headers=headers)
        assert (found.status_code, found.json()["field"][: len(field)]) == (400, field), fields
    draft = await server.api.post(
        f"/v1/inboxes/{inbox_id}/drafts",
        json={
            "to": "bob@example.com",
            "subject": "x",
            "body": "x",
            "expectReplyBy": {"workingDays": 2},
            "followUps": [{"afterDays": 2, "body": "y"}],
        },
    )
    assert draft.json()["expectReplyBy"] == {"workingDays": 2}
    sent = await server.api.post(f"/v1/drafts/{draft.json()['id']}/send", headers={"Idempotency-Key": "d"})
    # the 14th of November 2026 is a Saturday: the first working day begins on Monday
    assert (await thread_of(server, sent.json()))["awaiting"]["until"] == "2026-11-18T09:00:00.000Z"


async def test_the_briefing_counts_what_came_and_what_waits_within_the_scope(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    other_id = await server.new_inbox("other")
    sent = await send(server, inbox_id, expectReplyBy={"days": 1})
    await left(server, sent["id"])
    await server.deliver(raw_mail("a", message_id="<1@x>"), "hello")
    await server.deliver(raw_mail("b", message_id="<2@x>"), "other")
    failed = await send(server, inbox_id)
    await server.resources.db.write(
        lambda tx: tx.run("update messages set status = 'failed' where id = :id", id=failed["id"])
    )
    server.clock.turn(DAY)
    await nudges.step(server.resources)
    since = "2026-11-14T09:00:00Z"

    async def counts(place: str = "") -> dict[str, int]:
        found = (await server.api.get(f"/v1/briefing?since={since}{place}")).json()
        assert all(len(found[name]["ids"]) == found[name]["count"] for name in list(found)[1:])
        return {name: found[name]["count"] for name in list(found)[1:]}

    mine = {"received": 1, "held": 0, "awaiting": 1, "overdue": 1, "failed": 1, "agenda": 0}
    assert await counts() == mine | {"received": 2}
    assert await counts(f"&inboxId={inbox_id}") == mine
    assert await counts(f"&inboxId={other_id}") == dict.fromkeys(mine, 0) | {"received": 1}
    assert (await server.api.get("/v1/briefing?since=2020-01-01T00:00:00Z")).json()["field"] == "since"
    assert (await server.api.get("/v1/briefing?inboxId=inb_0")).status_code == 404


@pytest.mark.sqlite_alone
async def test_working_days_are_those_of_the_calendar_of_the_inbox(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    calendar = (await server.api.get(f"/v1/calendars?inboxId={inbox_id}")).json()["data"][0]
    hours = {"sat": [["08:00", "12:00"]], "sun": [["08:00", "12:00"]]}
    changed = {"workingHours": hours, "timeZone": "Europe/Berlin"}
    answered = await server.api.patch(f"/v1/calendars/{calendar['id']}", json=changed)
    assert answered.status_code == 200, answered.text
    sent = await send(server, inbox_id, expectReplyBy={"workingDays": 2})
    # Saturday, 11:00 in Berlin: the second working day behind it is the next Saturday
    assert (await thread_of(server, sent))["awaiting"]["until"] == "2026-11-21T10:00:00.000Z"


@pytest.mark.sqlite_alone
def test_working_days_leave_out_nights_and_weekends() -> None:
    from postroom.clock import from_iso, to_iso

    for begins, days, ends in (
        ("2026-11-18T12:00:00Z", 2, "2026-11-20T12:00:00.000Z"),
        ("2026-11-19T12:00:00Z", 2, "2026-11-23T12:00:00.000Z"),
        ("2026-11-20T18:00:00Z", 1, "2026-11-24T09:00:00.000Z"),
        ("2026-11-20T03:00:00Z", 1, "2026-11-23T09:00:00.000Z"),
        ("2026-11-21T12:00:00Z", 1, "2026-11-24T09:00:00.000Z"),
    ):
        assert to_iso(working_time.after_working_days(from_iso(begins), days)) == ends, begins
