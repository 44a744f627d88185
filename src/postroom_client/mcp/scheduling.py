"""The tools of the set `calendar`: an agent's agenda, free time, new events and answers to invitations."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from postroom_client.calls import calls
from postroom_client.limits import CALENDAR_COMMENT_CHARACTERS
from postroom_client.mcp.api_caller import ApiCaller, Ctx, IdempotencyKey, InboxId, Limit
from postroom_client.results import CalendarEvent
from postroom_client.untrusted import Delimiters, warning

Moment = Annotated[str, Field(description="Such as 2026-11-20T15:00:00Z.")]
LocalTime = Annotated[
    str,
    Field(description="2026-11-20T15:00:00 in time_zone, or with an offset; a day such as 2026-11-20."),
]


@dataclass(frozen=True)
class Appointment:
    """`content` was written by the event's author."""

    event_id: str
    start: str
    end: str
    status: str
    own_response: Annotated[str | None, Field(description="null: your own event.")]
    recurrence_id: Annotated[str | None, Field(description="This occurrence of a series.")]
    content: str
    hold: Annotated[str | None, Field(description="held: its email waits for a person.")] = None


@dataclass(frozen=True)
class Agenda:
    events: list[Appointment]
    total: int
    notice: str = ""


@dataclass(frozen=True)
class FreeSlot:
    start: str
    end: str


@dataclass(frozen=True)
class FreeSlots:
    slots: list[FreeSlot]


class SchedulingTools:
    def __init__(self, api: ApiCaller) -> None:
        self._api = api

    async def agenda(
        self,
        ctx: Ctx,
        since: Moment,
        until: Moment,
        inbox_id: InboxId = "",
        limit: Limit = 50,
    ) -> Agenda:
        """Show which events take place between two moments, with invitations that wait for an answer."""
        where = await self._api.inbox_id(ctx, inbox_id)
        asked = calls.list_calendar_events(inbox_id=where, since=since, until=until, limit=limit)
        page = await self._api.call(ctx, asked)
        fence = Delimiters()
        events = [appointment(each, fence) for each in page.data]
        return Agenda(events, page.total, fence.notice if events else "")

    async def find_times(
        self,
        ctx: Ctx,
        duration_minutes: Annotated[int, Field(ge=5, le=1440)],
        since: Moment,
        until: Moment,
        inbox_ids: Annotated[
            list[str] | None, Field(description="Who takes part: ids or addresses of inboxes here.")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=100)] = 10,
    ) -> FreeSlots:
        """Suggest slots within working hours in which every participant is free."""
        who = inbox_ids or [await self._api.inbox_id(ctx, "")]
        found = await self._api.call(ctx, calls.find_times(who, duration_minutes, since, until, limit=limit))
        return FreeSlots([FreeSlot(_written(each.start), _written(each.end)) for each in found.slots])

    async def create_event(
        self,
        ctx: Ctx,
        summary: Annotated[str, Field(min_length=1)],
        start: LocalTime,
        end: LocalTime,
        time_zone: Annotated[str, Field(description="Such as Europe/Berlin.")] = "",
        attendees: Annotated[
            list[str] | None, Field(description="Addresses to invite by email, held like any send.")
        ] = None,
        location: str = "",
        description: str = "",
        recurrence: Annotated[
            list[str] | None, Field(description="RRULE:FREQ=WEEKLY;COUNT=4 and other lines of RFC 5545.")
        ] = None,
        allow_overlap: Annotated[bool, Field(description="Also at a time that is taken.")] = False,
        inbox_id: InboxId = "",
        idempotency_key: IdempotencyKey = "",
    ) -> Appointment:
        """Book time in the calendar. A slot that somebody took first is refused: choose another one."""
        call = calls.create_calendar_event(
            summary,
            start,
            end,
            inbox_id=await self._api.inbox_id(ctx, inbox_id),
            time_zone=time_zone or None,
            attendees=[{"address": each} for each in attendees or ()],
            location=location,
            description=description,
            recurrence=recurrence or (),
            allow_overlap=allow_overlap,
            idempotency_key=idempotency_key or None,
        )
        return appointment(await self._api.call(ctx, call), Delimiters())

    async def answer_invitation(
        self,
        ctx: Ctx,
        event_id: Annotated[str, Field(description="Of the agenda, cev_…")],
        response: Literal["accepted", "declined", "tentative"],
        comment: Annotated[str, Field(max_length=CALENDAR_COMMENT_CHARACTERS)] = "",
        idempotency_key: IdempotencyKey = "",
    ) -> Appointment:
        """Accept or decline what the agenda lists as needs-action."""
        call = calls.respond_to_calendar_event(
            event_id, response, comment=comment, idempotency_key=idempotency_key or None
        )
        return appointment(await self._api.call(ctx, call), Delimiters())


def _written(moment: datetime | None) -> str:
    return "" if moment is None else moment.isoformat()


def appointment(event: CalendarEvent, fence: Delimiters) -> Appointment:
    lines = [f"Summary: {event.summary}"]
    lines += [f"Location: {event.location}"] if event.location else []
    lines += [f"Link: {event.url}"] if event.url else []
    lines += [f"Organizer: {event.organizer}"] if event.organizer else []
    lines += [f"Attendee: {each.address} ({each.participation_status})" for each in event.attendees[:50]]
    lines += [event.description] if event.description else []
    return Appointment(
        event_id=event.id,
        start=event.start,
        end=event.end,
        status=event.status,
        own_response=event.own_response,
        recurrence_id=event.recurrence_id,
        content=fence.wrap("\n".join(lines), warning(event.verdict, ())),
        hold=None if event.hold is None else event.hold.state,
    )
