"""Email and calendar are one: who is invited, who answers, who forges, and what waits for approval."""

from typing import Any

import pytest

from tests.api.test_calendars import MEETING, agenda, create, kinds_of
from tests.api.test_policy import block
from tests.conftest import Server
from tests.waiting import until

DAY = ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")
MAIL = """From: {sender}
To: bob@postroom.localhost
Subject: {method}
Message-ID: <{number}@example.com>
MIME-Version: 1.0
Content-Type: text/calendar; charset=utf-8; method={method}

BEGIN:VCALENDAR
METHOD:{method}
BEGIN:VEVENT
UID:{uid}
SEQUENCE:{sequence}
SUMMARY:{summary}
DTSTART:{start}
DTEND:20261120T170000Z
ORGANIZER:mailto:{organizer}
ATTENDEE;PARTSTAT={status};RSVP=TRUE:mailto:{attendee}
{more}END:VEVENT
END:VCALENDAR
"""


class Writer:
    """Somebody outside who writes about one event."""

    def __init__(self, server: Server) -> None:
        self.server, self.number = server, 0

    async def write(
        self, method: str = "REQUEST", inbox: str = "bob", include: str = "", **fields: Any
    ) -> dict[str, Any]:
        self.number += 1
        told = {
            "sender": "olga@example.com",
            "organizer": "olga@example.com",
            "uid": "review-1",
            "sequence": 0,
            "summary": "Review",
            "start": "20261120T160000Z",
            "status": "NEEDS-ACTION",
            "attendee": "bob@postroom.localhost",
            "more": "",
            **fields,
        }
        raw = MAIL.format(method=method, number=self.number, **told).replace("\n", "\r\n").encode()
        await self.server.deliver_to(raw, f"{inbox}@postroom.localhost", sender=told["sender"])
        found: list[dict[str, Any]] = []

        async def has_come() -> bool:
            path = f"/v1/inboxes/{inbox}@postroom.localhost/messages"
            path += f"?include={include}" if include else ""
            page = (await self.server.api.get(path)).json()
            found[:] = [
                each for each in page["data"] if each["rfcMessageId"] == f"<{self.number}@example.com>"
            ]
            return bool(found) and found[0]["verdict"] is not None

        await until(has_come)
        return found[0]


def signals_of(message: dict[str, Any]) -> list[str]:
    return [each["name"] for each in message["signals"] if each["name"].startswith("calendar")]


@pytest.mark.sqlite_alone
async def test_what_the_organizer_writes_changes_the_event_and_what_anybody_else_writes_is_shown_as_forged(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("bob")
    writer = Writer(server)
    assert signals_of(await writer.write()) == []
    (event,) = await agenda(server, inbox_id, *DAY)
    assert (event["summary"], event["status"], event["ownResponse"]) == (
        "Review",
        "tentative",
        "needs-action",
    )
    assert signals_of(await writer.write(sequence=2, summary="Review 2")) == []
    forged = await writer.write(sequence=9, summary="Pay here", sender="eve@example.net")
    assert signals_of(forged) == ["calendar_forged"]
    assert forged["verdict"] != "clean"
    taken = {"sender": "eve@example.net", "organizer": "eve@example.net"}
    assert signals_of(await writer.write("CANCEL", sequence=9, **taken)) == ["calendar_forged"]
    assert signals_of(await writer.write(sequence=1, summary="An old one that came late")) == []
    claimed = {"sender": "eve@example.net", "uid": "new-1", "summary": "From Olga, it says"}
    assert signals_of(await writer.write(**claimed)) == ["calendar_organizer"]
    (event,) = await agenda(server, inbox_id, *DAY)
    assert event["summary"] == "Review 2"
    path = f"/v1/calendar-events/{event['id']}"
    answered = await server.api.post(
        f"{path}/respond", json={"response": "accepted"}, headers={"Idempotency-Key": "a"}
    )
    assert (answered.json()["ownResponse"], answered.json()["status"]) == ("accepted", "confirmed")
    assert (await server.api.patch(path, json={"summary": "Mine"})).json()["error"] == "not_organizer"
    await writer.write(sequence=3, start="20261120T163000Z", summary="Review 2")
    (event,) = await agenda(server, inbox_id, *DAY)
    assert (event["ownResponse"], event["start"]) == ("needs-action", "2026-11-20T16:30:00+00:00")
    await writer.write("CANCEL", sequence=4)
    assert await agenda(server, inbox_id, *DAY) == []
    assert await kinds_of(server) == [
        "calendar.invited",
        "calendar.changed",
        "calendar.answered",
        "calendar.changed",
        "calendar.cancelled",
    ]


@pytest.mark.sqlite_alone
async def test_attendees_are_invited_by_email_and_their_answers_show_on_the_event(server: Server) -> None:
    inbox_id, other_id = await server.new_inbox("hello"), await server.new_inbox("bob")
    people = [{"address": "bob@postroom.localhost"}, {"address": "ann@example.com", "name": "Ann"}]
    refused = await server.api.post(
        "/v1/calendar-events", json={**MEETING, "inboxId": inbox_id, "attendees": people}
    )
    assert refused.json()["error"] == "missing_idempotency_key"
    made = await create(server, "k", inboxId=inbox_id, attendees=people)
    assert (made["status"], made["organizer"]) == ("tentative", "hello@postroom.localhost")
    assert (await create(server, "k", inboxId=inbox_id, attendees=people))["id"] == made["id"]
    assert (await server.api.get(f"/v1/messages/{made['messageId']}")).json()["calendar"]["uid"] == made[
        "uid"
    ]
    twice = await server.api.post("/v1/calendar-events", json={**MEETING, "inboxId": other_id})
    assert (twice.status_code, twice.json()["error"]) == (409, "slot_taken")

    async def invited() -> list[dict[str, Any]]:
        return await agenda(server, other_id, *DAY)

    async def is_invited() -> bool:
        return bool(await invited())

    await until(is_invited)
    (copy,) = await invited()
    assert (copy["uid"], copy["ownResponse"]) == (made["uid"], "needs-action")
    await server.api.post(
        f"/v1/calendar-events/{copy['id']}/respond",
        json={"response": "declined", "comment": "Away"},
        headers={"Idempotency-Key": "b"},
    )
    path = f"/v1/calendar-events/{made['id']}"

    async def states() -> list[str]:
        event = (await server.api.get(path)).json()
        return [each["participationStatus"] for each in event["attendees"]]

    async def has_declined() -> bool:
        return await states() == ["declined", "needs-action"]

    await until(has_declined)
    assert (
        await server.api.post("/v1/calendar-events", json={**MEETING, "inboxId": other_id})
    ).status_code == 201
    writer = Writer(server)
    about = {"uid": made["uid"], "organizer": "hello@postroom.localhost", "inbox": "hello"}
    ann = {"sender": "ann@example.com", "attendee": "ann@example.com"}
    forged = await writer.write("REPLY", status="ACCEPTED", **{**ann, "sender": "eve@example.net"}, **about)
    assert signals_of(forged) == ["calendar_forged"]
    assert await states() == ["declined", "needs-action"]
    await writer.write("COUNTER", status="TENTATIVE", more="COMMENT:Later?\n", **ann, **about)
    event = (await server.api.get(path)).json()
    assert [each["comment"] for each in event["proposals"]] == ["Later?"]
    await writer.write("REPLY", status="ACCEPTED", **ann, **about)
    assert await states() == ["declined", "accepted"]


@pytest.mark.sqlite_alone
async def test_an_event_is_tentative_until_its_email_leaves_and_as_before_if_that_is_rejected(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["always"]}})
    key = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})).json()["token"]
    asked = {**MEETING, "inboxId": inbox_id, "attendees": [{"address": "ann@example.com"}]}
    async with server.client(key) as agent:
        answer = await agent.post("/v1/calendar-events", json=asked, headers={"Idempotency-Key": "k"})
        made = answer.json()
        assert (made["status"], made["hold"]["state"]) == ("tentative", "held"), answer.text
        busy = {"inboxIds": inbox_id, "from": DAY[0], "until": DAY[1]}
        (span,) = (await agent.get("/v1/free-busy", params=busy)).json()["inboxes"][inbox_id]
        assert span["status"] == "tentative"
        taken = await agent.post("/v1/calendar-events", json={**MEETING, "inboxId": inbox_id})
        assert taken.json()["error"] == "slot_taken"
    rejected = await server.api.post(f"/v1/messages/{made['messageId']}/reject", json={})
    assert rejected.status_code == 200, rejected.text

    async def is_undone() -> bool:
        return (await kinds_of(server))[-1:] == ["calendar.cancelled"]

    await until(is_undone)
    assert await agenda(server, inbox_id, *DAY) == []
    assert (await server.api.get(f"/v1/calendar-events/{made['id']}")).json()["status"] == "cancelled"


async def test_an_invitation_that_a_policy_or_the_junk_filter_stopped_enters_the_calendar_when_released(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("bob")
    writer = Writer(server)
    rule = await block(server, "inbound", "olga@example.com")
    stopped = await writer.write(include="blocked")
    assert await agenda(server, inbox_id, *DAY) == []
    await writer.write(include="blocked", sequence=1, uid="never", summary="Never released")
    released = await server.api.post(f"/v1/messages/{stopped['id']}/release")
    assert released.status_code == 200, released.text
    (event,) = await agenda(server, inbox_id, *DAY)
    assert (event["summary"], event["messageId"]) == ("Review", stopped["id"])
    assert event["threadId"] == released.json()["threadId"]
    await server.api.delete(f"/v1/policy/rules/{rule}")
    junk = {"junk": {"action": "folder", "threshold": 0.01, "rejectThreshold": 1.0}}
    assert (await server.api.patch(f"/v1/inboxes/{inbox_id}", json=junk)).status_code == 200
    aside = await writer.write(include="junk", uid="junk-1", summary="Win now")
    assert len(await agenda(server, inbox_id, *DAY)) == 1
    assert (await server.api.post(f"/v1/messages/{aside['id']}/not-junk")).status_code == 200
    assert {each["summary"] for each in await agenda(server, inbox_id, *DAY)} == {"Review", "Win now"}
    assert await kinds_of(server) == ["calendar.invited", "calendar.invited"]
