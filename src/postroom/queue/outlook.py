"""What an operator asks of the queue: what waits for whom, how delivery goes by domain, mails by the hour."""

from dataclasses import dataclass

from postroom.clock import HOUR
from postroom.queue.schedule import MAIL, NOTICE, WEBHOOK
from postroom.storage.database import Tx

LOOKED_AT = 5000  # rows at most: an overview never walks a table
HOURS = 24


@dataclass(frozen=True, slots=True)
class Waiting:
    lane: str
    count: int
    oldest_at: int
    last_reply: str


@dataclass(frozen=True, slots=True)
class DomainOutlook:
    """How the newest deliveries to a domain ended."""

    lane: str
    delivered: int
    failed: int
    bounced: int


@dataclass(frozen=True, slots=True)
class Hour:
    received: int
    sent: int


COUNTED_AT_MOST = 10_000


def depths(tx: Tx, now: int) -> dict[str, tuple[int, int]]:
    """Of each kind how many deliveries wait, as far as they are counted, and since when the first is due."""
    found = {}
    for kind in (MAIL, WEBHOOK, NOTICE):
        wanted = "from deliveries where state = 'pending' and kind = :kind"
        counted = tx.one(
            f"select count(*) as waiting from (select 1 {wanted} limit :most) as counted",
            kind=kind,
            most=COUNTED_AT_MOST,
        )
        oldest = tx.one(f"select min(due_at) as due_at {wanted}", kind=kind)
        due_at = now if oldest is None or oldest["due_at"] is None else min(now, int(oldest["due_at"]))
        found[kind] = (int(counted["waiting"]) if counted else 0, due_at)
    return found


def list_waiting(tx: Tx, now: int) -> list[Waiting]:
    """Of what is due or will be, those that wait longest first."""
    rows = tx.all(
        "select lane, count(*) as waiting, min(created_at) as oldest_at, max(last_reply) as last_reply from"
        " (select lane, created_at, last_reply from deliveries where state = 'pending' and kind = 'mail'"
        " order by due_at limit :limit) as looked_at group by lane order by min(created_at)",
        limit=LOOKED_AT,
    )
    return [Waiting(row["lane"], row["waiting"], row["oldest_at"], row["last_reply"]) for row in rows]


def list_destinations(tx: Tx, since: int) -> list[DomainOutlook]:
    rows = tx.all(
        "select lane, sum(case when state = 'delivered' then 1 else 0 end) as delivered,"
        " sum(case when state = 'failed' then 1 else 0 end) as failed,"
        " sum(case when state = 'bounced' then 1 else 0 end) as bounced from"
        " (select lane, state, kind from deliveries where finished_at is not null and finished_at >= :since"
        " order by finished_at desc limit :limit) as looked_at where kind = 'mail'"
        " group by lane order by count(*) desc limit 50",
        since=since,
        limit=LOOKED_AT,
    )
    return [
        DomainOutlook(row["lane"], int(row["delivered"]), int(row["failed"]), int(row["bounced"]))
        for row in rows
    ]


def list_hours(tx: Tx, now: int) -> list[Hour]:
    """The last day, oldest first, from the log of events."""
    first = now // HOUR - HOURS + 1
    rows = tx.all(
        "select created_at, kind from (select created_at, kind from events where created_at >= :since"
        " order by created_at desc limit :limit) as looked_at",
        since=first * HOUR,
        limit=LOOKED_AT * 4,
    )
    counts = [[0, 0] for _ in range(HOURS)]
    for row in rows:
        place = row["created_at"] // HOUR - first
        if 0 <= place < HOURS and row["kind"] in ("message.received", "message.sent"):
            counts[place][row["kind"] == "message.sent"] += 1
    return [Hour(received, sent) for received, sent in counts]


def hurry(tx: Tx, lane: str, now: int) -> int:
    """What waits for a domain is due now."""
    return tx.run(
        "update deliveries set due_at = :now where id in (select id from deliveries where state = 'pending'"
        " and kind = 'mail' and lane = :lane and due_at > :now order by due_at limit :limit)",
        now=now,
        lane=lane,
        limit=LOOKED_AT,
    )
