"""The daily briefing of the targets that want one: numbers and a link, at an hour of their time zone.

The day is taken in the transaction that queues the notification, so two nodes or a restart send it once.
"""

from datetime import UTC, datetime, time, timedelta, tzinfo

from postroom.accounts.scope import Scope
from postroom.clock import DAY, SECOND
from postroom.events import notifications
from postroom.events.notifications import NotificationTarget
from postroom.mailbox import briefings
from postroom.mailbox.briefings import Briefing
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.reading.time_zones import known_zone


async def step(resources: Resources) -> None:
    for target in await resources.db.read(notifications.list_due_briefings, resources.now()):
        try:
            facts = await resources.db.read(read_facts, target, resources.now())
            await resources.db.write(send, target, facts, resources.config.base_url, resources.now())
        except Exception as error:
            resources.loops.failed("a briefing", error)


def read_facts(tx: Tx, target: NotificationTarget, now: int) -> Briefing:
    """Return those of the last 24 hours, and of what is left of the target's day."""
    return briefings.read(
        tx, Scope(target.account_id), now - DAY, now, start_of_tomorrow(now, zone_of(target))
    )


def send(tx: Tx, target: NotificationTarget, facts: Briefing, base_url: str, now: int) -> None:
    """Does nothing if it was sent, or the targets were replaced, since they were read."""
    if notifications.take_briefing(tx, target, next_at(now, target.briefing_hour, zone_of(target))):
        notifications.add_briefing(tx, target, in_words(facts), f"{base_url}/app", now)


def zone_of(target: NotificationTarget) -> tzinfo:
    return known_zone(target.time_zone) or UTC


def in_words(facts: Briefing) -> str:
    """Return the counts alone: nothing that a stranger wrote."""
    counted = {
        "received": facts.received,
        "held": facts.held,
        "waiting for an answer": facts.awaiting,
        "overdue": facts.overdue,
        "failed": facts.failed,
        "on today's agenda": facts.agenda,
    }
    return ", ".join(f"{brief.count:,} {name}" for name, brief in counted.items())


def next_at(now: int, hour: int, zone: tzinfo) -> int:
    """Return the next moment after now at which it is this hour there, or soon after if a clock skips it."""
    day = datetime.fromtimestamp(now / 1000, zone).date()
    moments = (
        to_moment(datetime.combine(day + timedelta(days=after), time(hour), zone)) for after in (0, 1, 2)
    )
    return next(moment for moment in moments if moment > now)


def start_of_tomorrow(now: int, zone: tzinfo) -> int:
    day = datetime.fromtimestamp(now / 1000, zone).date()
    return to_moment(datetime.combine(day + timedelta(days=1), time(), zone))


def to_moment(moment: datetime) -> int:
    return int(moment.timestamp()) * SECOND
