"""Mail received and sent in 24 hours, 7 or 30 days, of all inboxes or one; as plots, tables and CSV."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts.scope import Scope
from postroom.clock import DAY, HOUR, to_iso
from postroom.mailbox import inboxes, usage
from postroom.mailbox.usage import HourCount
from postroom.queue.providers import counts
from postroom.web.call import Tx
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.display.plots import bars
from postroom.web.dashboard.page_context import PageContext
from postroom.web.scope_filters import required

SPANS = {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}
DAYS = {"7d": 7, "30d": 30}
HOURS = 24
MOST_INBOXES = 200  # with the most mail
LONG_SECONDS = 10.0
COLUMNS = ("received", "sent", "failed", "bounced", "held", "blocked")
FAILURES = ("failed", "bounced")
OF_AN_HOUR = ("received", "sent", "failed")
LATENCY = "milliseconds"  # until a recipient's server accepts an email, on average


class ActivityQuery(Struct, rename="camel", frozen=True):
    span: Literal["24h", "7d", "30d"] = "7d"
    inbox_id: str = ""
    pod_id: str = ""


class ActivityRow(Struct, frozen=True):
    """Counts of an hour or a day, or of an inbox over the whole period."""

    label: str
    counts: dict[str, int]

    def of(self, columns: Sequence[str]) -> list[int]:
        return [self.counts.get(column, 0) for column in columns]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class Activity(Struct, frozen=True):
    columns: tuple[str, ...]
    by_time: list[ActivityRow]
    by_inbox: list[ActivityRow]
    latencies: list[int]  # as many as times

    @property
    def columns_of_time(self) -> tuple[str, ...]:
        return (*self.columns, LATENCY)

    @property
    def times(self) -> list[ActivityRow]:
        both = zip(self.by_time, self.latencies, strict=True)
        return [ActivityRow(each.label, {**each.counts, LATENCY: average}) for each, average in both]

    def plot_latency(self) -> str:
        labels = [each.label for each in self.by_time]
        return bars(self.latencies, "Time to acceptance", is_sum=False, unit=" ms", labels=labels)

    def plot_inboxes(self) -> str:
        return bars(
            [each.total for each in self.by_inbox],
            "Emails by inbox",
            labels=[each.label for each in self.by_inbox],
        )

    def plot(self, column: str, title: str, bad: Sequence[str] = ()) -> str:
        values = [each.counts.get(column, 0) for each in self.by_time]
        wrong = [sum(each.of(bad)) for each in self.by_time] if bad else ()
        return bars(values, title, wrong, labels=[each.label for each in self.by_time])


async def show_activity(context: PageContext, query: ActivityQuery) -> Response:
    found = await read(context, query)
    return await context.show(
        "activity.html",
        "settings",
        title="Activity",
        query=query,
        spans=SPANS,
        found=found,
        inward=found.plot("received", "Emails received"),
        outward=found.plot("sent", "Emails sent", bad=FAILURES),
        latency=found.plot_latency(),
        of_inboxes=found.plot_inboxes(),
    )


async def export(context: PageContext, query: ActivityQuery) -> Response:
    found = await read(context, query)
    columns = found.columns_of_time
    rows = [("time", each.label, *each.of(columns)) for each in found.times]
    rows += [("inbox", each.label, *each.of(columns)) for each in found.by_inbox]
    return sheets.to_file(f"activity-{query.span}.csv", ("by", "what", *columns), rows)


async def read(context: PageContext, query: ActivityQuery) -> Activity:
    """Runs next to other reads: a busy account has many emails per day."""
    work: Callable[[Tx, PageContext, ActivityQuery], Activity] = (
        read_hours if query.span == "24h" else read_days
    )
    return await context.call.resources.db.read_long(work, LONG_SECONDS, context, query)


def read_days(tx: Tx, context: PageContext, query: ActivityQuery) -> Activity:
    scope = required(tx, context.call.scope, query.inbox_id or None, query.pod_id or None)
    last = context.call.now() // DAY
    first = last - DAYS[query.span] + 1
    days = usage.list_groups(tx, scope, "day", first, last)
    of_inboxes = usage.list_groups(tx, scope, "inbox", first, last)
    return Activity(
        COLUMNS,
        [ActivityRow(to_iso(int(each.group) * DAY)[:10], chosen(each.counts)) for each in days],
        named(tx, {str(each.group): chosen(each.counts) for each in of_inboxes}),
        latencies(tx, scope, range(first, last + 1), DAY),
    )


def latencies(tx: Tx, scope: Scope, times: range, each: int) -> list[int]:
    """Return the latencies of the whole account or pod, not by inbox."""
    found = counts.milliseconds_to_accept(tx, scope, times[0] * each, each)
    return [found.get(number, 0) for number in times]


def chosen(counts: dict[str, int]) -> dict[str, int]:
    return {column: counts[column] for column in COLUMNS}


def read_hours(tx: Tx, context: PageContext, query: ActivityQuery) -> Activity:
    """Return the hours, counted from the emails, since only days are stored. Inboxes used since yesterday."""
    scope = required(tx, context.call.scope, query.inbox_id or None, query.pod_id or None)
    now = context.call.now()
    used = usage.list_groups(tx, scope, "inbox", now // DAY - 1, now // DAY)
    busiest = sorted(used, key=lambda each: -each.counts[usage.RECEIVED] - each.counts[usage.SENT])
    first = now // HOUR - HOURS + 1
    found = usage.count_by_hour(tx, [str(each.group) for each in busiest[:MOST_INBOXES]], first * HOUR)
    by_hour = [summed(each for each in found if each.hour == hour) for hour in range(first, first + HOURS)]
    by_inbox = {
        inbox_id: summed(each for each in found if each.inbox_id == inbox_id)
        for inbox_id in sorted({each.inbox_id for each in found})
    }
    labels = [to_iso(hour * HOUR)[11:16] for hour in range(first, first + HOURS)]
    return Activity(
        OF_AN_HOUR,
        [ActivityRow(label, of_hour) for label, of_hour in zip(labels, by_hour, strict=True)],
        named(tx, by_inbox),
        latencies(tx, scope, range(first, first + HOURS), HOUR),
    )


def summed(found: Iterable[HourCount]) -> dict[str, int]:
    counts = dict.fromkeys(OF_AN_HOUR, 0)
    for each in found:
        counts[each.what] += each.mails
    return counts


def named(tx: Tx, found: Mapping[str, dict[str, int]]) -> list[ActivityRow]:
    """Return the rows, busiest first. A deleted inbox is shown by its id."""
    addresses = inboxes.addresses_of(tx, sorted(found))
    counted = [ActivityRow(addresses.get(inbox_id, inbox_id), counts) for inbox_id, counts in found.items()]
    return sorted((each for each in counted if each.total), key=lambda each: -each.total)[:MOST_INBOXES]
