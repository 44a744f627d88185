"""Calendar files as programs write them, and what an agent has to know of each before it acts."""

from dataclasses import dataclass, field

from postroom_mail.reading.calendar import Calendar, read_calendar


@dataclass(frozen=True)
class CalendarSample:
    what: str
    method: str
    event: str
    wanted: dict[str, object]
    head: str = field(default="")

    def raw(self) -> bytes:
        lines = (
            f"BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:{self.method}\n{self.head}{self.event}\nEND:VCALENDAR\n"
        )
        return lines.replace("\n", "\r\n").encode()

    def wrong(self) -> dict[str, object]:
        """What is told otherwise than it is written."""
        found = read_calendar(self.raw())
        return {name: told(found, name) for name, value in self.wanted.items() if told(found, name) != value}


def told(found: Calendar | None, name: str) -> object:
    """A field, or of all who are invited what they answered."""
    if name == "answers":
        return {each.address: each.participation_status for each in found.attendees} if found else None
    if name == "moved":
        return (
            [(each.recurrence_id, each.start, each.status) for each in found.occurrences] if found else None
        )
    return getattr(found, name, None)


def event(*lines: str) -> str:
    return "\n".join(("BEGIN:VEVENT", "UID:7@there.example", *lines, "END:VEVENT"))


def answer(status: str) -> str:
    return event(
        "DTSTART:20261120T090000Z",
        f"ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT={status};CN=Bob:mailto:bob@there.example",
        "ORGANIZER:mailto:ann@there.example",
    )


NINE_UTC = 1_795_165_200_000  # 20 November 2026, 09:00 UTC
WEEKLY = ("DTSTART:20261120T090000Z", "DTEND:20261120T100000Z", "RRULE:FREQ=WEEKLY")
SAMPLES = [
    CalendarSample("accepted", "REPLY", answer("ACCEPTED"), {"answers": {"bob@there.example": "accepted"}}),
    CalendarSample("declined", "REPLY", answer("DECLINED"), {"answers": {"bob@there.example": "declined"}}),
    CalendarSample(
        "tentative", "REPLY", answer("TENTATIVE"), {"answers": {"bob@there.example": "tentative"}}
    ),
    CalendarSample(
        "a series cancelled",
        "CANCEL",
        event(*WEEKLY, "STATUS:CANCELLED", "SEQUENCE:2"),
        {"method": "CANCEL", "status": "CANCELLED", "recurrence_id": "", "sequence": 2},
    ),
    CalendarSample(
        "one occurrence cancelled",
        "CANCEL",
        event("RECURRENCE-ID:20261127T090000Z", "DTSTART:20261127T090000Z", "STATUS:CANCELLED"),
        {"status": "CANCELLED", "recurrence_id": "2026-11-27T09:00:00"},
    ),
    CalendarSample(
        "a series with one moved, in one file",
        "REQUEST",
        event(*WEEKLY)
        + "\n"
        + event("RECURRENCE-ID:20261127T090000Z", "DTSTART:20261127T130000Z", "DTEND:20261127T140000Z"),
        {
            "recurrence": "FREQ=WEEKLY",
            "recurrence_id": "",
            "moved": [("2026-11-27T09:00:00", "2026-11-27T13:00:00", "")],
        },
    ),
    CalendarSample(
        "the exception before its series",
        "REQUEST",
        event("RECURRENCE-ID:20261127T090000Z", "DTSTART:20261127T130000Z") + "\n" + event(*WEEKLY),
        {"recurrence": "FREQ=WEEKLY", "recurrence_id": "", "start": "2026-11-20T09:00:00"},
    ),
    CalendarSample(
        "occurrences left out",
        "REQUEST",
        event(*WEEKLY, "EXDATE:20261204T090000Z"),
        {"ex_dates": ("2026-12-04T09:00:00",)},
    ),
    CalendarSample(
        "a zone by its Windows name",
        "REQUEST",
        event('DTSTART;TZID="W. Europe Standard Time":20261120T100000'),
        {"start_at": NINE_UTC, "start": "2026-11-20T10:00:00"},
    ),
    CalendarSample(
        "a zone by its long name",
        "REQUEST",
        event('DTSTART;TZID="(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna":20261120T100000'),
        {"start_at": NINE_UTC},
    ),
    CalendarSample(
        "a zone by an old name",
        "REQUEST",
        event("DTSTART;TZID=US/Eastern:20261120T040000"),
        {"start_at": NINE_UTC},
    ),
    CalendarSample(
        "a zone with a path before its name",
        "REQUEST",
        event("DTSTART;TZID=/mozilla.org/20050126_1/Europe/Berlin:20261120T100000"),
        {"start_at": NINE_UTC},
    ),
    CalendarSample(
        "the zone of the whole calendar",
        "REQUEST",
        event("DTSTART;TZID=Europe/Berlin:20261120T100000"),
        {"start_at": NINE_UTC, "time_zone": "Europe/Berlin"},
        head="X-WR-TIMEZONE:America/New_York\n",
    ),
    CalendarSample(
        "a whole day",
        "PUBLISH",
        event("DTSTART;VALUE=DATE:20261120"),
        {"all_day": True, "start": "2026-11-20"},
    ),
    CalendarSample(
        "a length instead of an end",
        "REQUEST",
        event("DTSTART:20261120T090000Z", "DURATION:PT1H30M"),
        {"start_at": NINE_UTC, "end_at": NINE_UTC + 5_400_000},
    ),
    CalendarSample(
        "an answer asked for",
        "REQUEST",
        event(
            "DTSTART:20261120T090000Z",
            "ATTENDEE;ROLE=OPT-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:bob@there.example",
        ),
        {"answer_expected": True, "answers": {"bob@there.example": "needs-action"}},
    ),
    CalendarSample(
        "a meeting by video",
        "REQUEST",
        event("DTSTART:20261120T090000Z", "X-GOOGLE-CONFERENCE:https://meet.google.com/abc-defg-hij"),
        {"join_url": "https://meet.google.com/abc-defg-hij"},
    ),
]
