"""Calendars over REST: events and series, who gets a slot, and emails that change the calendar."""

import asyncio
from typing import Any

import pytest

from postroom.calendar_errors import EventChanged
from postroom.operations.calendars.imported import MOST_EMITTED
from postroom.upkeep.calendar_times import step
from postroom.web.api.calendar_events import ATTEMPTS, again_if_changed
from tests.api.test_policy import block
from tests.conftest import Server
from tests.waiting import until

MEETING = {"summary": "Planning", "start": "2026-11-20T15:00:00", "end": "2026-11-20T16:00:00"}


async def create(server: Server, key: str = "", **fields: Any) -> dict[str, Any]:
    headers = {"Idempotency-Key": key} if key else {}
    answer = await server.api.post("/v1/calendar-events", json={**MEETING, **fields}, headers=headers)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def agenda(
    server: Server, inbox_id: str, since: str, until_: str, **query: str
) -> list[dict[str, Any]]:
    asked = {"inboxId": inbox_id, "from": since, "until": until_, **query}
    answer = await server.api.get("/v1/calendar-events", params=asked)
    assert answer.status_code == 200, answer.text
    page = answer.json()
    found: list[dict[str, Any]] = page["data"]
    assert page["total"] == len(found)
    return found


async def kinds_of(server: Server) -> list[str]:
    page = (await server.api.get("/v1/events?limit=100")).json()
    return [each["event"] for each in page["data"] if each["event"].startswith("calendar.")]


@pytest.mark.sqlite_alone
async def test_an_inbox_has_a_calendar_and_its_series_is_read_and_changed_in_its_time_zone(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    page = (await server.api.get("/v1/calendars", params={"inboxId": inbox_id})).json()
    (calendar,) = page["data"]
    assert (calendar["isDefault"], calendar["timeZone"]) == (True, "UTC")
    changed = await server.api.patch(
        f"/v1/calendars/{calendar['id']}",
        json={"timeZone": "Europe/Berlin", "workingHours": {"fri": [["09:00", "17:00"]]}},
    )
    assert changed.json()["workingHours"] == {"fri": [["09:00", "17:00"]]}
    made = await create(
        server,
        inboxId=inbox_id,
        start="2026-03-20T09:00:00",
        end="2026-03-20T10:00:00",
        recurrence=["RRULE:FREQ=WEEKLY;COUNT=4"],
        description="Bring numbers",
    )
    assert (made["start"], made["timeZone"], made["recurrenceId"]) == (
        "2026-03-20T09:00:00+01:00",
        "Europe/Berlin",
        None,
    )
    spring = ("2026-03-01T00:00:00Z", "2026-05-01T00:00:00Z")
    starts = [each["start"] for each in await agenda(server, inbox_id, *spring)]
    assert starts == [
        "2026-03-20T09:00:00+01:00",
        "2026-03-27T09:00:00+01:00",
        "2026-04-03T09:00:00+02:00",
        "2026-04-10T09:00:00+02:00",
    ]
    assert len(await agenda(server, inbox_id, *spring, expand="false")) == 1
    path = f"/v1/calendar-events/{made['id']}"
    one = {"scope": "this", "recurrenceId": "2026-03-27T09:00:00+01:00"}
    moved = await server.api.patch(path, params=one, json={"start": "2026-03-27T11:00:00", "summary": "Late"})
    assert moved.status_code == 200, moved.text
    rest = {"scope": "following", "recurrenceId": "2026-04-10T07:00:00Z"}
    split = await server.api.patch(path, params=rest, json={"summary": "New round"})
    assert split.json()["id"] != made["id"], split.text
    gone = await server.api.delete(path, params={**one, "recurrenceId": "2026-04-03T09:00:00+02:00"})
    assert gone.status_code == 200, gone.text
    seen = [(each["start"], each["summary"]) for each in await agenda(server, inbox_id, *spring)]
    assert seen == [
        ("2026-03-20T09:00:00+01:00", "Planning"),
        ("2026-03-27T11:00:00+01:00", "Late"),
        ("2026-04-10T09:00:00+02:00", "New round"),
    ]
    for query in ({"scope": "this"}, {"scope": "this", "recurrenceId": "2026-03-21T09:00:00+01:00"}):
        refused = await server.api.delete(path, params=query)
        assert (refused.status_code, refused.json()["field"]) == (400, "recurrenceId")
    assert (await server.api.delete(path)).json()["status"] == "cancelled"
    assert [each["summary"] for each in await agenda(server, inbox_id, *spring)] == ["New round"]
    assert (await server.api.get(path)).json()["status"] == "cancelled"
    assert await kinds_of(server) == [
        "calendar.created",
        "calendar.changed",
        "calendar.changed",
        "calendar.created",
        "calendar.cancelled",
        "calendar.cancelled",
    ]


@pytest.mark.sqlite_alone
async def test_two_that_take_a_slot_at_once_get_it_once_and_the_same_key_twice_makes_one_event(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    asked = [
        server.api.post("/v1/calendar-events", json={**MEETING, "inboxId": inbox_id, "summary": f"{number}"})
        for number in range(6)
    ]
    answers = await asyncio.gather(*asked)
    assert sorted(each.status_code for each in answers) == [201, 409, 409, 409, 409, 409]
    refused = next(each.json() for each in answers if each.status_code == 409)
    assert (refused["error"], refused["inbox"]) == ("slot_taken", inbox_id)
    await create(server, inboxId=inbox_id, allowOverlap=True)
    await create(server, inboxId=inbox_id, transparency="transparent")
    later = {"start": "2026-11-20T16:00:00", "end": "2026-11-20T17:00:00"}
    first = await create(server, inboxId=inbox_id, key="k", **later)
    assert (await create(server, inboxId=inbox_id, key="k", **later))["id"] == first["id"]
    busy = await server.api.get(
        "/v1/free-busy",
        params={"inboxIds": inbox_id, "from": "2026-11-20T00:00:00Z", "until": "2026-11-21T00:00:00Z"},
    )
    assert busy.json()["inboxes"][inbox_id] == [
        {"start": "2026-11-20T15:00:00.000Z", "end": "2026-11-20T17:00:00.000Z", "status": "busy"}
    ]
    found = await server.api.post(
        "/v1/find-times",
        json={
            "inboxIds": [inbox_id],
            "durationMinutes": 60,
            "from": "2026-11-20T14:00:00Z",
            "until": "2026-11-23T10:00:00Z",
            "limit": 3,
        },
    )
    assert [each["start"] for each in found.json()["slots"]] == [
        "2026-11-20T14:00:00.000Z",
        "2026-11-23T09:00:00.000Z",
    ]


async def test_the_log_tells_once_that_an_event_starts_and_ends_whatever_happened_to_the_server(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    await create(server, inboxId=inbox_id, start="2026-11-14T12:00:00", end="2026-11-14T13:00:00")

    async def told(count: int) -> list[str]:
        async def has_come() -> bool:
            return len(await kinds_of(server)) >= count

        await until(has_come)
        return await kinds_of(server)

    server.clock.turn(110 * 60_000)
    assert await told(2) == ["calendar.created", "calendar.starting"]
    assert await server.resources.db.write(step, server.clock.now()) == 0
    server.clock.turn(2 * 3600 * 1000)
    assert await told(3) == ["calendar.created", "calendar.starting", "calendar.ended"]


async def test_a_file_is_imported_once_and_a_private_link_shows_the_calendar_until_it_ends(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    asked = {"inboxId": inbox_id, "name": "Team", "timeZone": "Europe/Berlin"}
    calendar = (await server.api.post("/v1/calendars", json=asked)).json()
    path = f"/v1/calendars/{calendar['id']}"
    event = "BEGIN:VEVENT\r\nUID:{}\r\nSUMMARY:Talk\r\nDTSTART;VALUE=DATE:2026112{}\r\n{}END:VEVENT\r\n"
    content = (
        "BEGIN:VCALENDAR\r\n"
        + event.format("a", 0, "")
        + event.format("b", 1, "RRULE:FREQ=SECONDLY\r\n")
        + "END:VCALENDAR\r\n"
    )
    for expected in ((2, 0), (0, 2)):
        done = (await server.api.post(f"{path}/import", json={"content": content})).json()
        assert (done["created"], done["unchanged"]) == expected
    wrong = await server.api.post(f"{path}/import", json={"content": "nothing"})
    assert (wrong.status_code, wrong.json()["error"]) == (422, "invalid_calendar_file")
    first = await agenda(server, inbox_id, "2026-11-20T00:00:00Z", "2026-11-20T22:00:00Z")
    assert [(each["start"], each["end"], each["allDay"]) for each in first] == [
        ("2026-11-20", "2026-11-21", True)
    ]
    url = (await server.api.post(f"{path}/feed")).json()["url"]
    feed = await server.api.get(f"/{url.split('/', 3)[3]}")
    assert feed.headers["content-type"].startswith("text/calendar"), feed.text
    assert feed.text.count("BEGIN:VEVENT") == 2
    assert (await server.api.delete(f"{path}/feed")).status_code == 204
    assert (await server.api.get(f"/{url.split('/', 3)[3]}")).status_code == 404
    assert (await server.api.delete(path)).status_code == 204
    (default,) = (await server.api.get(f"/v1/calendars?inboxId={inbox_id}")).json()["data"]
    assert (await server.api.delete(f"/v1/calendars/{default['id']}")).json()["error"] == "default_calendar"


@pytest.mark.sqlite_alone
async def test_what_is_of_another_account_is_not_found_before_anything_else_is_looked_at(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    event = await create(server, inboxId=inbox_id)
    other_id = await server.new_inbox("other")
    key = (await server.api.post(f"/v1/inboxes/{other_id}/api-keys", json={})).json()["token"]
    async with server.client(key) as agent:
        for method, path in (
            ("GET", f"/v1/calendar-events/{event['id']}"),
            ("PATCH", f"/v1/calendar-events/{event['id']}"),
            ("DELETE", f"/v1/calendar-events/{event['id']}"),
            ("POST", f"/v1/calendar-events/{event['id']}/respond"),
            ("PATCH", f"/v1/calendars/{event['calendarId']}"),
            ("POST", f"/v1/calendars/{event['calendarId']}/import"),
            ("GET", f"/v1/calendar-events?inboxId={inbox_id}"),
        ):
            answer = await agent.request(method, path, json=None if method == "GET" else {"summary": 1})
            assert answer.status_code == 404, (method, path, answer.text)
        assert (await agent.get("/v1/calendar-events", params={"expand": "true"})).json()["total"] == 0
        listed = (await agent.get("/v1/calendars")).json()
        assert [each["inboxId"] for each in listed["data"]] == [other_id]


async def test_events_are_found_by_their_words_at_any_time_and_within_one(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    attendees = [{"address": "olga@example.com", "name": "Ólga Çelik"}]
    await create(server, key="a", inboxId=inbox_id, summary="Budget review", attendees=attendees)
    await create(
        server,
        inboxId=inbox_id,
        summary="Standup",
        description="The BUDGET of March",
        start="2027-03-01T09:00:00",
        end="2027-03-01T09:15:00",
        recurrence=["RRULE:FREQ=DAILY;COUNT=3"],
    )
    gone = await create(server, inboxId=inbox_id, summary="Budget of nobody", allowOverlap=True)
    await server.api.delete(f"/v1/calendar-events/{gone['id']}")

    async def found(**asked: str) -> list[str]:
        page = (await server.api.get("/v1/calendar-events", params={"inboxId": inbox_id, **asked})).json()
        assert page["total"] == len(page["data"]), page
        return [each["summary"] for each in page["data"]]

    assert await found(q="budget") == ["Standup", "Budget review"]
    assert await found(q="budg celik") == ["Budget review"]
    assert await found(q="udget") == []
    march = {"from": "2027-03-01T00:00:00Z", "until": "2027-03-31T00:00:00Z"}
    assert await found(q="march", **march) == ["Standup"] * 3
    assert await found(q="review", **march) == []
    wrong = await server.api.get("/v1/calendar-events", params={"inboxId": inbox_id, "q": "!?"})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "q")


@pytest.mark.sqlite_alone
async def test_the_log_tells_of_what_is_imported_and_still_to_come_up_to_a_number(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    (calendar,) = (await server.api.get(f"/v1/calendars?inboxId={inbox_id}")).json()["data"]
    event = "BEGIN:VEVENT\r\nUID:{0}\r\nSUMMARY:{1}\r\nDTSTART:20{2}1120T150000Z\r\nEND:VEVENT\r\n"
    path = f"/v1/calendars/{calendar['id']}/import"
    for summary, year in (("Talk", 26), ("Changed", 27)):
        listed = [
            event.format(number, summary, year if number else 20) for number in range(MOST_EMITTED + 20)
        ]
        content = "".join(["BEGIN:VCALENDAR\r\n", *listed, "END:VCALENDAR\r\n"])
        assert (await server.api.post(path, json={"content": content})).status_code == 200
    kinds = (await server.api.get("/v1/events?limit=100")).json()["data"]
    told = [(each["event"], each["calendar_event"]["summary"]) for each in kinds]
    assert (
        told
        == [("calendar.created", "Talk")] * MOST_EMITTED + [("calendar.changed", "Changed")] * MOST_EMITTED
    )


@pytest.mark.sqlite_alone
async def test_what_follows_is_told_with_its_end_in_one_transaction_and_the_removed_are_told_too(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("hello")
    both = [{"address": "olga@example.com"}, {"address": "pia@example.com"}]
    made = await create(
        server, key="a", inboxId=inbox_id, recurrence=["RRULE:FREQ=WEEKLY;COUNT=4"], attendees=both
    )
    path = f"/v1/calendar-events/{made['id']}"

    async def sent() -> list[tuple[str, str]]:
        page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=outbound")).json()
        return sorted((each["calendar"]["method"], each["headerTo"]) for each in page["data"])

    rest = {"scope": "following", "recurrenceId": "2026-12-04T15:00:00Z"}
    only_pia = {"attendees": both[1:], "summary": "Pia alone"}
    await block(server, "outbound", "pia@example.com")
    refused = await server.api.patch(path, params=rest, json=only_pia, headers={"Idempotency-Key": "b"})
    assert refused.json()["error"] == "recipient_not_allowed"
    month = ("2026-11-01T00:00:00Z", "2026-12-30T00:00:00Z")
    assert {each["summary"] for each in await agenda(server, inbox_id, *month)} == {"Planning"}
    only_olga = {"attendees": both[:1], "summary": "Olga alone"}
    changed = await server.api.patch(path, json=only_olga, headers={"Idempotency-Key": "c"})
    assert changed.json()["error"] == "recipient_not_allowed"
    rules = (await server.api.get("/v1/policy")).json()["outbound"]["rules"]
    await server.api.delete(f"/v1/policy/rules/{rules[0]['id']}")
    changed = await server.api.patch(path, json=only_olga, headers={"Idempotency-Key": "c"})
    assert changed.status_code == 200, changed.text
    repeated = await server.api.patch(path, json=only_olga, headers={"Idempotency-Key": "c"})
    assert repeated.json()["id"] == changed.json()["id"]
    told = [each.headers.get("Idempotent-Replayed") for each in (changed, repeated)]
    assert told == [None, "true"]
    assert await sent() == [
        ("CANCEL", "pia@example.com"),
        ("REQUEST", "olga@example.com"),
        ("REQUEST", "olga@example.com, pia@example.com"),
    ]
    asked = {"summary": "New round"}
    split = await server.api.patch(path, params=rest, json=asked, headers={"Idempotency-Key": "d"})
    again = await server.api.patch(path, params=rest, json=asked, headers={"Idempotency-Key": "d"})
    assert (split.json()["summary"], again.status_code) == ("New round", 400)
    assert len(await sent()) == 5


async def test_a_change_meanwhile_is_no_conflict_for_a_request_that_names_no_version() -> None:
    tried: list[int] = []

    async def act() -> Any:
        tried.append(len(tried))
        if len(tried) < ATTEMPTS:
            raise EventChanged("changed")
        return tried

    await again_if_changed(act)
    assert tried == [0, 1, 2]
    with pytest.raises(EventChanged):
        await again_if_changed(refuse)


async def refuse() -> Any:
    raise EventChanged("changed")
