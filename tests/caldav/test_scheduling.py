"""Scheduling by a calendar client (RFC 6638): invitations and answers leave through the ordinary send."""

from typing import Any

import pytest

from postroom_mail.mime.parse import parse_mail
from postroom_mail.reading.appointment import calendars_of
from tests.api.test_calendar_mail import DAY, Writer
from tests.api.test_calendars import agenda, kinds_of
from tests.api.test_policy import allow
from tests.caldav.client import condition_of, event, signed_in
from tests.conftest import Server

ADDRESS = "bob@postroom.localhost"
DAYS = ("2026-11-20T00:00:00Z", "2026-11-24T00:00:00Z")
ASKED = (
    "ORGANIZER;CN=Bob:mailto:bob@postroom.localhost\nATTENDEE;PARTSTAT=ACCEPTED:mailto:bob@postroom.localhost\n"
    "ATTENDEE;PARTSTAT=ACCEPTED;RSVP=TRUE:mailto:olga@example.com\nATTENDEE:mailto:{}@example.com\n"
)


async def sent(server: Server, inbox_id: str) -> list[tuple[str, str, str]]:
    """Each email of the inbox: its method, its subject and whom it went to; newest last."""
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=outbound")).json()
    found = [(each["calendar"]["method"], each["subject"], each["headerTo"]) for each in page["data"]]
    return found[::-1]


async def test_what_a_client_stores_with_attendees_invites_changes_and_cancels_once(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    async with signed_in(server, ADDRESS, server.token) as dav:
        assert (await dav.put("a.ics", event(more=ASKED.format("pia")))).status_code == 201
        (made,) = await agenda(server, inbox_id, *DAY)
        assert (made["status"], {each["participationStatus"] for each in made["attendees"]}) == (
            "tentative",
            {"accepted", "needs-action"},
        )
        both = "olga@example.com, pia@example.com"
        assert await sent(server, inbox_id) == [("REQUEST", "Invitation: Planning", both)]
        written = (await dav.ask("GET", f"{dav.calendar}a.ics")).text
        alarm = "BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT5M\r\nEND:VALARM\r\nEND:VEVENT"
        kept = await dav.put("a.ics", written.replace("END:VEVENT", alarm))
        assert kept.status_code == 204, kept.text
        assert len(await sent(server, inbox_id)) == 1
        later = {"start": "20261120T170000Z", "end": "20261120T180000Z"}
        changed = await dav.put("a.ics", event(more=ASKED.format("quinn"), **later))
        assert changed.status_code == 204, changed.text
        assert sorted(await sent(server, inbox_id))[:2] == [
            ("CANCEL", "Cancelled: Planning", "pia@example.com"),
            ("REQUEST", "Invitation: Planning", both),
        ]
        assert sorted(await sent(server, inbox_id))[2:] == [
            ("REQUEST", "Updated: Planning", "olga@example.com, quinn@example.com")
        ]
        old = {"start": "20201120T170000Z", "end": "20201120T180000Z"}
        assert (await dav.put("old.ics", event("old", more=ASKED.format("pia"), **old))).status_code == 201
        assert len(await sent(server, inbox_id)) == 3
        assert (await dav.ask("DELETE", f"{dav.calendar}a.ics")).status_code == 204
        assert (await sent(server, inbox_id))[-1][:2] == ("CANCEL", "Cancelled: Planning")
        assert await agenda(server, inbox_id, *DAY) == []


@pytest.mark.sqlite_alone
async def test_an_attendee_answers_by_its_file_and_changes_nothing_else(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    writer = Writer(server)
    await writer.write()
    (invited,) = await agenda(server, inbox_id, *DAY)
    async with signed_in(server, ADDRESS, server.token) as dav:
        name = f"{invited['id']}.ics"
        written = (await dav.ask("GET", f"{dav.calendar}{name}")).text
        assert "PARTSTAT=NEEDS-ACTION" in written
        moved = await dav.put(name, written.replace("T160000Z", "T163000Z"))
        assert (moved.status_code, condition_of(moved)) == (
            403,
            "allowed-attendee-scheduling-object-change",
        )
        accepted = await dav.put(name, written.replace("NEEDS-ACTION", "ACCEPTED"))
        assert accepted.status_code == 204, accepted.text
        assert await sent(server, inbox_id) == [("REPLY", "Accepted: Review", "olga@example.com")]
        (answered,) = await agenda(server, inbox_id, *DAY)
        assert answered["ownResponse"] == "accepted"
        again = (await dav.ask("GET", f"{dav.calendar}{name}")).text
        assert (await dav.put(name, again)).status_code == 204
        assert len(await sent(server, inbox_id)) == 1
        assert (await dav.ask("DELETE", f"{dav.calendar}{name}")).status_code == 204
        assert (await sent(server, inbox_id))[-1][:2] == ("REPLY", "Declined: Review")
        assert (await dav.ask("GET", f"{dav.calendar}{name}")).status_code == 404
        unproven = event(
            "elsewhere",
            "Lunch",
            f"ORGANIZER:mailto:eve@example.net\nATTENDEE;PARTSTAT=TENTATIVE:mailto:{ADDRESS}\n",
        )
        assert (await dav.put("lunch.ics", unproven)).status_code == 201
        assert (await sent(server, inbox_id))[-1] == ("REPLY", "Maybe: Lunch", "eve@example.net")
        (lunch,) = await agenda(server, inbox_id, *DAY)
        assert (lunch["summary"], lunch["ownResponse"]) == ("Lunch", "tentative")
    assert (await kinds_of(server))[:2] == ["calendar.invited", "calendar.answered"]


@pytest.mark.sqlite_alone
async def test_an_attendee_answers_one_occurrence_of_a_series(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    await Writer(server).write(more="RRULE:FREQ=DAILY;COUNT=3\n")
    (invited, *_) = await agenda(server, inbox_id, *DAYS)
    async with signed_in(server, ADDRESS, server.token) as dav:
        name = f"{invited['id']}.ics"
        written = (await dav.ask("GET", f"{dav.calendar}{name}")).text
        accepted = written.replace("NEEDS-ACTION", "ACCEPTED")
        assert (await dav.put(name, accepted)).status_code == 204
        for number, (said, subject) in enumerate((("DECLINED", "Declined"), ("TENTATIVE", "Maybe")), 2):
            one = with_one(accepted, said)
            for _ in range(2):  # the same file sends nothing again
                answered = await dav.put(name, one)
                assert answered.status_code == 204, answered.text
            answers = await sent(server, inbox_id)
            assert len(answers) == number
            assert answers[-1] == ("REPLY", f"{subject}: Review", "olga@example.com")
            page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=outbound")).json()
            raw = (await server.api.get(f"/v1/messages/{page['data'][0]['id']}/raw")).content
            (reply, *_) = calendars_of(parse_mail(raw))
            assert b"RECURRENCE-ID:20261121T160000Z" in reply
            assert f"PARTSTAT={said}".encode() in reply
            assert b"RRULE" not in reply
            days = await agenda(server, inbox_id, *DAYS)
            status = {each["start"][8:10]: each["attendees"][0]["participationStatus"] for each in days}
            assert status == {"20": "accepted", "21": said.lower(), "22": "accepted"}
            assert {each["ownResponse"] for each in days} == {"accepted"}
            transparent = [each["start"][8:10] for each in days if each["transparency"] == "transparent"]
            assert transparent == (["21"] if said == "DECLINED" else [])
        page = (await server.api.get("/v1/events?limit=100")).json()
        newest = [each for each in page["data"] if each["event"] == "calendar.answered"][-1]
        assert newest["calendar_event"]["recurrence_id"] == "2026-11-21T16:00:00+00:00"
        none = with_one(accepted, "DECLINED").replace("20261121T16", "20261121T11")
        refused = await dav.put(name, none)
        assert (refused.status_code, condition_of(refused)) == (
            403,
            "allowed-attendee-scheduling-object-change",
        )
        assert len(await sent(server, inbox_id)) == 3
        by_client = with_one(accepted, "DECLINED").replace("ORGANIZER", "ORGANIZER;SCHEDULE-AGENT=CLIENT")
        assert (await dav.put(name, by_client)).status_code == 204
        days = await agenda(server, inbox_id, *DAYS)
        assert [each["transparency"] for each in days] == ["opaque", "transparent", "opaque"]
        assert len(await sent(server, inbox_id)) == 3
        declined = with_one(accepted, "DECLINED").replace("=ACCEPTED", "=DECLINED")
        assert (await dav.put(name, declined)).status_code == 204
        assert (await sent(server, inbox_id))[3:] == [("REPLY", "Declined: Review", "olga@example.com")]


def with_one(file: str, said: str) -> str:
    """The file with an answer of its own to the second day."""
    begin, end = file.index("BEGIN:VEVENT"), file.index("END:VCALENDAR")
    lines = [line for line in file[begin:end].splitlines() if not line.startswith("RRULE")]
    at = lines.index("DTSTART:20261120T160000Z")
    one = "\r\n".join([*lines[:at], "RECURRENCE-ID:20261121T160000Z", *lines[at:], ""])
    one = one.replace("20261120T", "20261121T").replace("PARTSTAT=ACCEPTED", f"PARTSTAT={said}")
    return file[:end] + one + file[end:]


@pytest.mark.sqlite_alone
async def test_a_policy_and_an_approval_hold_what_a_client_sends(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    key: dict[str, Any] = (
        await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"permissions": ["read", "draft"]})
    ).json()
    async with signed_in(server, ADDRESS, key["token"]) as dav:
        assert (await dav.put("a.ics", event(more=ASKED.format("pia")))).status_code == 201
        (held,) = (await server.api.get("/v1/approvals")).json()["data"]
        (waiting,) = await agenda(server, inbox_id, *DAY)
        assert (waiting["status"], waiting["messageId"]) == ("tentative", held["message"]["id"])
    await allow(server, "outbound", "*.elsewhere.example")
    async with signed_in(server, ADDRESS, server.token) as dav:
        refused = await dav.put("b.ics", event("b", more=ASKED.format("pia")))
        assert (refused.status_code, refused.json()["error"]) == (403, "recipient_not_allowed")
        assert (await dav.ask("GET", f"{dav.calendar}b.ics")).status_code == 404
