"""Metrics of /v0, of what is counted day by day."""

from collections.abc import Sequence

from postroom.accounts.keys import Caller
from postroom.accounts.reach import Reach
from postroom.clock import DAY, to_iso
from postroom.errors import BadRequest
from postroom.fields import read_asked
from postroom.mailbox import usage
from postroom.mailbox.search import listing
from postroom.mailbox.usage import GroupUse
from postroom.resources import Tx
from postroom.web.agentmail import shapes
from postroom.web.agentmail.setup import setup_shapes

LONGEST = 90 * DAY
# Kinds of events there, by the counter that is kept here.
COUNTED = {
    "message.received": "received",
    "message.received.blocked": "blocked",
    "message.sent": "sent",
    "message.delivered": "sent",
    "message.bounced": "bounced",
    "message.complained": "complained",
}
RATES = {"bounce": "bounced", "complaint": "complained"}


def get_events(tx: Tx, caller: Caller, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    return get_events_within(tx, caller.reach, query, now)


def get_events_within(tx: Tx, within: Reach, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    days = read_days(tx, within, query, now)
    asked = query.event_types or list(COUNTED)
    return {
        kind: [{"timestamp": moment(day), "count": day.counts[COUNTED[kind]]} for day in days]
        for kind in require_known(asked, COUNTED, "event_types")
    }


def get_usage(tx: Tx, caller: Caller, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    return get_usage_within(tx, caller.reach, query, now)


def get_usage_within(tx: Tx, within: Reach, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    """What is kept is known for each day; how many there are, as of now."""
    days = read_days(tx, within, query, now)
    totals = listing.totals(tx, within)
    asked = query.usage_types or ["storage_bytes", *totals]
    known = require_known(asked, {"storage_bytes": "", **totals}, "usage_types")
    stored = [{"timestamp": moment(day), "value": day.counts["stored_bytes"]} for day in days]
    return {
        kind: stored if kind == "storage_bytes" else [{"timestamp": to_iso(now), "value": totals[kind]}]
        for kind in known
    }


def get_rates(tx: Tx, caller: Caller, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    return get_rates_within(tx, caller.reach, query, now)


def get_rates_within(tx: Tx, within: Reach, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    days = read_days(tx, within, query, now)
    return {
        kind: [rate(day, RATES[kind]) for day in days]
        for kind in require_known(query.rate_types or list(RATES), RATES, "rate_types")
    }


def rate(day: GroupUse, counter: str) -> shapes.Page:
    sent = day.counts["sent"]
    part = {"rate": day.counts[counter] / sent} if sent else {}
    return {"timestamp": moment(day), "sent": sent, **part}


def require_known(
    asked: Sequence[str], known: dict[str, object] | dict[str, str], field: str
) -> Sequence[str]:
    """Kinds that are there and not counted here have no points: they are left out."""
    for kind in asked:
        if len(kind) > 100:
            raise BadRequest(f"{field} names something that is not counted.", field=field)
    return [kind for kind in asked if kind in known]


def read_days(tx: Tx, within: Reach, query: setup_shapes.MetricsQuery, now: int) -> list[GroupUse]:
    """Whole days in UTC, whatever period is asked for: nothing is counted in smaller ones."""
    end = read_asked(query.end, "end") or now
    start = read_asked(query.start, "start")
    start = end - DAY if start is None else start
    if not now - LONGEST <= start <= end:
        raise BadRequest("start lies at most 90 days back, and before end.", field="start")
    days = usage.list_groups(tx, within, "day", start // DAY, min(end, now) // DAY)
    ordered = days[::-1] if query.descending else days
    return ordered[: query.limit]


def moment(day: GroupUse) -> str:
    assert isinstance(day.group, int)
    return to_iso(day.group * DAY)
