"""The calendar of an inbox: a week or an agenda, with answers, moves and cancellations."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from msgspec import UNSET, Struct
from starlette.responses import Response

from postroom.clock import DAY
from postroom.errors import BadRequest
from postroom.mailbox import inbox_calendars, inboxes
from postroom.mailbox.calendars import calendar_events
from postroom.mailbox.calendars.calendar_json import ShownCalendarEvent
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.operations.calendars.calendar_events import CalendarEventQuery, list_calendar_events
from postroom.operations.calendars.event_fields import CalendarEventChange
from postroom.resources import Tx
from postroom.web.api import calendar_events as event_changes
from postroom.web.api.calendar_events import ChangeQuery
from postroom.web.dashboard import undo
from postroom.web.dashboard.delayed_operations import cancel_event
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.forms import own_path
from postroom.web.dashboard.page_context import PageContext, go, plain
from postroom_mail.reading.series import to_local, to_moment

PATH = "/app/calendar"
WEEK, AGENDA = 7, 31  # days
SHOWN = 100


class CalendarPageQuery(Struct, rename="camel", frozen=True):
    inbox_id: str = ""
    pod_id: str = ""
    day: str = ""
    view: Literal["week", "agenda"] = "week"


class InvitationAnswerForm(Struct, rename="camel", frozen=True):
    response: Literal["accepted", "declined", "tentative"]
    comment: str = ""
    back: str = PATH


class MoveForm(Struct, rename="camel", frozen=True):
    """Local times in the zone of the event; `scope` all, or the occurrence `recurrence_id`."""

    start: str
    end: str
    recurrence_id: str = ""
    back: str = PATH


class CancelForm(Struct, rename="camel", frozen=True):
    recurrence_id: str = ""
    back: str = PATH


class SeenForm(Struct, rename="camel", frozen=True):
    event_id: list[str] = []
    back: str = PATH


class CalendarDay(Struct, frozen=True):
    day: date
    is_today: bool
    events: list[Any]


async def show_calendar(context: PageContext, query: CalendarPageQuery) -> Response:
    calendar = await context.read(find_calendar, context, query.inbox_id)
    if calendar is None:
        return await context.show(
            "calendar.html", "calendar", title="Calendar", query=query, days=[], calendar=None
        )
    today = to_local(context.call.now(), calendar.time_zone, {}).date()
    first = first_day(query, today)
    days = WEEK if query.view == "week" else AGENDA
    since, until = (
        to_moment(_midnight(first + timedelta(days=each)), calendar.time_zone, {}, "UTC")
        for each in (0, days)
    )
    asked = CalendarEventQuery(inbox_id=calendar.inbox_id, since=_iso(since), until=_iso(until), limit=SHOWN)
    page = await context.run(list_calendar_events, query=asked)
    unseen = await context.read(list_unseen, [each.id for each in page.data])
    by_day = in_days(page.data, first, days, today)
    return await context.show(
        "calendar.html",
        "calendar",
        title="Calendar",
        query=query,
        calendar=plain(calendar),
        days=by_day if query.view == "week" else [each for each in by_day if each.events],
        first=first,
        last=first + timedelta(days=days - 1),
        before=first - timedelta(days=days),
        after=first + timedelta(days=days),
        today=today,
        unseen=unseen,
        total=page.total,
        here_now=link(PATH, inboxId=calendar.inbox_id, day=first.isoformat(), view=query.view),
    )


def find_calendar(tx: Tx, context: PageContext, inbox_id: str) -> InboxCalendar | None:
    """Return the calendar of the inbox asked for, else of the newest one."""
    scope = context.call.scope
    if inbox_id:
        return inbox_calendars.default_of(tx, inboxes.get(tx, scope, inbox_id).id)
    newest, _ = inboxes.list_within(tx, scope, 1, 0)
    return inbox_calendars.default_of(tx, newest[0].id) if newest else None


def list_unseen(tx: Tx, event_ids: list[str]) -> set[str]:
    """List the events that an agent or an email changed and no person has looked at since."""
    found = calendar_events.list_by_ids(tx, event_ids)
    return {event_id for event_id, event in found.items() if event.seen_by is None}


def first_day(query: CalendarPageQuery, today: date) -> date:
    """Return the first day. A week begins on Monday."""
    try:
        day = date.fromisoformat(query.day) if query.day else today
        if not 1971 <= day.year <= 2200:
            raise ValueError(query.day)
    except ValueError:
        raise BadRequest("day must be a day such as 2026-11-20.", field="day") from None
    return day - timedelta(days=day.weekday()) if query.view == "week" else day


def in_days(found: list[ShownCalendarEvent], first: date, days: int, today: date) -> list[CalendarDay]:
    """Return each event on the days that it touches."""
    made = [
        CalendarDay(day, day == today, []) for day in (first + timedelta(days=each) for each in range(days))
    ]
    for event in found:
        begin, end = date.fromisoformat(event.start[:10]), date.fromisoformat(event.end[:10])
        if end > begin and (event.all_day or event.end[11:19] == "00:00:00"):
            end -= timedelta(days=1)
        for place in range(max((begin - first).days, 0), min((end - first).days, days - 1) + 1):
            made[place].events.append(plain(event))
    return made


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 (the zone is the calendar's)


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat()


async def answer(context: PageContext, event_id: str, body: InvitationAnswerForm) -> Response:
    """Answers once, however often the button is pressed within a day."""
    key = f"page-{event_id}-{body.response}-{context.call.now() // DAY}"
    response = event_changes.Response(body.response, body.comment)
    await event_changes.respond(context.call, event_id, response, key)
    await seen(context, [event_id])
    return go(own_path(body.back), "The organizer gets your reply once nothing holds it.")


async def move(context: PageContext, event_id: str, body: MoveForm) -> Response:
    query = ChangeQuery("this" if body.recurrence_id else "all", body.recurrence_id or None)
    change = CalendarEventChange(start=body.start or UNSET, end=body.end or UNSET)
    key = f"page-{event_id}-{body.recurrence_id}-{body.start}-{body.end}-{context.call.now() // 1000}"
    await event_changes.change(context.call, event_id, change, query, key)
    return go(own_path(body.back), "Moved. Attendees are notified once nothing holds the email.")


cancel = undo.delayed(
    cancel_event,
    lambda form: own_path(form.back),
    "Cancelling the event in {seconds} seconds.",
    CancelForm,
    lambda form: {"recurrence_id": form.recurrence_id},
)


async def mark_seen(context: PageContext, body: SeenForm) -> Response:
    await seen(context, body.event_id[:SHOWN])
    return go(own_path(body.back))


async def seen(context: PageContext, event_ids: list[str]) -> None:
    person = context.call.caller.actor.id
    await context.call.resources.db.write(calendar_events.mark_seen, context.call.scope, event_ids, person)
