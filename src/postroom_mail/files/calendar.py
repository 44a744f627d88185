"""Calendar files as readable text: what, when, where, and who."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from postroom_mail.files import plain

if TYPE_CHECKING:
    from postroom_mail.reading.calendar import Calendar

START = b"BEGIN:VCALENDAR"


def is_calendar(content: bytes) -> bool:
    return content[:100].lstrip(b"\xef\xbb\xbf \t\r\n")[: len(START)].upper() == START


def calendar_text(content: bytes) -> Iterator[str]:
    from postroom_mail.reading.calendar import read_events

    is_empty = True
    for event in read_events(content):
        is_empty = False
        yield _event_text(event)
    if is_empty:
        yield plain.decode(content, "")


def _event_text(event: "Calendar") -> str:
    facts = {
        "": event.summary,
        "When": _when(event),
        "Repeats": event.recurrence,
        "Where": event.location,
        "Organizer": event.organizer,
        "Attendees": _attendees(event),
        "Status": _status(event),
        "Answer expected": "yes" if event.answer_expected else "",
    }
    lines = [f"{name}: {value}" if name else value for name, value in facts.items() if value]
    return "\n".join([*lines, event.description]) + "\n\n"


def _when(event: "Calendar") -> str:
    if event.all_day:
        from postroom_mail.reading.calendar import last_day

        last = last_day(event)
        return event.start if last <= event.start else f"{event.start} to {last}"
    start, end = (moment.replace("T", " ").removesuffix(":00") for moment in (event.start, event.end))
    if end[:10] == start[:10]:
        end = end[11:]
    span = f"{start} to {end}" if end and event.end != event.start else start
    return f"{span} ({event.time_zone})" if span and event.time_zone else span


def _attendees(event: "Calendar") -> str:
    more = event.attendee_count - len(event.attendees)
    return ", ".join([*map(str, event.attendees), *([f"and {more} more"] if more else [])])


def _status(event: "Calendar") -> str:
    return "cancelled" if event.method == "CANCEL" else event.status.lower()
