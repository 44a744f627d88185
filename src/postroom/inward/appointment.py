"""The appointment that a mail brings, from its calendar file."""

from postroom.clock import to_iso
from postroom.mailbox.documents import Appointment
from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reading.calendar import Calendar, read_calendar

MAX_CALENDAR_BYTES = 256 * 1024
MAX_CALENDARS = 3


def read_appointment(mail: ParsedMail) -> Appointment | None:
    """The first appointment found in its calendars: a part of its own, a file, or the whole mail."""
    for content in calendars_of(mail):
        found = read_calendar(content[:MAX_CALENDAR_BYTES])
        if found is not None:
            return _shown(found)
    return None


def calendars_of(mail: ParsedMail) -> list[bytes]:
    found = [
        file.content
        for file in mail.attachments
        if file.content_type == "text/calendar" or file.filename.lower().endswith(".ics")
    ]
    if mail.body_text[:40].lstrip().upper().startswith("BEGIN:VCALENDAR"):
        found.append(mail.body_text[:MAX_CALENDAR_BYTES].encode())
    return found[:MAX_CALENDARS]


def _shown(calendar: Calendar) -> Appointment:
    return Appointment(
        method=calendar.method,
        uid=calendar.uid,
        summary=calendar.summary,
        start=calendar.start,
        end=calendar.end,
        start_at=_moment(calendar.start_at),
        end_at=_moment(calendar.end_at),
        all_day=calendar.all_day,
        time_zone=calendar.time_zone,
        location=calendar.location,
        organizer=calendar.organizer,
        attendees=list(calendar.attendees),
        attendee_count=calendar.attendee_count,
        answer_expected=calendar.answer_expected,
        recurrence=calendar.recurrence,
        status=calendar.status,
        recurrence_id=calendar.recurrence_id,
        sequence=calendar.sequence,
        ex_dates=list(calendar.ex_dates),
        occurrences=list(calendar.occurrences),
        join_url=calendar.join_url,
    )


def _moment(moment: int | None) -> str | None:
    return None if moment is None else to_iso(moment)
