"""The appointment that an email brings, from its calendar files."""

from postroom_mail.mime.parse import ParsedMail
from postroom_mail.reading.calendar import Calendar, read_calendar

MAX_CALENDAR_BYTES = 256 * 1024
MAX_CALENDARS = 3


def find_appointment(mail: ParsedMail) -> Calendar | None:
    """Return the first appointment of an email: of a calendar part, a file `.ics`, or the whole body.

    None if there is none. Never raises.

    >>> event = b"BEGIN:VCALENDAR\\nBEGIN:VEVENT\\nSUMMARY:Lunch\\nDTSTART:20300301T120000Z\\nEND:VEVENT\\n"
    >>> find_appointment(parse(b"Content-Type: text/calendar\\n\\n" + event)).summary
    'Lunch'
    """
    for content in calendars_of(mail):
        found = read_calendar(content[:MAX_CALENDAR_BYTES])
        if found is not None:
            return found
    return None


def calendars_of(mail: ParsedMail) -> list[bytes]:
    """Return the calendar files of an email, at most `MAX_CALENDARS`."""
    found = [
        file.content
        for file in mail.attachments
        if file.content_type == "text/calendar" or file.filename.lower().endswith(".ics")
    ]
    if mail.body_text[:40].lstrip().upper().startswith("BEGIN:VCALENDAR"):
        found.append(mail.body_text[:MAX_CALENDAR_BYTES].encode())
    return found[:MAX_CALENDARS]
