"""An appointment is read from a calendar file, whoever wrote it; any bytes give an answer."""

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.reading.calendar import (
    MAX_ATTENDEES,
    MAX_EVENTS,
    Attendee,
    Calendar,
    Occurrence,
    read_calendar,
    read_events,
)
from postroom_mail.reading.time_zones import windows_zones
from tests.mail.soundness import assert_strings_can_be_stored
from tests.samples import samples

ZONE = """BEGIN:VTIMEZONE
TZID:{name}
BEGIN:STANDARD
DTSTART:16011028T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010325T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
END:VTIMEZONE
"""
INVITATION = """UID:7@postroom.example
SUMMARY:Plan\\, part 2\\; and
  more
DTSTART;TZID=Europe/Berlin:20261120T100000
DTEND;TZID=Europe/Berlin:20261120T113000
LOCATION:Room 7\\nsecond floor
ORGANIZER;CN="Ann, Example":mailto:ann@postroom.example
ATTENDEE;CN=Bob;RSVP=TRUE;PARTSTAT=NEEDS-ACTION:mailto:bob@postroom.example
ATTENDEE:MAILTO:cleo@postroom.example
RRULE:FREQ=WEEKLY;COUNT=4
DESCRIPTION:Bring\\nthe plan
BEGIN:VALARM
SUMMARY:not this
DTSTART:20000101T000000Z
END:VALARM
"""


def calendar(event: str, method: str = "REQUEST", zone: str = "", kind: str = "VEVENT") -> bytes:
    lines = f"BEGIN:VCALENDAR\nMETHOD:{method}\n{zone}BEGIN:{kind}\n{event}\nEND:{kind}\nEND:VCALENDAR\n"
    return lines.replace("\n", "\r\n").encode()


def read(event: str, method: str = "REQUEST", zone: str = "", kind: str = "VEVENT") -> Calendar:
    found = read_calendar(calendar(event, method, zone, kind))
    assert found is not None
    return found


def at(written: str) -> int:
    return int(datetime.fromisoformat(written).timestamp() * 1000)


def test_an_invitation_tells_what_when_where_and_who() -> None:
    assert read(INVITATION) == Calendar(
        method="REQUEST",
        uid="7@postroom.example",
        summary="Plan, part 2; and more",
        start="2026-11-20T10:00:00",
        end="2026-11-20T11:30:00",
        start_at=at("2026-11-20T09:00Z"),
        end_at=at("2026-11-20T10:30Z"),
        all_day=False,
        time_zone="Europe/Berlin",
        location="Room 7 second floor",
        organizer="Ann, Example <ann@postroom.example>",
        attendees=(
            Attendee("bob@postroom.example", "Bob", "needs-action"),
            Attendee("cleo@postroom.example"),
        ),
        attendee_count=2,
        answer_expected=True,
        recurrence="FREQ=WEEKLY;COUNT=4",
        status="",
        description="Bring\nthe plan",
    )


@samples(
    ("method", "more", "is_expected"),
    [
        ("REQUEST", "ATTENDEE;RSVP=TRUE:mailto:a@x.example", True),
        ("request", "ATTENDEE;RSVP=true:mailto:a@x.example", True),
        ("REQUEST", "ATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:a@x.example", True),
        ("REQUEST", "ATTENDEE;RSVP=FALSE;PARTSTAT=NEEDS-ACTION:mailto:a@x.example", False),
        ("REQUEST", "ATTENDEE;PARTSTAT=ACCEPTED:mailto:a@x.example", False),
        ("REQUEST", "STATUS:CANCELLED\nATTENDEE;RSVP=TRUE:mailto:a@x.example", False),
        ("CANCEL", "ATTENDEE;RSVP=TRUE:mailto:a@x.example", False),
        ("REPLY", "ATTENDEE;RSVP=TRUE:mailto:a@x.example", False),
        ("PUBLISH", "ATTENDEE;RSVP=TRUE:mailto:a@x.example", False),
        ("REQUEST", "SUMMARY:alone", False),
    ],
)
def test_an_answer_is_expected_of_an_open_request_that_asks_for_one(
    method: str, more: str, is_expected: bool
) -> None:
    assert read(more, method).answer_expected is is_expected


@samples(
    ("times", "start", "end", "start_at", "end_at"),
    [
        ("DTSTART:20261120T100000Z", "2026-11-20T10:00:00", "2026-11-20T10:00:00", "10:00", "10:00"),
        (
            "DTSTART:20261120T100000Z\nDURATION:PT1H30M",
            "2026-11-20T10:00:00",
            "2026-11-20T11:30:00",
            "10:00",
            "11:30",
        ),
        ("DTSTART:20261120T100000", "2026-11-20T10:00:00", "2026-11-20T10:00:00", None, None),
        ("DTSTART;TZID=Nowhere:20261120T1000", "2026-11-20T10:00:00", "2026-11-20T10:00:00", None, None),
        ("DTSTART;VALUE=DATE:20261120", "2026-11-20", "2026-11-21", None, None),
        ("DTSTART;VALUE=DATE:20261120\nDURATION:P1W", "2026-11-20", "2026-11-27", None, None),
        ("DTSTART:20261320T100000Z", "", "", None, None),
        ("DTSTART:20261120T100060Z", "2026-11-20T10:00:59", "2026-11-20T10:00:59", "10:00:59", "10:00:59"),
        ("DTSTART:99991231T235959Z\nDURATION:P999999D", "9999-12-31T23:59:59", "", None, None),
    ],
)
def test_times_are_read_as_they_are_written(
    times: str, start: str, end: str, start_at: str | None, end_at: str | None
) -> None:
    found = read(times)
    assert (found.start, found.end, found.all_day) == (start, end, len(start) == 10)
    if not start.startswith("9999"):
        assert found.start_at == (start_at and at(f"2026-11-20T{start_at}Z"))
        assert found.end_at == (end_at and at(f"2026-11-20T{end_at}Z"))


@samples(
    ("name", "zone", "summer", "winter"),
    [
        ("America/New_York", "", "14:00", "15:00"),
        ("/mozilla.org/20050126_1/America/New_York", "", "14:00", "15:00"),
        ("Pacific Standard Time", "", "17:00", "18:00"),
        ("(UTC-05:00) Eastern Time (US & Canada)", "", "14:00", "15:00"),
        ("(GMT+01.00) Amsterdam / Berlin / Rome", "", "08:00", "09:00"),
        ("(UTC+01:00) Brussels, Copenhagen, Madrid, Paris", "", "08:00", "09:00"),
        ("EST5EDT", "", "14:00", "15:00"),
        ("Eastern", "", "14:00", "15:00"),
        ("W. Europe", "", "08:00", "09:00"),
        ("Western/Central Europe", "", "08:00", "09:00"),
        ("Eastern", ZONE, "08:00", "09:00"),
        ("US/Eastern", "", "14:00", "15:00"),
        ("CET", "", "08:00", "09:00"),
        ("tzone://Microsoft/Utc", "", "10:00", "10:00"),
        ("Central Standard Time (Mexico)", "", "16:00", "16:00"),
        ("CET", ZONE, "08:00", "09:00"),
        ("Our own zone", ZONE, "08:00", "09:00"),
        ("(UTC+01:00) Amsterdam, Berlin, Rome", ZONE, "08:00", "09:00"),
    ],
)
def test_local_times_become_utc_by_name_or_by_the_rules_that_came_along(
    name: str, zone: str, summer: str, winter: str
) -> None:
    for day, utc in (("20260720", summer), ("20261120", winter)):
        found = read(f'DTSTART;TZID="{name}":{day}T100000', zone=zone.format(name=name))
        assert found.start_at == at(f"{day[:4]}-{day[4:6]}-{day[6:]}T{utc}Z")
        assert found.time_zone == name


@samples("written", ['"Here\\, there"', "Here\\, there", '"Here, there"'])
def test_an_escaped_comma_in_the_name_of_a_zone_is_a_comma(written: str) -> None:
    found = read(f"DTSTART;TZID={written}:20260720T100000", zone=ZONE.format(name="Here\\, there"))
    assert (found.start_at, found.time_zone) == (at("2026-07-20T08:00Z"), "Here, there")


@samples(
    "times",
    [
        "DTSTART;TZID=Europe/Berlin;VALUE=DATE:20261120",
        "DTSTART;VALUE=DATE;TZID=Europe/Berlin:20261120T000000\nDTEND;VALUE=DATE;TZID=X:20261121T000000",
        "DTSTART;TZID=Europe/Berlin:20261120T000000\nDTEND;TZID=Europe/Berlin:20261121T000000\n"
        "X-MICROSOFT-CDO-ALLDAYEVENT:TRUE",
    ],
)
def test_a_whole_day_has_no_zone_and_no_time(times: str) -> None:
    found = read(times)
    assert (found.start, found.end, found.all_day) == ("2026-11-20", "2026-11-21", True)
    assert (found.start_at, found.time_zone) == (None, "")


def test_an_event_marked_as_a_day_that_begins_at_ten_keeps_its_time() -> None:
    found = read("DTSTART;TZID=Europe/Berlin:20261120T100000\nX-MICROSOFT-CDO-ALLDAYEVENT:TRUE")
    assert (found.all_day, found.time_zone) == (False, "Europe/Berlin")


def test_a_blank_behind_mailto_is_no_part_of_the_address() -> None:
    found = read("DTSTART:20261120T100000Z\nORGANIZER;CN=Ann:mailto: ann@postroom.example")
    assert found.organizer == "Ann <ann@postroom.example>"


def test_rules_change_on_the_very_day_they_name() -> None:
    zone = ZONE.format(name="Z")
    for moment, utc in (
        ("20260329T015900", "2026-03-29T00:59Z"),
        ("20260329T030000", "2026-03-29T01:00Z"),
        ("20261025T023000", "2026-10-25T00:30Z"),
        ("20261025T030000", "2026-10-25T02:00Z"),
    ):
        assert read(f"DTSTART;TZID=Z:{moment}", zone=zone).start_at == at(utc)


@samples(
    "rule",
    [
        "RRULE:FREQ=YEARLY;BYMONTH=99;BYDAY=9XX",
        "RRULE:FREQ=SECONDLY",
        "RRULE:;;==;FREQ=YEARLY;UNTIL=0001",
        "RDATE:x,20260101T000000,,",
        "TZOFFSETTO:+9999",
        "TZOFFSETTO:nonsense",
        "DTSTART:00010101T000000",
    ],
)
def test_nonsense_in_the_rules_of_a_zone_gives_an_answer(rule: str) -> None:
    observance = f"BEGIN:STANDARD\nDTSTART:20200229T000000\n{rule}\nEND:STANDARD\n"
    zone = f"BEGIN:VTIMEZONE\nTZID:Z\n{observance}END:VTIMEZONE\n"
    for moment in ("20260720T100000", "00010101T000000", "99991231T235959"):
        assert read(f"DTSTART;TZID=Z:{moment}", zone=zone).time_zone == "Z"


def test_of_a_series_with_exceptions_the_series_is_told() -> None:
    raw = (
        b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nRECURRENCE-ID:20260101\nSUMMARY:exception\nEND:VEVENT\n"
        b"BEGIN:VEVENT\nSUMMARY:series\nEND:VEVENT\nEND:VCALENDAR"
    )
    found = read_calendar(raw)
    assert found is not None
    assert found.summary == "series"
    assert [event.summary for event in read_events(raw)] == ["exception", "series"]


def test_a_task_is_read_with_its_due_time() -> None:
    assert read("SUMMARY:Pay\nDUE:20261120T100000Z", kind="VTODO").end_at == at("2026-11-20T10:00Z")


@samples("raw", [b"", b"words", b"BEGIN:VCALENDAR", b"BEGIN:VCALENDAR\nEND:VCALENDAR", b"\xff\xfe\0"])
def test_a_file_without_an_appointment_has_none(raw: bytes) -> None:
    assert read_calendar(raw) is None


def test_folded_letters_and_old_charsets_are_read() -> None:
    letter = "ü".encode()
    raw = calendar("SUMMARY:Gr@").replace(b"@", letter[:1] + b"\r\n " + letter[1:])
    assert (found := read_calendar(raw)) is not None
    assert found.summary == "Grü"
    assert (found := read_calendar(calendar("SUMMARY:Gr@").replace(b"@", b"\xfc"))) is not None
    assert found.summary == "Grü"


def test_very_many_of_anything_stop_at_the_bound() -> None:
    found = read("ATTENDEE;RSVP=TRUE:mailto:a@x.example\n" * 5_000)
    assert found.attendee_count == MAX_ATTENDEES
    events = b"BEGIN:VCALENDAR\n" + b"BEGIN:VEVENT\nEND:VEVENT\n" * 5_000
    assert len(list(read_events(events))) == MAX_EVENTS


@samples(
    "unit",
    [
        b"BEGIN:VEVENT\n",
        b"BEGIN:VTIMEZONE\nTZID:Z\nBEGIN:STANDARD\n",
        b"\n ",
        b"ATTENDEE" + b';A="',
        b"SUMMARY;X=y",
        b"SUMMARY:\\\\\\",
        b"RDATE:20200101T000000,",
        b"-",
        b";=",
        b'"',
    ],
)
def test_long_hostile_calendars_are_read_in_one_pass(unit: bytes) -> None:
    raw = b"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + unit * (500_000 // len(unit)) + b"\nEND:VEVENT"
    found = read_calendar(raw)
    assert found is None or found.method == ""


PIECES = st.sampled_from(
    [
        *("BEGIN:VEVENT", "END:VEVENT", "BEGIN:VTIMEZONE", "END:VTIMEZONE", "BEGIN:STANDARD", "END:STANDARD"),
        *(
            "TZID:Z",
            "DTSTART;TZID=Z:20260101T000000",
            "DTSTART:20261120",
            "DTEND:19991120T1",
            "DURATION:-P9D",
        ),
        *("RRULE:FREQ=YEARLY;BYDAY=-5SU;BYMONTH=2", "TZOFFSETTO:-2359", "RDATE:20260101", "METHOD:REQUEST"),
        *(
            "ATTENDEE;RSVP=TRUE;CN=\ud800:x",
            "ORGANIZER:\0",
            "SUMMARY:\\",
            " folded",
            "",
            "\r",
            ";",
            ":",
            "DUE:",
        ),
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=30)), max_size=30))
def test_any_lines_give_an_answer(lines: list[str]) -> None:
    found = read_calendar("\r\n".join(["BEGIN:VCALENDAR", *lines]).encode("utf-8", "surrogatepass"))
    if found is not None:
        for name in found.__struct_fields__:
            assert_strings_can_be_stored(getattr(found, name))


@given(st.binary(max_size=300))
def test_any_bytes_give_an_answer(raw: bytes) -> None:
    assert list(read_events(b"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + raw + b"\nEND:VEVENT"))[:1] is not None


def test_an_accepted_and_a_declined_answer_differ() -> None:
    for written, status in (("ACCEPTED", "accepted"), ("DECLINED", "declined"), ("Tentative", "tentative")):
        line = f"ATTENDEE;ROLE=OPT-PARTICIPANT;PARTSTAT={written};CN=Bob:mailto:bob@x.example"
        (attendee,) = read(line, "REPLY").attendees
        assert attendee == Attendee("bob@x.example", "Bob", status, "opt-participant")


def test_a_cancelled_occurrence_is_not_the_whole_series() -> None:
    event = "UID:7\nSTATUS:CANCELLED\nSEQUENCE:3\nDTSTART:20261127T100000Z\nRECURRENCE-ID:20261127T100000Z"
    one = read(event, "CANCEL")
    assert (one.status, one.recurrence_id, one.sequence) == ("CANCELLED", "2026-11-27T10:00:00", 3)
    series = read("UID:7\nSTATUS:CANCELLED\nDTSTART:20261120T100000Z\nRRULE:FREQ=WEEKLY", "CANCEL")
    assert (series.recurrence_id, series.sequence) == ("", 0)


def test_a_series_with_exceptions_in_one_file_tells_both() -> None:
    series = "UID:7\nDTSTART:20261120T100000Z\nRRULE:FREQ=WEEKLY\nEXDATE:20261127T100000Z,20261204T100000Z"
    moved = "UID:7\nRECURRENCE-ID:20261211T100000Z\nDTSTART:20261211T140000Z\nDURATION:PT1H"
    gone = "UID:7\nRECURRENCE-ID:20261218T100000Z\nDTSTART:20261218T100000Z\nSTATUS:CANCELLED"
    foreign = "UID:8\nRECURRENCE-ID:20261218T100000Z\nDTSTART:20261218T100000Z"
    events = "\nEND:VEVENT\nBEGIN:VEVENT\n".join((moved, series, gone, foreign))
    found = read(events + "\nEXDATE;VALUE=DATE:20270101")
    assert found.recurrence == "FREQ=WEEKLY"
    assert found.ex_dates == ("2026-11-27T10:00:00", "2026-12-04T10:00:00")
    assert found.occurrences == (
        Occurrence("2026-12-11T10:00:00", "2026-12-11T14:00:00", "2026-12-11T15:00:00", ""),
        Occurrence("2026-12-18T10:00:00", "2026-12-18T10:00:00", "2026-12-18T10:00:00", "CANCELLED"),
    )


@samples(
    ("lines", "url"),
    [
        ("X-GOOGLE-CONFERENCE:https://meet.google.com/abc-defg-hij", "https://meet.google.com/abc-defg-hij"),
        ("CONFERENCE;VALUE=URI:https://video.there.example/r/7", "https://video.there.example/r/7"),
        ("LOCATION:https://there.zoom.us/j/123?pwd=x", "https://there.zoom.us/j/123?pwd=x"),
        (
            "DESCRIPTION:Join: https://teams.microsoft.com/l/meetup-join/19%3a/0 now",
            "https://teams.microsoft.com/l/meetup-join/19%3a/0",
        ),
        ("DESCRIPTION:See https://there.example/notes", ""),
        ("X-GOOGLE-CONFERENCE:javascript:alert(1)", ""),
        ("LOCATION:Room 7", ""),
    ],
)
def test_the_link_of_a_meeting_by_video_is_told(lines: str, url: str) -> None:
    assert read(lines).join_url == url


def test_the_words_of_zones_are_zones() -> None:
    for name, zone in windows_zones().items():
        assert ZoneInfo(zone), name
