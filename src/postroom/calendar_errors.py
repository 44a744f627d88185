"""The rows of the error table that are about calendars."""

from postroom.errors import ApiError


class CalendarLimitReached(ApiError):
    """A calendar beyond those of an inbox, or an event beyond those of a calendar."""

    status, code = 422, "calendar_limit_reached"


class DefaultCalendar(ApiError):
    """Deleting the default calendar of an inbox."""

    status, code = 409, "default_calendar"


class SlotTaken(ApiError):
    """An event at a time that is taken already. `event` names the one that takes it."""

    status, code = 409, "slot_taken"


class EventChanged(ApiError):
    """A calendar event that somebody else changed at the same time."""

    status, code = 409, "event_changed"


class NotOrganizer(ApiError):
    """Changing what only the organizer of an event can change."""

    status, code = 409, "not_organizer"


class InvalidCalendarFile(ApiError):
    """A calendar file that cannot be read, or that is too large."""

    status, code = 422, "invalid_calendar_file"
