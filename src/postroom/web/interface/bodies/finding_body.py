"""What requests carry about finding: the queries of search and usage."""

from datetime import date
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from postroom import clock
from postroom.errors import BadRequest
from postroom.fields import InboxFilter, Limit, PodFilter

USAGE_DAYS, USAGE_MAX_DAYS = 30, 366
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
FIRST_DAY = date(1970, 1, 1).toordinal()


class SearchQuery(Struct, frozen=True):
    q: Annotated[
        str,
        Meta(
            description='Words, "phrases", -not, a OR b, beginnings*, from: to: subject: label: in: has: is:'
            " before: after:",
            examples=["invoice from:billing after:2026-01-01", '"purchase order" -draft has:attachment'],
        ),
    ]
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    pod_id: PodFilter | None = field(default=None, name="podId")
    limit: Limit = 20
    cursor: Annotated[str, Meta(description="`next` of the page before.")] | None = None


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

    def days(self, now: int) -> tuple[int, int]:
        """Numbers of the first and the last day; without them, the last 30."""
        last = now // clock.DAY if self.last is None else _day(self.last, "to")
        first = last - USAGE_DAYS + 1 if self.first is None else _day(self.first, "from")
        if not 0 <= last - first < USAGE_MAX_DAYS:
            raise BadRequest(f"from is a day up to {USAGE_MAX_DAYS} days before to.", field="from")
        return first, last


def _day(value: str, name: str) -> int:
    try:
        return date.fromisoformat(value).toordinal() - FIRST_DAY
    except ValueError:
        raise BadRequest(f"{name} is a day such as 2026-01-31.", field=name) from None
