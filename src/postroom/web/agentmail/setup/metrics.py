"""Metrics of /v0, from daily counts."""

from collections.abc import Iterable, Sequence

from postroom.accounts.scope import Scope
from postroom.clock import DAY, to_iso
from postroom.errors import BadRequest
from postroom.fields import read_asked
from postroom.mailbox import keyset_listing, usage
from postroom.mailbox.usage import GroupUse
from postroom.resources import Tx
from postroom.web.agentmail import shapes
from postroom.web.agentmail.setup import setup_shapes

LONGEST = 90 * DAY
# Kinds of events of /v0, by our counter.
COUNTED = {
    "message.received": "received",
    "message.received.blocked": "blocked",
    "message.sent": "sent",
    "message.delivered": "sent",
    "message.bounced": "bounced",
    "message.complained": "complained",
}
RATES = {"bounce": "bounced", "complaint": "complained"}
STORED = "storage_bytes"


def get_events(tx: Tx, place: Scope, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    days = read_days(tx, place, query, now)
    return {
        kind: [{"timestamp": moment(day), "count": day.counts[COUNTED[kind]]} for day in days]
        for kind in known_of(query.event_types, COUNTED, "event_types")
    }


def get_usage(tx: Tx, place: Scope, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    """Return the use: stored bytes by day, all other totals as of now."""
    totals = keyset_listing.totals(tx, place)
    points = {kind: [{"timestamp": to_iso(now), "value": total}] for kind, total in totals.items()}
    points[STORED] = [
        {"timestamp": moment(day), "value": day.counts["stored_bytes"]}
        for day in read_days(tx, place, query, now)
    ]
    return {kind: points[kind] for kind in known_of(query.usage_types, points, "usage_types")}


def get_rates(tx: Tx, place: Scope, query: setup_shapes.MetricsQuery, now: int) -> shapes.Page:
    days = read_days(tx, place, query, now)
    return {
        kind: [rate(day, RATES[kind]) for day in days]
        for kind in known_of(query.rate_types, RATES, "rate_types")
    }


def rate(day: GroupUse, counter: str) -> shapes.Page:
    sent = day.counts["sent"]
    part = {"rate": day.counts[counter] / sent} if sent else {}
    return {"timestamp": moment(day), "sent": sent, **part}


def known_of(asked: Sequence[str], known: Iterable[str], field: str) -> list[str]:
    """Return the kinds asked for that are counted here; all if none is named."""
    if any(len(kind) > 100 for kind in asked):
        raise BadRequest(f"{field} names an unknown metric.", field=field)
    return [kind for kind in known if not asked or kind in asked]


def read_days(tx: Tx, place: Scope, query: setup_shapes.MetricsQuery, now: int) -> list[GroupUse]:
    """Return whole days in UTC for any period: nothing is counted in smaller steps."""
    end = read_asked(query.end, "end") or now
    start = read_asked(query.start, "start")
    start = end - DAY if start is None else start
    if not now - LONGEST <= start <= end:
        raise BadRequest("start must be at most 90 days back, and before end.", field="start")
    days = usage.list_groups(tx, place, "day", start // DAY, min(end, now) // DAY)
    ordered = days[::-1] if query.descending else days
    return ordered[: query.limit]


def moment(day: GroupUse) -> str:
    assert isinstance(day.group, int)
    return to_iso(day.group * DAY)
