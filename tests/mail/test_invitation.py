"""Calendar files that are written here: lines that no value can break, zones that mean what they say."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.mime.address import Address
from postroom_mail.reading import time_zones
from postroom_mail.reading.calendar import EventFile, read_calendar
from postroom_mail.reading.content_lines import content_lines
from postroom_mail.writing import invitation, invitation_answer, zone_rules
from postroom_mail.writing.invitation import CalendarSender, Invitation, read_moment
from tests.samples import samples

SENDER = CalendarSender(
    Address("Ann", "ann@example.com"), "<m1@example.com>", datetime(2026, 11, 16, 9, tzinfo=UTC)
)
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Asia/Jerusalem",
    "Africa/Casablanca",
    "Asia/Tokyo",
    "Europe/Dublin",
)


def written(summary: str = "Review", zone: str = "Europe/Berlin", **fields: str) -> bytes:
    start, end = read_moment("2026-11-20T15:00", zone), read_moment("2026-11-20T16:00", zone)
    wanted = Invitation("REQUEST", summary, start, end, zone, **fields)  # type: ignore[arg-type]
    return invitation.write(wanted, SENDER, (Address("", "bob@example.org"),), "Come").content


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_words_begin_a_line_of_their_own(summary: str, location: str) -> None:
    raw = written(summary, location=location)
    assert max(map(len, raw.split(b"\r\n"))) <= 75
    assert raw.replace(b"\r\n", b"").count(b"\n") == raw.replace(b"\r\n", b"").count(b"\r") == 0
    names = [line.name for line in content_lines(raw)]
    assert names == [line.name for line in content_lines(written("Review", location="x" if location else ""))]


@samples("zone", ZONES)
def test_a_zone_by_its_rules_is_the_zone_by_its_name(zone: str) -> None:
    """A reader that knows no names of zones gets the same times, day by day."""
    lines = "\r\n".join(("BEGIN:VCALENDAR", *zone_rules.zone_lines(zone, 2026), "END:VCALENDAR"))
    rules = {"nameless": EventFile.read(lines.encode()).rules[zone]}
    real = ZoneInfo(zone)
    for day in range(0, 3 * 365, 3):
        local = datetime(2026, 1, 1, 12) + timedelta(days=day)  # noqa: DTZ001 (the zone is what is asked for)
        assert time_zones.utc_offset(local, "nameless", rules) == local.replace(tzinfo=real).utcoffset(), (
            local
        )


@given(st.binary(max_size=2000))
def test_any_bytes_are_an_invitation_or_none(raw: bytes) -> None:
    invitation_answer.find_invitation(b"BEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\n" + raw)


@given(st.text(max_size=200))
def test_an_answer_takes_over_values_and_no_lines(value: str) -> None:
    raw = (
        "BEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\nUID:u\nORGANIZER;CN=%s:mailto:o@example.org\nSUMMARY:%s\n"
        "DTSTART;TZID=%s:20261120T090000\nEND:VEVENT\nEND:VCALENDAR\n"
    ) % ((value.replace("\n", " "),) * 3)
    invited = invitation_answer.find_invitation(raw.encode(errors="replace"))
    if invited is None:
        return
    answer = invitation_answer.CalendarAnswer(
        invited, "ACCEPTED", "bob@example.org", "Yes\nATTENDEE:mailto:x@y"
    )
    made = invitation_answer.write(answer, SENDER).content
    assert [line.name for line in content_lines(made)].count("ATTENDEE") == 1
    assert made.count(b"BEGIN:VEVENT") == made.count(b"END:VEVENT") == 1
    read = read_calendar(made)
    assert read is not None
    assert (read.method, read.uid) == ("REPLY", "u")
