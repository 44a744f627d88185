"""Events about calendars and no message: invited, created, changed, cancelled, answered, starting, ended."""

from msgspec import UNSET

from postroom.accounts.actors import Actor
from postroom.events.announce import announce_notice
from postroom.events.payload import EventCalendarEvent, SystemNotice
from postroom.mailbox.calendars import calendar_json
from postroom.mailbox.calendars.calendar_events import CalendarEvent
from postroom.mailbox.calendars.spans import EventSpan
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.storage.database import Tx


def emit(
    tx: Tx,
    kind: str,
    calendar: InboxCalendar,
    event: CalendarEvent,
    now: int,
    *,
    actor: Actor | None = None,
    span: EventSpan | None = None,
    attendee: str = "",
    response: str = "",
) -> None:
    """Records the event of a change, in its transaction. `attendee` is who answered, and `response` how."""
    shown = calendar_json.show_event(event, calendar, span)
    announce_notice(
        tx,
        SystemNotice(
            event.account_id,
            event.pod_id,
            kind,
            now,
            inbox_id=event.inbox_id,
            actor=actor or UNSET,
            thread_id=event.thread_id or "",
            calendar_event=EventCalendarEvent(
                id=event.id,
                calendar_id=event.calendar_id,
                uid=shown.uid,
                summary=shown.summary,
                location=shown.location,
                start=shown.start,
                end=shown.end,
                time_zone=shown.time_zone,
                all_day=shown.all_day,
                recurrence=shown.recurrence,
                recurrence_id=shown.recurrence_id,
                organizer=shown.organizer,
                status=shown.status,
                own_response=shown.own_response,
                sequence=shown.sequence,
                message_id=shown.message_id,
                verdict=shown.verdict,
                attendee=attendee or UNSET,
                response=response or UNSET,
            ),
        ),
    )
