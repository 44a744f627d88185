"""When somebody is busy: of a calendar (RFC 4791, section 7.10), or of people (RFC 6638, section 5)."""

from collections.abc import Sequence
from datetime import UTC, datetime

from postroom import limits
from postroom.caldav.filters import TimeRange, read_moment
from postroom.caldav.xml_writing import c, d, document, element, text
from postroom.clock import DAY
from postroom.errors import BadRequest
from postroom.mailbox import inboxes
from postroom.mailbox.calendars import free_time
from postroom.mailbox.calendars.free_time import BusyTime
from postroom.operations.calendars.dav_requests import DavRequest
from postroom.resources import Tx
from postroom_mail.mime.address import mailbox_of
from postroom_mail.reading.content_lines import content_lines
from postroom_mail.reading.recurrence import StepBudget
from postroom_mail.writing import calendar_lines
from postroom_mail.writing.invitation import PRODUCT

KINDS = {"busy": "BUSY", "tentative": "BUSY-TENTATIVE"}


def write(found: Sequence[BusyTime], time: TimeRange, now: int, *more: str, method: str = "") -> bytes:
    lines = [
        "BEGIN:VCALENDAR",
        f"PRODID:{PRODUCT}",
        "VERSION:2.0",
        *([f"METHOD:{method}"] if method else []),
        "BEGIN:VFREEBUSY",
        f"DTSTAMP:{stamp(now)}",
        f"DTSTART:{stamp(time.since)}",
        f"DTEND:{stamp(time.until)}",
        *more,
        *(f"FREEBUSY;FBTYPE={KINDS[each.status]}:{stamp(each.start)}/{stamp(each.end)}" for each in found),
        "END:VFREEBUSY",
        "END:VCALENDAR",
    ]
    return calendar_lines.to_bytes(lines)


def stamp(moment: int) -> str:
    return calendar_lines.stamp(datetime.fromtimestamp(moment / 1000, UTC))


def ask(tx: Tx, request: DavRequest, now: int) -> bytes:
    """Return the free and busy time of the attendees, each as far as the key sees it."""
    people, time, uid = read_question(request.body)
    steps = StepBudget()
    answered = []
    for written in people:
        asked = mailbox_of(written.removeprefix("mailto:"))
        inbox = inboxes.find_by_address(tx, asked)
        known = inbox is not None and inboxes.is_within(inbox, request.caller.scope)
        recipient = element(c("recipient"), element(d("href"), text(written)))
        if inbox is None or not known:
            status = element(c("request-status"), "3.7;Invalid calendar user")
            answered.append(element(c("response"), recipient + status))
            continue
        taken = free_time.list_taken(tx, inbox.id, time.since, time.until, steps)
        said = (calendar_lines.text("UID", uid), f"ATTENDEE:mailto:{asked}")
        busy = write(free_time.busy_times(taken), time, now, *said, method="REPLY")
        status = element(c("request-status"), "2.0;Success")
        data = element(c("calendar-data"), text(busy.decode()))
        answered.append(element(c("response"), recipient + status + data))
    return document(c("schedule-response"), "".join(answered))


def read_question(body: bytes) -> tuple[list[str], TimeRange, str]:
    lines = list(content_lines(body))
    values = {line.name: line.value.strip() for line in reversed(lines)}
    people = [line.value.strip().lower() for line in lines if line.name == "ATTENDEE"]
    is_question = any(line.name == "BEGIN" and line.value.strip().upper() == "VFREEBUSY" for line in lines)
    if not is_question or not people or not {"DTSTART", "DTEND"} <= values.keys():
        raise BadRequest(
            "Only free and busy time is asked here: a VFREEBUSY with DTSTART, DTEND and ATTENDEE."
        )
    if len(people) > limits.FREE_BUSY_INBOXES:
        raise BadRequest(f"Ask for at most {limits.FREE_BUSY_INBOXES} attendees.")
    time = TimeRange(read_moment(values["DTSTART"]), read_moment(values["DTEND"]))
    if not 0 < time.until - time.since <= limits.FREE_BUSY_DAYS * DAY:
        raise BadRequest(f"DTEND must be after DTSTART, and at most {limits.FREE_BUSY_DAYS} days later.")
    return people, time, values.get("UID", "")[: limits.VISIBLE_CHARACTERS]
