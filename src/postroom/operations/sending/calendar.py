"""The appointment of a send, and the answer to a received one."""

import re
from datetime import date, datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from postroom import limits
from postroom.errors import BadRequest
from postroom.operations.sending.address_fields import ENTRY_LIMIT_CHARACTERS, read_addresses
from postroom_mail.writing.header_words import CONTROL
from postroom_mail.writing.invitation import Invitation, is_rule, is_zone, read_moment

FIELD = "calendar"
_UID = re.compile(rf"[!-~]{{1,{limits.VISIBLE_CHARACTERS}}}")

WrittenMoment = Annotated[str, Meta(min_length=10, max_length=40)]
ShortText = Annotated[str, Meta(max_length=limits.CALENDAR_TEXT_CHARACTERS)]


class InvitationBody(Struct, rename="camel", frozen=True, omit_defaults=True):
    """Sends the email as a calendar invitation: new, changed (`uid`, `sequence`) or cancelled."""

    summary: Annotated[
        str, Meta(min_length=1, max_length=limits.CALENDAR_TEXT_CHARACTERS, description="What it is about.")
    ]
    start: Annotated[
        WrittenMoment,
        Meta(
            description="2026-11-20T15:00:00 with timeZone, or with Z or an offset; a day such as 2026-11-20"
            " for whole days."
        ),
    ]
    end: Annotated[WrittenMoment, Meta(description="As start; of whole days the day after the last one.")]
    time_zone: Annotated[str, Meta(max_length=64, description="Such as Europe/Berlin.")] = ""
    location: Annotated[ShortText, Meta(description="Where it is.")] = ""
    attendees: Annotated[
        list[Annotated[str, Meta(max_length=ENTRY_LIMIT_CHARACTERS)]],
        Meta(max_length=limits.ATTENDEES, description="Who is invited; by default To and Cc."),
    ] = []
    uid: Annotated[
        str,
        Meta(
            max_length=limits.VISIBLE_CHARACTERS,
            description="Of the appointment that this changes or cancels.",
        ),
    ] = ""
    sequence: (
        Annotated[
            int, Meta(ge=0, le=2**31 - 1, description="With uid: more than that of the last email about it.")
        ]
        | None
    ) = None
    method: Annotated[
        Literal["request", "cancel"], Meta(description="request invites, cancel cancels it.")
    ] = "request"
    recurrence: Annotated[
        str,
        Meta(
            max_length=limits.CALENDAR_TEXT_CHARACTERS,
            description="A rule of RFC 5545 such as FREQ=WEEKLY;COUNT=10.",
        ),
    ] = ""


class CalendarAnswerBody(Struct, rename="camel", frozen=True):
    status: Annotated[
        Literal["accepted", "declined", "tentative"], Meta(description="The answer to the organizer.")
    ]
    comment: Annotated[
        str, Meta(max_length=limits.CALENDAR_COMMENT_CHARACTERS, description="Message to the organizer.")
    ] = ""


def read_invitation(body: InvitationBody | None) -> Invitation | None:
    """Read an invitation. Every error names the field `calendar`."""
    if body is None:
        return None
    _require(not CONTROL.search(body.summary + body.location), "summary and location must be single lines")
    _require(not body.time_zone or is_zone(body.time_zone), "timeZone must be one such as Europe/Berlin")
    _require(not body.uid or _UID.fullmatch(body.uid) is not None, "uid must have visible characters only")
    _require(bool(body.uid) or body.method == "request", "cancel needs the uid of the appointment")
    _require(not body.uid or body.sequence is not None, "with uid there is a sequence")
    _require(
        not body.recurrence or is_rule(body.recurrence), "recurrence must be such as FREQ=WEEKLY;COUNT=10"
    )
    start, end = (_moment(name, getattr(body, name), body.time_zone) for name in ("start", "end"))
    _require(type(start) is type(end), "start and end must both be days, or both times")
    _require(start < end, "end must be after start")
    return Invitation(
        method=body.method.upper(),
        summary=body.summary,
        start=start,
        end=end,
        zone=body.time_zone if isinstance(start, datetime) else "",
        location=body.location,
        attendees=read_addresses(FIELD, body.attendees) if body.attendees else (),
        uid=body.uid,
        sequence=body.sequence or 0,
        recurrence=body.recurrence,
    )


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise BadRequest(f"calendar: {otherwise}.", field=FIELD)


def _moment(name: str, written: str, zone: str) -> date:
    try:
        return read_moment(written, zone)
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"calendar: {name} {error}.", field=FIELD) from None
