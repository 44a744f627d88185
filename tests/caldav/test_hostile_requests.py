"""Requests of a hostile client: each is refused with a reason, soon, and without reading what it names."""

from typing import Any

import pytest

from postroom import limits
from postroom.caldav import reports, xml_reading
from tests.adversary.loop_watch import watched_loop
from tests.adversary.test_ways_in import LONGEST_TURN_SECONDS
from tests.caldav.client import NAMES, event, signed_in
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
FIND = f"<D:propfind {NAMES}><D:prop>{{}}</D:prop></D:propfind>"
BODIES = {
    "laughs": f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]><D:propfind {NAMES}>&l9;</D:propfind>',
    "file": f'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><D:propfind {NAMES}>&f;</D:propfind>',
    "outside": f'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">{FIND.format("")}',
    "unknown entity": FIND.format("&other;"),
    "deep": FIND.format("<a>" * 100_000),
    "many": FIND.format("<D:a/>" * (xml_reading.MOST_ELEMENTS + 1)),
    "long": FIND.format("x" * (xml_reading.LONGEST_TEXT + 1)),
    "unfinished": FIND[:40],
    "not xml": '{"a": 1}',
    "no prop": f"<D:propfind {NAMES}/>",
    "a control character": FIND.format("\x01"),
}
QUERY = (
    f'<C:calendar-query {NAMES}><D:prop><D:getetag/></D:prop><C:filter><C:comp-filter name="VCALENDAR">'
    '<C:comp-filter name="VEVENT">{}</C:comp-filter></C:comp-filter></C:filter></C:calendar-query>'
)
REPORTS = {
    "nothing": "",
    "no filter": f"<C:calendar-query {NAMES}/>",
    "a time that is none": QUERY.format('<C:time-range start="yesterday"/>'),
    "a time that ends before": QUERY.format(
        '<C:time-range start="20270101T000000Z" end="20260101T000000Z"/>'
    ),
    "too many": f"<C:calendar-multiget {NAMES}>{'<D:href>/x</D:href>' * (reports.MULTIGET + 1)}"
    "</C:calendar-multiget>",
    "a long time": f'<C:free-busy-query {NAMES}><C:time-range start="20200101T000000Z"/></C:free-busy-query>',
    "another": f"<D:version-tree {NAMES}/>",
}
FILES = {
    "too large": event(more="X-A:" + "x" * limits.CALENDAR_OBJECT_BYTES + "\n"),
    "a long summary": event(summary="x" * 1_001),
    "two": event().replace(
        "END:VCALENDAR", "BEGIN:VEVENT\r\nUID:z\r\nDTSTART:20261120\r\nEND:VEVENT\r\nEND:VCALENDAR"
    ),
    "a task": event().replace("VEVENT", "VTODO"),
    "no UID": event().replace("UID:a\r\n", ""),
    "no start": event().replace("DTSTART", "X-START"),
    "a rule that is none": event(more="RRULE:FREQ=SOMETIMES\n"),
    "a crowd": event(more="".join(f"ATTENDEE:mailto:p{n}@example.com\n" for n in range(51))),
    "no address": event(more="ATTENDEE:urn:uuid:1\n"),
    "an old year": event(start="10000101T000000Z", end="10000102T000000Z"),
    "open": event().replace("END:VCALENDAR", ""),
    "nothing": "",
}


async def test_each_is_refused_and_the_loop_is_not_held(server: Server) -> None:
    await server.new_inbox("bob")
    wrong: dict[str, Any] = {}
    async with signed_in(server, "bob@postroom.localhost", server.token) as dav, watched_loop() as watch:
        for name, body in BODIES.items():
            for method in ("PROPFIND", "PROPPATCH", "REPORT", "MKCALENDAR"):
                path = f"{dav.home}made-{name}/" if method == "MKCALENDAR" else dav.calendar
                answer = await dav.ask(method, path, body)
                is_made = method == "MKCALENDAR" and name == "no prop" and answer.status_code == 201
                if answer.status_code not in (400, 403) and not is_made:
                    wrong[f"{method} {name}"] = answer.status_code
        for name, body in REPORTS.items():
            answer = await dav.report(body)
            if answer.status_code not in (400, 403):
                wrong[f"report {name}"] = answer.status_code
        for name, body in FILES.items():
            answer = await dav.put("a.ics", body)
            if answer.status_code != 403 or "responsedescription" not in answer.text:
                wrong[f"file {name}"] = (answer.status_code, answer.text[:200])
        for path in ("../a", "%2e%2e%2fa", "a%00b.ics", "a%0ab.ics", "a%2fb.ics", "%ff%fe.ics", "x" * 300):
            answer = await dav.put(path, event())
            if answer.status_code not in (400, 404, 405):
                wrong[f"path {path}"] = answer.status_code
        for method, depth in (("PROPFIND", "infinity"), ("PROPFIND", "2"), ("LOCK", "0"), ("MOVE", "0")):
            answer = await dav.ask(method, dav.calendar, FIND.format("<D:a/>"), Depth=depth)
            if answer.status_code not in (403, 405):
                wrong[f"{method} {depth}"] = answer.status_code
        assert (await dav.sync())[1] == {}
    assert not wrong, wrong
    assert watch.longest_seconds < LONGEST_TURN_SECONDS
