"""Working days: how long a number of them takes, within the hours of an inbox's calendar."""

from datetime import UTC, datetime, time, timedelta, tzinfo

from msgspec import Struct

from postroom.mailbox import inbox_calendars
from postroom.mailbox.inbox_calendars import WEEKDAYS, WorkingHours
from postroom.storage.database import Tx
from postroom_mail.reading.time_zones import known_zone

LAST_MINUTE = time(23, 59)
OfficeDay = tuple[time, time]  # when it opens and closes


class OfficeWeek(Struct, frozen=True):
    """The hours of each working day, 0 is Monday, in a time zone."""

    days: dict[int, OfficeDay]
    zone: tzinfo = UTC


USUAL = OfficeWeek(dict.fromkeys(range(5), (time(9), time(17))))


def of_inbox(tx: Tx, inbox_id: str) -> OfficeWeek:
    """Return the week of the default calendar; the usual one if there is none, or it works on no day."""
    calendar = inbox_calendars.find(tx, inbox_calendars.default_id(inbox_id))
    if calendar is None:
        return USUAL
    days = to_days(calendar.hours)
    return OfficeWeek(days, known_zone(calendar.time_zone) or UTC) if days else USUAL


def to_days(hours: WorkingHours) -> dict[int, OfficeDay]:
    """A break at noon does not end a day."""
    return {
        number: (_to_time(spans[0][0]), _to_time(spans[-1][1]))
        for number, day in enumerate(WEEKDAYS)
        if (spans := hours.get(day))
    }


def _to_time(written: str) -> time:
    return LAST_MINUTE if written.startswith("24") else time.fromisoformat(written)


def after_working_days(now: int, count: int, week: OfficeWeek = USUAL) -> int:
    """Return when so many working days are over. What begins outside of them begins at the next opening."""
    moment = _opened(datetime.fromtimestamp(now / 1000, week.zone), week)
    for _ in range(count):
        moment = _next_working_day(moment, week)
    return int(moment.timestamp() * 1000)


def _opened(moment: datetime, week: OfficeWeek) -> datetime:
    today = week.days.get(moment.weekday())
    if today is not None and moment.time() <= today[0]:
        return datetime.combine(moment.date(), today[0], week.zone)
    if today is not None and moment.time() < today[1]:
        return moment
    following = _next_working_day(moment, week)
    return datetime.combine(following.date(), week.days[following.weekday()][0], week.zone)


def _next_working_day(moment: datetime, week: OfficeWeek) -> datetime:
    """Return the same time on the next working day.

    Any week with a working day has one within seven days.
    """
    for _ in WEEKDAYS:
        moment += timedelta(days=1)
        if moment.weekday() in week.days:
            break
    return moment
