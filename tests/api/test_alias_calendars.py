"""Aliases in calendars: who is invited, answers and is free by another address of an inbox."""

from typing import Any

import pytest

from tests.api.test_calendar_mail import DAY, Writer
from tests.api.test_calendars import agenda, create
from tests.caldav.client import event, signed_in
from tests.conftest import Server
from tests.waiting import until

ALIAS = "billing@postroom.localhost"


async def with_alias(server: Server, name: str, alias: str = ALIAS) -> str:
    inbox_id = await server.new_inbox(name)
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/aliases", json={"address": alias})
    assert made.status_code == 201, made.text
    return inbox_id


async def sent_of(server: Server, inbox_id: str) -> list[dict[str, Any]]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=outbound")).json()
    found: list[dict[str, Any]] = page["data"]
    return found


@pytest.mark.sqlite_alone
async def test_an_alias_that_is_invited_answers_in_its_own_name(server: Server) -> None:
    bob = await with_alias(server, "bob")
    olga = Writer(server)
    await olga.write(attendee=ALIAS, status="ACCEPTED", uid="settled")
    (settled,) = await agenda(server, bob, *DAY)
    assert settled["ownResponse"] == "accepted", "the organizer knows the answer"
    await olga.write(attendee=ALIAS)
    asked = next(each for each in await agenda(server, bob, *DAY) if each["uid"] == "review-1")
    answer = await server.api.post(
        f"/v1/calendar-events/{asked['id']}/respond",
        json={"response": "declined"},
        headers={"Idempotency-Key": "a"},
    )
    assert answer.status_code == 200, answer.text
    (mail,) = await sent_of(server, bob)
    assert (mail["fromAddr"], mail["headerTo"]) == (ALIAS, "olga@example.com")
    assert [each["address"] for each in mail["calendar"]["attendees"]] == [ALIAS]
    events = (await server.api.get("/v1/events?limit=100")).json()["data"]
    told = [each["calendar_event"] for each in events if each["event"] == "calendar.answered"]
    assert [each["attendee"] for each in told] == [ALIAS]


async def test_an_own_alias_is_not_invited_and_an_alias_of_another_inbox_has_its_time(server: Server) -> None:
    bob = await with_alias(server, "bob")
    ann = await with_alias(server, "ann", "sales@postroom.localhost")
    attendees = [{"address": "sales@postroom.localhost"}, {"address": ALIAS}]
    made = await create(server, "a", inboxId=ann, attendees=attendees)
    await until(lambda: busy_of(server, bob))
    (invited,) = await until(lambda: agenda(server, bob, *DAY))
    declined = await server.api.post(
        f"/v1/calendar-events/{invited['id']}/respond",
        json={"response": "declined"},
        headers={"Idempotency-Key": "b"},
    )
    assert declined.status_code == 200, declined.text

    async def is_ordered() -> bool:
        shown = (await server.api.get(f"/v1/calendar-events/{made['id']}")).json()
        return "declined" in [each["participationStatus"] for each in shown["attendees"]]

    await until(is_ordered)
    assert await busy_of(server, bob) == [], "an answer under the alias frees the time of its inbox"
    path = f"/v1/calendar-events/{made['id']}"
    changed = await server.api.patch(
        path, json={"attendees": attendees[1:]}, headers={"Idempotency-Key": "c"}
    )
    assert changed.status_code == 200, changed.text
    assert {each["headerTo"] for each in await sent_of(server, ann)} == {ALIAS}


async def busy_of(server: Server, inbox_id: str) -> list[dict[str, Any]]:
    asked = {"inboxIds": inbox_id, "from": DAY[0], "until": DAY[1]}
    found = (await server.api.get("/v1/free-busy", params=asked)).json()
    busy: list[dict[str, Any]] = found["inboxes"][inbox_id]
    return busy


@pytest.mark.sqlite_alone
async def test_calendar_files_and_clients_know_the_aliases(server: Server) -> None:
    bob = await with_alias(server, "bob")
    (calendar,) = (await server.api.get("/v1/calendars", params={"inboxId": bob})).json()["data"]
    olga = f"ORGANIZER:mailto:olga@example.com\nATTENDEE;PARTSTAT=TENTATIVE:mailto:{ALIAS}\n"
    own = f"ORGANIZER:mailto:{ALIAS}\nATTENDEE:mailto:olga@example.com\n"
    for uid, more in (("theirs", olga), ("own", own)):
        path = f"/v1/calendars/{calendar['id']}/import"
        assert (await server.api.post(path, json={"content": event(uid, more=more)})).json()["created"] == 1
    found = {each["uid"]: each for each in await agenda(server, bob, *DAY)}
    assert {uid: each["ownResponse"] for uid, each in found.items()} == {"theirs": "tentative", "own": None}
    path = f"/v1/calendar-events/{found['own']['id']}"
    for key, change in enumerate(({"summary": "Later"}, {"attendees": [{"address": "otto@example.com"}]})):
        changed = await server.api.patch(path, json=change, headers={"Idempotency-Key": str(key)})
        assert changed.json()["organizer"] == ALIAS, "attendees believe no other"
    written = await sent_of(server, bob)
    assert len(written) == 3  # an update, an invitation and a cancellation
    assert {(each["fromAddr"], each["calendar"]["organizer"]) for each in written} == {(ALIAS, ALIAS)}
    async with signed_in(server, ALIAS, server.token) as dav:
        shown = await dav.ask(
            "PROPFIND",
            dav.home,
            '<D:propfind xmlns:D="DAV:" xmlns:S="http://calendarserver.org/ns/"><D:prop>'
            "<S:email-address-set/></D:prop></D:propfind>",
            Depth="0",
        )
        assert shown.text.count("email-address>") == 4
        assert ALIAS in shown.text
