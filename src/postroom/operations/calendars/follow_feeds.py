"""Follows the feeds that calendars name: each is fetched every hour, like a webhook target."""

from contextlib import AsyncExitStack, closing
from functools import partial

from msgspec.structs import replace

from postroom.accounts.scope import Scope
from postroom.clock import HOUR
from postroom.errors import ApiError
from postroom.external_mailboxes.fetching import Fetcher, FetchError
from postroom.limits import FEED_BYTES
from postroom.mailbox import inbox_calendars
from postroom.mailbox.inbox_calendars import InboxCalendar
from postroom.operations.calendars import imported
from postroom.queue.queue_loop import IDLE_SECONDS
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom.upkeep.calendar_times import watch_calendars

BELL = "calendar-feeds"
BETWEEN = HOUR


def start_calendars(stack: AsyncExitStack, resources: Resources, fetcher: Fetcher) -> None:
    """Start the loops of calendars: feeds, starts and ends of events."""
    resources.loops.run(stack, "calendars", partial(watch_calendars, resources))
    resources.loops.run(stack, "calendar feeds", partial(follow_feeds, resources, fetcher))


async def follow_feeds(resources: Resources, fetcher: Fetcher) -> None:
    """Fetch feeds when they are due, until cancelled."""
    with closing(resources.db.listen(BELL)) as subscription:
        while True:
            is_any_due = await resources.db.read(inbox_calendars.is_source_due, resources.now())
            claimed = await resources.db.write(claim, resources.now()) if is_any_due else None
            resources.loops.works("calendar feeds")
            if claimed is None:
                await subscription.wait(IDLE_SECONDS)
            else:
                await follow(resources, fetcher, claimed)


def claim(tx: Tx, now: int) -> InboxCalendar | None:
    """Claim the next due feed for this node. It is due again in an hour, whatever happens."""
    found = inbox_calendars.find_source_due(tx, now)
    if found is None or not inbox_calendars.put_off_source(tx, found, now + BETWEEN):
        return None
    return found


async def follow(resources: Resources, fetcher: Fetcher, calendar: InboxCalendar) -> None:
    error = await fetch(resources, fetcher, calendar)
    if error != calendar.source_error:
        await resources.db.write(record_error, calendar.id, error)


async def fetch(resources: Resources, fetcher: Fetcher, calendar: InboxCalendar) -> str | None:
    """Fetch a feed. Return what went wrong, as a sentence, or None."""
    assert calendar.source_url is not None
    try:
        answer = await fetcher.fetch("GET", calendar.source_url, {"Accept": "text/calendar"}, b"", FEED_BYTES)
        if answer.status != 200:
            return f"The feed answered {answer.status}."
        objects = await imported.read_file(answer.body)
        scope = Scope(calendar.account_id, calendar.pod_id, calendar.inbox_id)
        await imported.store(resources, scope, calendar.id, objects, follows=True)
    except FetchError as error:
        return str(error)
    except ApiError as error:
        return error.message
    return None


def record_error(tx: Tx, calendar_id: str, error: str | None) -> None:
    calendar = inbox_calendars.find(tx, calendar_id)
    if calendar is not None:
        inbox_calendars.put(tx, replace(calendar, source_error=error))
