"""Operations on usage: what was received, sent and stored."""

from datetime import date
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from postroom import clock
from postroom.accounts.keys import Caller
from postroom.errors import BadRequest
from postroom.fields import InboxFilter, PodFilter
from postroom.mailbox import inboxes, usage
from postroom.mailbox.usage import GroupUse
from postroom.storage.database import Tx

USAGE_DAYS, USAGE_MAX_DAYS = 30, 366
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
FIRST_DAY = date(1970, 1, 1).toordinal()

Day = Annotated[
    str,
    Meta(
        pattern=DAY,
        description="A day, UTC; without days, the last 30.",
        examples=["2026-01-31"],
        extra_json_schema={"format": "date"},
    ),
]


class UsageQuery(Struct, frozen=True):
    first: Day | None = field(default=None, name="from")
    last: Day | None = field(default=None, name="to")
    group_by: Annotated[Literal["day", "inbox", "pod"], Meta(description="A group for each of these.")] = (
        "day"
    )
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    pod_id: PodFilter | None = field(default=None, name="podId")

    def days(self, now: int) -> tuple[int, int]:
        """Return the numbers of the first and the last day; by default the last 30 days."""
        last = now // clock.DAY if self.last is None else _day(self.last, "to")
        first = last - USAGE_DAYS + 1 if self.first is None else _day(self.first, "from")
        if not 0 <= last - first < USAGE_MAX_DAYS:
            raise BadRequest(f"from must be a day up to {USAGE_MAX_DAYS} days before to.", field="from")
        return first, last


def _day(value: str, name: str) -> int:
    try:
        return date.fromisoformat(value).toordinal() - FIRST_DAY
    except ValueError:
        raise BadRequest(f"{name} must be a day such as 2026-01-31.", field=name) from None


class ShownUsage(Struct, rename="camel", frozen=True):
    """`group` is a day, or the id of an inbox or a pod; `storedBytes` is what was stored at its end."""

    group: str
    received: int
    sent: int
    failed: int
    bounced: int
    complained: int
    held: int
    blocked: int
    stored_bytes: int


class Usage(Struct, rename="camel", frozen=True):
    first: str = msgspec.field(name="from")
    last: str = msgspec.field(name="to")
    data: list[ShownUsage]


def get_usage(tx: Tx, caller: Caller, query: UsageQuery, now: int) -> Usage:
    """Get what was received, sent and stored, by day, inbox or pod"""
    first, last = query.days(now)
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    found = [] if scope is None else usage.list_groups(tx, scope, query.group_by, first, last)
    return Usage(day_name(first), day_name(last), [show(each) for each in found])


def show(use: GroupUse) -> ShownUsage:
    group = day_name(use.group) if isinstance(use.group, int) else use.group
    return ShownUsage(group, **use.counts)


def day_name(number: int) -> str:
    return date.fromordinal(number + FIRST_DAY).isoformat()
