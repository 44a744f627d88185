"""Calendars in a calendar client: found, read, written, synchronised, and bound to what the key may do."""

import base64
from typing import Any

import pytest

from tests.api.test_calendars import agenda, create, kinds_of
from tests.caldav.client import NAMES, A, D, Dav, condition_of, event, found_in, signed_in, statuses_of
from tests.conftest import Server

WEEK = ("2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z")
ADDRESS = "bob@postroom.localhost"
ALARM = "BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER:-PT15M\nDESCRIPTION:Soon\nEND:VALARM\n"


async def test_a_client_finds_reads_changes_and_synchronises_what_rest_has(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    made = await create(server, inboxId=inbox_id, summary="Made by <REST> & co", timeZone="Europe/Berlin")
    async with signed_in(server, ADDRESS, server.token) as dav:
        first, listed = await dav.sync()
        assert listed == {f"{made['id']}.ics": 200}
        read = await dav.ask("GET", f"{dav.calendar}{made['id']}.ics")
        assert "SUMMARY:Made by <REST> & co" in read.text
        assert "DTSTART;TZID=Europe/Berlin:20261120T150000" in read.text
        stored = await dav.put("new one.ics", event(more=f"CATEGORIES:Work\n{ALARM}"), If_None_Match="*")
        assert (stored.status_code, "etag" in stored.headers) == (201, False)
        again = await dav.put("new one.ics", event(), If_None_Match="*")
        assert (again.status_code, condition_of(again)) == (412, "if-none-match")
        other = await dav.put("other.ics", event())
        assert (other.status_code, condition_of(other)) == (403, "no-uid-conflict")
        kept = await dav.ask("GET", f"{dav.calendar}new%20one.ics")
        assert kept.headers["etag"]
        assert [line in kept.text for line in ("CATEGORIES:Work", "TRIGGER:-PT15M")] == [True, True]
        by_rest = {each["summary"]: each for each in await agenda(server, inbox_id, *WEEK)}
        assert by_rest.keys() == {"Made by <REST> & co", "Planning"}
        second, changed = await dav.sync(first)
        assert changed == {"new one.ics": 200}
        patched = await server.api.patch(
            f"/v1/calendar-events/{by_rest['Planning']['id']}", json={"location": "Room 1"}
        )
        assert patched.status_code == 200, patched.text
        stale = await dav.put("new one.ics", event(summary="Mine"), If_Match=kept.headers["etag"])
        assert stale.status_code == 412
        fresh = await dav.ask("GET", f"{dav.calendar}new%20one.ics")
        assert "LOCATION:Room 1" in fresh.text
        assert "TRIGGER:-PT15M" in fresh.text
        moved = await dav.put(
            "new one.ics",
            event(start="20261121T150000Z", end="20261121T160000Z"),
            If_Match=fresh.headers["etag"],
        )
        assert moved.status_code == 204
        gone = await dav.ask("DELETE", f"{dav.calendar}{made['id']}.ics")
        assert gone.status_code == 204
        assert (await dav.ask("GET", f"{dav.calendar}{made['id']}.ics")).status_code == 404
        third, changed = await dav.sync(second)
        assert changed == {"new one.ics": 200, f"{made['id']}.ics": 404}
        assert await dav.sync(third) == (third, {})
        assert (await dav.sync())[1] == {"new one.ics": 200}
        assert len(await paged(dav, first)) == 2
        (rest,) = await agenda(server, inbox_id, *WEEK)
        assert (rest["start"], rest["location"]) == ("2026-11-21T15:00:00+00:00", "")
        assert (await dav.put("again.ics", event(uid=made["uid"]))).status_code == 201
        assert (await dav.sync(third))[1] == {"again.ics": 200, f"{made['id']}.ics": 404}
    created, changed_, cancelled = "calendar.created", "calendar.changed", "calendar.cancelled"
    assert await kinds_of(server) == [created, created, changed_, changed_, cancelled, created]


async def paged(dav: Dav, token: str) -> dict[str, int]:
    """One change a page: what is cut says so, and goes on at the token that it gives."""
    found: dict[str, int] = {}
    while True:
        token, page = await dav.sync(token, limit="1")
        found |= {name: status for name, status in page.items() if name}
        if 507 not in page.values():
            return found


async def test_a_query_finds_by_time_text_and_name_and_bad_tokens_are_named(server: Server) -> None:
    await server.new_inbox("bob")
    async with signed_in(server, ADDRESS, server.token) as dav:
        await dav.put("weekly.ics", event("weekly", "Standup", "RRULE:FREQ=WEEKLY\nCATEGORIES:Team\n"))
        await dav.put(
            "day.ics",
            event("day", "Trip", start="20270104", end="20270105")
            .replace("DTSTART:", "DTSTART;VALUE=DATE:")
            .replace("DTEND:", "DTEND;VALUE=DATE:"),
        )
        in_time = '<C:comp-filter name="VEVENT"><C:time-range start="{}"{}/></C:comp-filter>'
        far = await dav.query(in_time.format("20290101T000000Z", ""))
        assert far.keys() == {"weekly.ics"}
        near = await dav.query(in_time.format("20270104T000000Z", ' end="20270105T000000Z"'))
        assert near.keys() == {"day.ics"}
        said = (
            '<C:comp-filter name="VEVENT"><C:prop-filter name="SUMMARY"><C:text-match>stand</C:text-match>'
            '</C:prop-filter><C:comp-filter name="VALARM"><C:is-not-defined/></C:comp-filter></C:comp-filter>'
        )
        assert (await dav.query(said)).keys() == {"weekly.ics"}
        assert (await dav.query('<C:comp-filter name="VTODO"/>')) == {}
        between = (
            '<C:calendar-data><C:expand start="20270101T000000Z" end="20270115T000000Z"/></C:calendar-data>'
        )
        each = (await dav.query(in_time.format("20270101T000000Z", ""), between))["weekly.ics"]
        assert each.count("BEGIN:VEVENT") == 2
        assert "RRULE" not in each
        assert "RECURRENCE-ID:20270101T150000Z" in each
        body = (
            f"<C:calendar-multiget {NAMES}><D:prop><C:calendar-data/></D:prop><D:href>{dav.calendar}day.ics"
            f"</D:href><D:href>{dav.calendar}none.ics</D:href><D:href>/caldav/inb_x/y/z.ics</D:href>"
            "</C:calendar-multiget>"
        )
        many = await dav.report(body)
        assert statuses_of(many) == {"day.ics": 200, "none.ics": 404, "z.ics": 404}
        busy = await dav.report(
            f'<C:free-busy-query {NAMES}><C:time-range start="20261120T000000Z" end="20261128T000000Z"/>'
            "</C:free-busy-query>"
        )
        assert busy.text.count("FREEBUSY;FBTYPE=BUSY:") == 2
        for token in ("data:,other", "data:,cal_x-1", "nonsense"):
            wrong = await dav.report(
                f"<D:sync-collection {NAMES}><D:sync-token>{token}</D:sync-token>"
                "<D:sync-level>1</D:sync-level><D:prop/></D:sync-collection>"
            )
            assert (wrong.status_code, condition_of(wrong)) == (403, "valid-sync-token")
        asked = (
            event("free")
            .replace("VEVENT", "VFREEBUSY")
            .replace("SUMMARY:Planning", f"ATTENDEE:mailto:{ADDRESS}\r\nATTENDEE:mailto:else@example.com")
        )
        people = await dav.ask("POST", f"{dav.home}outbox/", asked, Content_Type="text/calendar")
        assert people.status_code == 200, people.text
        assert "FBTYPE=BUSY:20261120T150000Z/20261120T160000Z" in people.text
        assert "3.7;Invalid calendar user" in people.text


async def test_a_client_makes_describes_and_deletes_calendars(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    async with signed_in(server, ADDRESS, server.token) as dav:
        body = (
            f"<C:mkcalendar {NAMES}><D:set><D:prop><D:displayname>Team &amp; more</D:displayname>"
            "<A:calendar-color>#ff0000</A:calendar-color></D:prop></D:set></C:mkcalendar>"
        )
        path = f"{dav.home}team/"
        assert (await dav.ask("MKCALENDAR", path, body)).status_code == 201
        assert (await dav.ask("MKCALENDAR", path, body)).status_code == 405
        found = (await dav.properties(path, "D:displayname", "A:calendar-color", "D:sync-token"))[path]
        assert (found[f"{D}displayname"].text, found[f"{A}calendar-color"].text) == ("Team & more", "#ff0000")
        names = [each["name"] for each in (await server.api.get("/v1/calendars")).json()["data"]]
        assert names == ["Calendar", "Team & more"]
        change = (
            f"<D:propertyupdate {NAMES}><D:set><D:prop><D:displayname>Crew</D:displayname></D:prop></D:set>"
            "<D:remove><D:prop><A:calendar-color/></D:prop></D:remove></D:propertyupdate>"
        )
        assert found_in(await dav.ask("PROPPATCH", path, change))[path]
        fixed = change.replace("A:calendar-color", "D:getetag")
        assert found_in(await dav.ask("PROPPATCH", path, fixed)) == {}
        found = (await dav.properties(path, "D:displayname", "A:calendar-color"))[path]
        assert [(name, each.text) for name, each in found.items()] == [(f"{D}displayname", "Crew")]
        assert (await dav.ask("PUT", f"{path}a.ics", event())).status_code == 201
        assert len(await agenda(server, inbox_id, *WEEK)) == 1
        assert (await dav.ask("DELETE", path)).status_code == 204
        assert await agenda(server, inbox_id, *WEEK) == []
        refused = await dav.ask("DELETE", dav.calendar)
        assert (refused.status_code, refused.json()["error"]) == (409, "default_calendar")


@pytest.mark.sqlite_alone
async def test_a_key_may_do_no_more_than_over_rest_and_strangers_learn_nothing(server: Server) -> None:
    inbox_id = await server.new_inbox("bob")
    other_id = await server.new_inbox("other")
    keys: dict[str, Any] = {}
    for name, asked in (("reads", {"permissions": ["read"]}), ("other", {})):
        owner = other_id if name == "other" else inbox_id
        keys[name] = (await server.api.post(f"/v1/inboxes/{owner}/api-keys", json=asked)).json()["token"]
    async with signed_in(server, ADDRESS, server.token) as dav:
        await dav.put("a.ics", event())
        wrong = [(ADDRESS, "pr_wrong"), (ADDRESS, keys["other"]), ("nobody@example.com", server.token)]
        for user, key in wrong:
            basic = base64.b64encode(f"{user}:{key}".encode()).decode()
            refused = await dav.ask("PROPFIND", dav.home, Authorization=f"Basic {basic}")
            assert (refused.status_code, refused.headers["www-authenticate"][:5]) == (401, "Basic")
    async with signed_in(server, ADDRESS, keys["reads"]) as dav:
        assert (await dav.ask("GET", f"{dav.calendar}a.ics")).status_code == 200
        for method, path in (("PUT", "b.ics"), ("DELETE", "a.ics"), ("DELETE", ""), ("PROPPATCH", "")):
            assert (await dav.ask(method, f"{dav.calendar}{path}", event("b"))).status_code == 403, method
        assert (await dav.ask("MKCALENDAR", f"{dav.home}x/")).status_code == 403
        (found,) = (await dav.properties(dav.calendar, "D:current-user-privilege-set")).values()
        privileges = {each.tag for one in found[f"{D}current-user-privilege-set"] for each in one}
        assert f"{D}write" not in privileges
    async with signed_in(server, "other@postroom.localhost", server.token) as dav:
        for path in (f"/caldav/{inbox_id}/", f"/caldav/{inbox_id}/inbox/", "/caldav/x/y/z/w"):
            assert (await dav.ask("PROPFIND", path)).status_code == 404
    assert [each["summary"] for each in await agenda(server, inbox_id, *WEEK)] == ["Planning"]
