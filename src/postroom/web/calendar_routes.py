"""The rows of the route table that are about calendars."""

from typing import Any

from postroom import calendar_errors, errors
from postroom.accounts.permissions import MANAGING, NOTHING, READING, WRITING
from postroom.errors import ApiError
from postroom.operations.calendars import calendar_events, calendars
from postroom.web.api import calendar_events as event_changes
from postroom.web.api import calendar_feeds
from postroom.web.api.calendar_feeds import require_allowed_source
from postroom.web.routing import PUBLIC, SCOPED, Route, delete, get, patch, post

CALENDAR = "/v1/calendars/{calendar_id}"
CALENDAR_EVENT = "/v1/calendar-events/{calendar_event_id}"
MISSING = (errors.NotFound,)
NEW_CALENDAR = (*MISSING, calendar_errors.CalendarLimitReached, errors.InvalidTarget)
FILE_OF_EVENTS = (calendar_errors.InvalidCalendarFile, calendar_errors.CalendarLimitReached)
SOURCED: dict[str, Any] = {"prepare": require_allowed_source}
WITH_KEY: dict[str, Any] = {"header": "Idempotency-Key"}
MAYBE_WITH_KEY: dict[str, Any] = {**WITH_KEY, "may_lack_header": True}  # only attendees get an email


def calendar_rows(send: tuple[type[ApiError], ...]) -> tuple[Route, ...]:
    """Return the rows; `send` are the errors of a send, which tells attendees."""
    new_event: tuple[type[ApiError], ...] = (
        *MISSING,
        *send,
        calendar_errors.SlotTaken,
        calendar_errors.CalendarLimitReached,
    )
    changes = (calendar_errors.SlotTaken, calendar_errors.NotOrganizer, calendar_errors.EventChanged)
    old_event, answer = (*send, *changes), (*send, errors.NotAnInvitation)
    return (
        get("/v1/calendars", calendars.list_calendars, SCOPED, READING, 200, MISSING),
        post("/v1/calendars", calendars.create_calendar, SCOPED, WRITING, 201, NEW_CALENDAR, **SOURCED),
        get(CALENDAR, calendars.get_calendar, SCOPED, READING),
        patch(CALENDAR, calendars.change_calendar, SCOPED, WRITING, 200, (errors.InvalidTarget,), **SOURCED),
        delete(
            CALENDAR, calendars.delete_calendar, SCOPED, MANAGING, 204, (calendar_errors.DefaultCalendar,)
        ),
        post(f"{CALENDAR}/import", calendar_feeds.import_calendar_file, SCOPED, WRITING, 200, FILE_OF_EVENTS),
        post(f"{CALENDAR}/feed", calendars.create_calendar_feed, SCOPED, MANAGING, 201),
        delete(f"{CALENDAR}/feed", calendars.delete_calendar_feed, SCOPED, MANAGING, 204),
        get("/v1/calendar-events", calendar_events.list_calendar_events, SCOPED, READING, 200, MISSING),
        post(
            "/v1/calendar-events",
            event_changes.create_calendar_event,
            SCOPED,
            WRITING,
            201,
            new_event,
            **MAYBE_WITH_KEY,
        ),
        get(CALENDAR_EVENT, calendar_events.get_calendar_event, SCOPED, READING),
        patch(
            CALENDAR_EVENT,
            event_changes.change_calendar_event,
            SCOPED,
            WRITING,
            200,
            old_event,
            **MAYBE_WITH_KEY,
        ),
        delete(
            CALENDAR_EVENT,
            event_changes.cancel_calendar_event,
            SCOPED,
            WRITING,
            200,
            old_event,
            **MAYBE_WITH_KEY,
        ),
        post(
            f"{CALENDAR_EVENT}/respond",
            event_changes.respond_to_calendar_event,
            SCOPED,
            WRITING,
            200,
            answer,
            **WITH_KEY,
        ),
        get("/v1/free-busy", calendar_events.get_free_busy, SCOPED, READING, 200, MISSING),
        post("/v1/find-times", calendar_events.find_times, SCOPED, READING, 200, MISSING),
        get("/calendars/{file}", calendar_feeds.calendar_feed, PUBLIC, NOTHING, 200, MISSING),
    )
