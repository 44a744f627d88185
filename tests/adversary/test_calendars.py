"""Hostile calendar files, by CalDAV, import and email: refused, or the same event for every reader."""

import os
import smtplib
from asyncio import to_thread
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom_mail.reading.content_lines import content_lines, unescaped
from postroom_mail.reading.series import read_objects
from tests.adversary.hostile_calendars import calendar_file
from tests.adversary.loop_watch import watched_loop
from tests.adversary.test_ways_in import LONGEST_TURN_SECONDS
from tests.caldav.client import Dav, signed_in
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.waiting import until

FILES = int(os.environ.get("POSTROOM_TEST_HOSTILE", "60"))
FIRST = int(os.environ.get("POSTROOM_TEST_HOSTILE_FIRST", "0"))
NUMBERS = range(FIRST, FIRST + FILES)
ADDRESS = "bob@postroom.localhost"
OUTSIDE = "eve@example.com"
HEAD = (
    f"From: {OUTSIDE}\r\nTo: {ADDRESS}\r\nSubject: s\r\nMessage-ID: <{{}}@example.com>\r\n"
    "MIME-Version: 1.0\r\n"
    "Content-Type: text/calendar; charset=utf-8; method=REQUEST\r\n\r\n"
)
pytestmark = pytest.mark.sqlite_alone


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    free = dict.fromkeys(("SENDS_PER_MINUTE", "SENDS_PER_DAY", "COLD_PER_DAY"), "0")
    async with running_server(settings(tmp_path, DATABASE_URL=database_url, **free), clock) as running:
        yield running


async def events_of(server: Server, inbox_id: str) -> list[dict[str, Any]]:
    asked = {"inboxId": inbox_id, "expand": "false", "limit": "100"}
    page = (await server.api.get("/v1/calendar-events", params=asked)).json()
    assert page.get("total", -1) == len(page["data"]) <= 100, page
    found: list[dict[str, Any]] = page["data"]
    return found


def texts_in(content: bytes) -> dict[str, str]:
    """What a simple reader of calendar files sees of the first event, line by line."""
    lines = [line for line in content_lines(content) if line.name != "DTSTAMP"]
    names = [line.name + line.value for line in lines]
    inside = lines[names.index("BEGINVEVENT") + 1 : names.index("ENDVEVENT")]
    alarms = [number for number, line in enumerate(inside) if line.name == "BEGIN"]
    return {line.name: unescaped(line.value) for line in reversed(inside[: (alarms or [len(inside)])[0]])}


async def faults_of(dav: Dav, shown: dict[str, Any], feed: bytes) -> list[str]:
    """Where REST, the file of CalDAV, and the private link differ."""
    file = (await dav.ask("GET", f"{dav.calendar}{name_of(shown)}")).content
    again = (await dav.ask("GET", f"{dav.calendar}{name_of(shown)}")).content
    (series,) = read_objects(file).series
    read = texts_in(file)
    faults = [] if file == again else ["the file changes"]
    for name, field in (("SUMMARY", "summary"), ("DESCRIPTION", "description"), ("UID", "uid")):
        if read.get(name, "") != shown[field]:
            faults.append(f"{field}: REST {shown[field]!r}, CalDAV {read.get(name)!r}")
    if file.splitlines().count(b"BEGIN:VEVENT") != 1 + len(series.overrides):
        faults.append("another number of events")
    if list(series.lines) != shown["recurrence"]:
        faults.append(f"recurrence: {series.lines} {shown['recurrence']}")
    linked = next(each for each in read_objects(feed).series if each.uid == shown["uid"])
    if (linked.part.summary, linked.part.start) != (series.part.summary, series.part.start):
        faults.append("the link has another event")
    return faults


def name_of(shown: dict[str, Any]) -> str:
    number = shown["uid"].rpartition("-")[2]
    return f"{number}.ics" if shown["messageId"] is None and shown["isFile"] else f"{shown['id']}.ics"


async def compare(server: Server, inbox_id: str, are_files: bool) -> int:
    """Returns how many events there are, after all readers were held against each other."""
    (calendar,) = (await server.api.get(f"/v1/calendars?inboxId={inbox_id}")).json()["data"]
    url = (await server.api.post(f"/v1/calendars/{calendar['id']}/feed")).json()["url"]
    feed = (await server.api.get(f"/{url.split('/', 3)[3]}")).content
    shown = await events_of(server, inbox_id)
    faults = {}
    async with signed_in(server, ADDRESS, server.token) as dav:
        _, listed = await dav.sync()
        assert sorted(listed) == sorted(name_of(each | {"isFile": are_files}) for each in shown)
        for each in shown:
            if found := await faults_of(dav, each | {"isFile": are_files}, feed):
                faults[each["uid"]] = found
    assert not faults, faults
    return len(shown)


async def test_what_a_client_stores_is_refused_with_a_reason_or_one_event_for_all_readers(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("bob")
    stored = 0
    async with signed_in(server, ADDRESS, server.token) as dav, watched_loop() as watch:
        for number in NUMBERS:
            raw = calendar_file(number)
            answer = await dav.http.put(f"{dav.calendar}{number}.ics", content=raw)
            assert answer.status_code in (201, 403), (number, answer.text)
            assert answer.status_code == 201 or "responsedescription" in answer.text
            stored += answer.status_code == 201
        week = {"inboxId": inbox_id, "from": "2026-11-16T00:00:00Z", "until": "2026-11-30T00:00:00Z"}
        assert (await server.api.get("/v1/calendar-events", params=week)).status_code == 200
        busy = {"inboxIds": inbox_id, "from": week["from"], "until": week["until"]}
        assert (await server.api.get("/v1/free-busy", params=busy)).status_code == 200
        time = '<C:comp-filter name="VEVENT"><C:time-range start="20261101T000000Z"/></C:comp-filter>'
        assert len(await dav.query(time)) <= stored
    assert await compare(server, inbox_id, are_files=True) == stored >= FILES // 5
    assert watch.longest_seconds < LONGEST_TURN_SECONDS


async def test_what_is_imported_or_comes_by_email_is_the_same_for_all_readers_and_the_email_is_shown(
    server: Server,
) -> None:
    inbox_id = await server.new_inbox("bob")
    (calendar,) = (await server.api.get(f"/v1/calendars?inboxId={inbox_id}")).json()["data"]
    half = FILES // 2
    async with watched_loop() as watch:
        for number in NUMBERS[:half]:
            content = calendar_file(number).decode("utf-8", "replace")
            path = f"/v1/calendars/{calendar['id']}/import"
            answer = await server.api.post(path, json={"content": content})
            assert answer.status_code in (200, 422), (number, answer.text)
        imported = await compare(server, inbox_id, are_files=False)
        mails = [HEAD.format(number).encode() + invitation(number) for number in NUMBERS[half:]]
        taken = await to_thread(hand_over, server, mails)

        async def are_there() -> bool:
            page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=100")).json()
            return page["total"] == taken and all(each["verdict"] for each in page["data"])

        await until(are_there)
    assert await compare(server, inbox_id, are_files=False) > imported > FILES // 10
    assert watch.longest_seconds < LONGEST_TURN_SECONDS


def invitation(number: int) -> bytes:
    return calendar_file(number, "METHOD:REQUEST\n").replace(
        b"BEGIN:VEVENT", f"BEGIN:VEVENT\r\nORGANIZER:mailto:{OUTSIDE}".encode(), 1
    )


def hand_over(server: Server, mails: list[bytes]) -> int:
    """Each is taken: the content of an email is no reason to refuse it."""
    with smtplib.SMTP("127.0.0.1", server.smtp_port, timeout=120) as smtp:
        for raw in mails:
            smtp.sendmail(OUTSIDE, [ADDRESS], raw)
    return len(mails)
