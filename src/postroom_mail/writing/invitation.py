"""An appointment that is proposed, changed or cancelled by mail (RFC 5546, sections 3.2.2 and 3.2.5)."""

import re
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from postroom_mail.mime.address import Address
from postroom_mail.writing import calendar_lines, zone_rules

PRODUCT = "-//Postroom//Postroom//EN"
REQUEST, CANCEL, REPLY = "REQUEST", "CANCEL", "REPLY"
MAX_DESCRIPTION_CHARS = 5_000
FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
MAX_RULE_PARTS = 10
_RULE_PART = re.compile(r"([A-Z]{2,12})=([A-Z0-9,+-]{1,200})", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII)


class CalendarFile(Struct, frozen=True):
    """The calendar part of an email: `method` says what its reader should do with it."""

    method: str
    content: bytes


class Invitation(Struct, frozen=True):
    """`start` and `end` are days, local times of `zone`, or without one times in UTC.

    Without attendees these are the recipients; without `uid` it is a new appointment.
    """

    method: str
    summary: str
    start: date
    end: date
    zone: str = ""
    location: str = ""
    attendees: tuple[Address, ...] = ()
    uid: str = ""
    sequence: int = 0
    recurrence: str = ""

    @property
    def words(self) -> str:
        """Its text that people read besides the mail."""
        return f"{self.summary}\n{self.location}"


class CalendarSender(Struct, frozen=True):
    """Who sends an appointment, in which mail and when."""

    address: Address
    message_id: str
    sent_at: datetime


def write(
    invitation: Invitation, sender: CalendarSender, recipients: tuple[Address, ...], said: str
) -> CalendarFile:
    zone = list(zone_rules.zone_lines(invitation.zone, invitation.start.year)) if invitation.zone else []
    is_off = invitation.method == CANCEL
    rsvp = () if is_off else (";PARTSTAT=NEEDS-ACTION", ";RSVP=TRUE")
    attendees = [
        calendar_lines.person("ATTENDEE", each, ";CUTYPE=INDIVIDUAL", ";ROLE=REQ-PARTICIPANT", *rsvp)
        for each in invitation.attendees or recipients
    ]
    event = [
        "BEGIN:VEVENT",  # it must have UID and DTSTAMP (RFC 5545 section 3.6.1)
        calendar_lines.text("UID", invitation.uid or sender.message_id.strip("<>")),
        f"SEQUENCE:{invitation.sequence}",  # grows with each change (RFC 5545 section 3.8.7.4)
        f"DTSTAMP:{calendar_lines.stamp(sender.sent_at)}",
        calendar_lines.moment("DTSTART", invitation.start, invitation.zone),
        calendar_lines.moment("DTEND", invitation.end, invitation.zone),
        f"RRULE:{invitation.recurrence}" if invitation.recurrence else "",
        calendar_lines.text("SUMMARY", invitation.summary),
        calendar_lines.text("DESCRIPTION", said[:MAX_DESCRIPTION_CHARS].strip()),
        calendar_lines.text("LOCATION", invitation.location) if invitation.location else "",
        calendar_lines.person("ORGANIZER", sender.address),
        *attendees,
        f"STATUS:{'CANCELLED' if is_off else 'CONFIRMED'}",
        "TRANSP:OPAQUE",
        "END:VEVENT",
    ]
    return in_calendar(invitation.method, [*zone, *filter(None, event)])


def in_calendar(method: str, lines: list[str]) -> CalendarFile:
    """Return the file, with PRODID and VERSION (RFC 5545 section 3.6), and METHOD for mail (RFC 5546)."""
    head = ["BEGIN:VCALENDAR", f"PRODID:{PRODUCT}", "VERSION:2.0", "CALSCALE:GREGORIAN", f"METHOD:{method}"]
    return CalendarFile(method, calendar_lines.to_bytes([*head, *lines, "END:VCALENDAR"]))


def read_moment(written: str, zone: str) -> date:
    """Return a day, a local time of the zone, or a time in UTC. ValueError says what is wrong with it."""
    if _DAY.fullmatch(written):
        return date.fromisoformat(written)
    if not _MOMENT.fullmatch(written):
        raise ValueError("must be a day or a time such as 2026-11-20T15:00:00")
    moment = datetime.fromisoformat(written.upper()).replace(microsecond=0)
    if moment.tzinfo is None and not zone:
        raise ValueError("needs a time zone: give timeZone, such as Europe/Berlin")
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) if zone else moment.astimezone(UTC)


def is_zone(name: str) -> bool:
    try:
        return bool(ZoneInfo(name).key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


def is_rule(written: str) -> bool:
    """Return whether it has the form of `FREQ=WEEKLY;COUNT=10`; only the form is checked."""
    parts = [_RULE_PART.fullmatch(part) for part in written.split(";", MAX_RULE_PARTS)]
    pairs = {part[1]: part[2] for part in parts if part is not None}
    return len(pairs) == len(parts) <= MAX_RULE_PARTS and pairs.get("FREQ") in FREQUENCIES
