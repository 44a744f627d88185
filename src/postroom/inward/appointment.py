"""The appointment that an email brings, from its calendar file."""

from postroom.clock import to_iso
from postroom.mailbox.documents import Appointment
from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reading.appointment import find_appointment
from postroom_mail.reading.calendar import Calendar


def read_appointment(mail: ParsedMail) -> Appointment | None:
    """Return the first appointment found in its calendars: its own part, a file, or the whole mail."""
    found = find_appointment(mail)
    return None if found is None else _shown(found)


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
