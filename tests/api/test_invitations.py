"""Invitations that leave by a send, and answers to those that come in: what calendars then read."""

import email
import email.policy
from email.message import EmailMessage
from typing import Any

import httpx2
import pytest

from postroom_mail.reading.calendar import Calendar, read_calendar
from tests.api.test_dashboard import signed_in
from tests.api.test_drafts import new_draft, send_draft
from tests.api.test_send import first_message, raw_of, send
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

MEETING = {
    "summary": "Planning, the yearly one",
    "start": "2026-11-20T15:00:00",
    "end": "2026-11-20T16:30:00",
    "timeZone": "Europe/Berlin",
    "location": "Room 7",
}
FAULTS: list[dict[str, Any]] = [
    {"timeZone": ""},
    {"timeZone": "Mars/Base"},
    {"timeZone": "../../etc/passwd"},
    {"start": "tomorrow"},
    {"start": "2026-13-40"},
    {"end": "2026-11-20"},
    {"end": "2026-11-20T14:00:00"},
    {"summary": ""},
    {"summary": "a\r\nATTENDEE:mailto:eve@example.org"},
    {"method": "cancel"},
    {"uid": "x@y"},
    {"uid": "x\ny", "sequence": 1},
    {"sequence": -1},
    {"recurrence": "FREQ=HOURLY;X"},
    {"recurrence": "COUNT=3"},
    {"attendees": ["not an address"]},
    {"attendees": ["a@example.org"] * 51},
    {"method": "publish"},
]
INVITATION = b"""From: Ann <ann@example.com>
To: bob@postroom.localhost
Subject: Invitation: Review
Message-ID: <i1@example.com>
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=b

--b
Content-Type: text/plain

You are invited.
--b
Content-Type: text/calendar; charset=utf-8; method=REQUEST

BEGIN:VCALENDAR
METHOD:REQUEST
BEGIN:VTIMEZONE
TZID:Central Time
BEGIN:STANDARD
DTSTART:20251102T020000
TZOFFSETFROM:-0500
TZOFFSETTO:-0600
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:review-1@example.com
SEQUENCE:4
SUMMARY:Review\\, part 2
DTSTART;TZID=Central Time:20261120T090000
DTEND;TZID=Central Time:20261120T100000
RECURRENCE-ID;TZID=Central Time:20261120T080000
ORGANIZER;CN="Olga, chair":mailto:olga@example.org
ATTENDEE;CN=Bob;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:bob+team@postroom.localhost
ATTENDEE;CN=Eve:mailto:eve@example.org
X-SECRET:do not copy
END:VEVENT
END:VCALENDAR
--b--
""".replace(b"\n", b"\r\n")


def as_read(raw: bytes) -> EmailMessage:
    """By the standard library, as another program would."""
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(mail, EmailMessage)
    return mail


def calendar_parts(raw: bytes) -> list[tuple[str, Calendar]]:
    """The types of the parts that hold the appointment, in their order, each with what it says."""
    found = []
    for part in as_read(raw).walk():
        if part.get_content_type() in ("text/calendar", "application/ics"):
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            read = read_calendar(content)
            assert read is not None
            found.append((part["Content-Type"], read))
    return found


async def respond(server: Server, message_id: str, key: str = "k", **body: Any) -> httpx2.Response:
    path = f"/v1/messages/{message_id}/calendar/respond"
    return await server.api.post(path, json=body, headers={"Idempotency-Key": key})


async def invited(server: Server, raw: bytes = INVITATION) -> dict[str, Any]:
    bob = await server.new_inbox("bob")
    await server.deliver(raw, "bob")
    return await first_message(server, bob)


async def test_a_send_with_an_appointment_is_an_invitation_that_calendars_take(server: Server) -> None:
    bob, carol = await server.new_inbox("bob"), await server.new_inbox("carol")
    sent = (
        await send(server, bob, cc="Dan <dan@example.org>", bcc="eve@example.org", calendar=MEETING)
    ).json()
    raw = await raw_of(server, sent["id"])
    mail = as_read(raw)
    alternative, file = mail.iter_parts()
    assert mail.get_content_type() == "multipart/mixed"
    assert [part.get_content_type() for part in alternative.iter_parts()] == ["text/plain", "text/calendar"]
    assert file.get_filename() == "invite.ics"
    (kind, part), (_, again) = calendar_parts(raw)
    assert "method=REQUEST" in kind.replace('"', "")
    assert part == again
    assert (part.method, part.summary, part.location) == ("REQUEST", MEETING["summary"], "Room 7")
    assert (part.start, part.time_zone, part.sequence) == ("2026-11-20T15:00:00", "Europe/Berlin", 0)
    assert [str(each) for each in part.attendees] == ["carol@postroom.localhost", "Dan <dan@example.org>"]
    shown = (await server.api.get(f"/v1/messages/{sent['id']}")).json()
    assert shown["calendar"]["uid"] == part.uid
    assert [each["filename"] for each in shown["attachments"]] == ["attachment-1.ics", "invite.ics"]
    for each in shown["attachments"]:
        assert (await server.api.get(each["url"])).content.startswith(b"BEGIN:VCALENDAR")
    arrived = await first_message(server, carol)
    assert arrived["calendar"]["startAt"] == "2026-11-20T14:00:00.000Z"
    assert arrived["calendar"]["organizer"] == "bob@postroom.localhost"


async def test_an_appointment_is_changed_and_called_off_by_its_uid(server: Server) -> None:
    bob = await server.new_inbox("bob")
    sent = (await send(server, bob, to="dan@example.org", calendar=MEETING)).json()
    uid = (await server.api.get(f"/v1/messages/{sent['id']}")).json()["calendar"]["uid"]
    off = MEETING | {"uid": uid, "sequence": 1, "method": "cancel"}
    sent = (await send(server, bob, to="dan@example.org", calendar=off)).json()
    [(kind, part), _] = calendar_parts(await raw_of(server, sent["id"]))
    assert "method=CANCEL" in kind.replace('"', "")
    assert (part.method, part.uid, part.sequence, part.status) == ("CANCEL", uid, 1, "CANCELLED")


async def test_an_appointment_that_says_too_little_or_too_much_is_refused(server: Server) -> None:
    bob = await server.new_inbox("bob")
    taken = []
    for fault in FAULTS:
        answer = await send(server, bob, calendar=MEETING | fault)
        if answer.status_code != 400 or not answer.json()["field"].startswith("calendar"):
            taken.append((fault, answer.text))
    assert not taken


async def test_a_draft_keeps_its_appointment_and_sends_it(server: Server) -> None:
    bob = await server.new_inbox("bob")
    fields = {"to": "carol@example.com", "subject": "Offer", "body": "Seven", "calendar": MEETING}
    draft = await new_draft(server, bob, **fields)
    assert draft["calendar"]["summary"] == MEETING["summary"]
    refused = await server.api.patch(f"/v1/drafts/{draft['id']}", json={"calendar": {"summary": "x"}})
    assert refused.status_code == 400
    sent = (await send_draft(server, draft["id"])).json()
    assert len(calendar_parts(await raw_of(server, sent["id"]))) == 2


async def test_an_invitation_is_answered_to_its_organizer_alone(server: Server) -> None:
    message = await invited(server)
    answer = await respond(server, message["id"], status="tentative", comment="Perhaps later")
    assert answer.status_code == 200, answer.text
    assert answer.json()["threadId"] == message["threadId"]
    sent = (await server.api.get(f"/v1/messages/{answer.json()['id']}")).json()
    assert (sent["headerTo"], sent["cc"], sent["subject"]) == (
        "olga@example.org",
        [],
        "Maybe: Review, part 2",
    )
    assert sent["replyText"] == "Perhaps later"
    assert sent["calendar"]["method"] == "REPLY"
    raw = await raw_of(server, sent["id"])
    (kind, part), (_, file) = calendar_parts(raw)
    assert part == file
    assert "method=REPLY" in kind.replace('"', "")
    assert (part.uid, part.sequence, part.recurrence_id) == ("review-1@example.com", 4, "2026-11-20T08:00:00")
    assert (part.start, part.start_at) == ("2026-11-20T09:00:00", 1_795_186_800_000)
    assert part.organizer == "Olga, chair <olga@example.org>"
    assert [(each.address, each.participation_status) for each in part.attendees] == [
        ("bob+team@postroom.localhost", "tentative")
    ]
    assert as_read(raw)["In-Reply-To"] == "<i1@example.com>"
    assert b"X-SECRET" not in b"".join(raw.split())
    again = await respond(server, message["id"], status="tentative", comment="Perhaps later")
    assert again.json() == answer.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (await respond(server, message["id"], status="declined")).json()[
        "error"
    ] == "idempotency_key_reused"


async def test_an_answer_is_held_like_any_other_send(server: Server) -> None:
    message = await invited(server)
    path = f"/v1/inboxes/{message['inboxId']}"
    await server.api.patch(path, json={"approval": {"when": ["strangers"]}})
    answer = (await respond(server, message["id"], status="accepted")).json()
    assert (answer["hold"]["state"], answer["hold"]["reasons"]) == ("held", ["strangers"])
    waiting = (await server.api.get("/v1/approvals")).json()["data"][0]["message"]
    assert waiting["calendar"]["attendees"][0]["participationStatus"] == "accepted"


async def test_what_an_invitation_says_counts_as_written_by_its_sender(server: Server) -> None:
    bob = await server.new_inbox("bob")
    await server.api.patch(f"/v1/inboxes/{bob}", json={"approval": {"when": ["links"]}})
    holds = [
        (await send(server, bob, to="dan@example.org", calendar=MEETING | {"location": place}))
        .json()
        .get("hold")
        for place in ("Room 7", "https://meet.example.org/x", "https://meet.example.org/y")
    ]
    assert holds[0] is None
    assert holds[1]["reasons"] == ["links"]
    assert holds[1]["contentHash"] != holds[2]["contentHash"]


NO_INVITATIONS = {
    "called off": INVITATION.replace(b"METHOD:REQUEST", b"METHOD:CANCEL"),
    "nobody to write to": INVITATION.replace(b"mailto:olga@example.org", b"https://example.org/olga"),
    "no uid": INVITATION.replace(b"UID:", b"X-UID:"),
    "no calendar": INVITATION.replace(b"VCALENDAR", b"VCARD").replace(b"VEVENT", b"VNOTE"),
}


async def test_what_brings_no_invitation_cannot_be_answered(server: Server) -> None:
    await server.new_inbox("bob")
    last = None
    for number, (what, raw) in enumerate(NO_INVITATIONS.items()):
        await server.deliver(raw.replace(b"<i1@", b"<no%d@" % number), "bob")
        event = await server.next_event(last)
        last = event["event_id"]
        answer = await respond(server, event["message"]["id"], status="accepted")
        assert (answer.status_code, answer.json()["error"]) == (422, "not_an_invitation"), what


async def test_an_answer_needs_a_key_a_known_message_and_a_known_word(server: Server) -> None:
    message = await invited(server)
    path = f"/v1/messages/{message['id']}/calendar/respond"
    assert (await server.api.post(path, json={"status": "accepted"})).json()["error"] == (
        "missing_idempotency_key"
    )
    assert (await respond(server, message["id"], status="maybe")).json()["field"] == "status"
    assert (await respond(server, "msg_unknown", status="nonsense")).status_code == 404


async def test_a_person_answers_on_the_page_and_sees_who_has(server: Server) -> None:
    message = await invited(server)
    async with signed_in(server) as page:
        thread = f"/app/mail/{message['threadId']}"
        shown = (await page.get(thread)).text
        assert f'action="/app/messages/{message["id"]}/calendar"' in shown
        for _ in range(2):
            answer = await page.post(
                f"/app/messages/{message['id']}/calendar", data={"status": "declined", "comment": "Away"}
            )
            assert answer.status_code == 303, answer.text
        assert "Bob, Eve" in shown
        assert "bob+team@postroom.localhost (declined)" in (await page.get(thread)).text
    sent = (await server.api.get(f"/v1/threads/{message['threadId']}/messages")).json()["data"]
    assert [each["calendar"]["method"] for each in sent] == ["REQUEST", "REPLY"]
