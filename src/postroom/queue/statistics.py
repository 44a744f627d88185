"""Statistics of the queue for the operator: what waits, deliveries by domain, emails by the hour."""

from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from postroom.accounts.rules.limits import LOOP_REPLIES_PER_HOUR
from postroom.clock import DAY, HOUR, SECOND
from postroom.queue.deliveries import MAIL, NOTICE, UNDER_WAY, WEBHOOK
from postroom.storage import pages
from postroom.storage.database import Row, Tx, item_from_row, literal, one_of

LOOKED_AT = 5000  # rows at most: an overview never scans a table
HOURS = 24
LISTED = 100


class WaitingLane(Struct, frozen=True):
    lane: str
    count: int
    due: int  # of them, now
    oldest_at: int
    next_at: int
    last_reply: str


class DomainStatistics(Struct):
    """How the newest deliveries to a domain ended."""

    lane: str
    delivered: int = 0
    failed: int = 0
    bounced: int = 0
    captured: int = 0
    cancelled: int = 0
    deferred: int = 0  # needed more than one attempt
    complained: int = 0
    encrypted: int = 0  # of those that a server outside took
    open: int = 0
    took: list[int] = field(default_factory=list)

    @property
    def p95_seconds(self) -> float | None:
        """From acceptance to the end, for delivered mail."""
        return p95_seconds(self.took)

    @property
    def tls_percent(self) -> int | None:
        """Return None if no external server has taken an email."""
        handed_over = self.encrypted + self.open
        return self.encrypted * 100 // handed_over if handed_over else None


class Hour(Struct, frozen=True):
    received: int
    sent: int
    failed: int  # or bounced
    event_seconds: float | None  # p95 from the arrival of an email to its event
    queue_seconds: float | None  # p95 from the acceptance of an email to the end of its delivery


class Loop(Struct, frozen=True):
    """A thread with as many sends within an hour as the limit of replies to an automatic sender."""

    thread_id: str
    inbox_id: str
    account_id: str
    count: int


class ListedDelivery(Struct, frozen=True):
    """A delivery that a figure counts."""

    id: str
    account_id: str
    message_id: str
    target: str
    state: str
    attempts: int
    last_reply: str
    created_at: int


class OutsideAnswers(Struct, frozen=True):
    """The newest outgoing emails: how many were taken, and how many found no connection."""

    taken: int
    unreached: int


COUNTED_AT_MOST = 10_000
LATELY = 7 * DAY
NO_CONNECTION = "no connection to %"


def p95_seconds(milliseconds: Sequence[int]) -> float | None:
    """Return the 95th percentile in seconds."""
    if not milliseconds:
        return None
    return sorted(milliseconds)[(len(milliseconds) * 95 - 1) // 100] / SECOND


def depths(tx: Tx, now: int) -> dict[str, tuple[int, int]]:
    """Return for each kind how many deliveries wait, up to a limit, and since when the first is due."""
    found = {}
    for kind in (MAIL, WEBHOOK, NOTICE):
        wanted = f"deliveries where state = 'pending' and kind = {literal(kind)}"
        waiting = pages.count_up_to(tx, COUNTED_AT_MOST, wanted)
        oldest = tx.one(f"select min(due_at) as due_at from {wanted}")
        due_at = now if oldest is None or oldest["due_at"] is None else min(now, int(oldest["due_at"]))
        found[kind] = (waiting, due_at)
    return found


def outside_answers(tx: Tx, now: int) -> OutsideAnswers:
    taken = tx.one(
        "select count(*) as number from (select id, attempts from deliveries where kind = 'mail'"
        " and finished_at is not null and finished_at >= :since and state = 'delivered'"
        " order by finished_at desc limit :limit) as ended join attempts on delivery_id = ended.id"
        " and number = ended.attempts where host <> ''",
        since=now - LATELY,
        limit=LISTED,
    )
    unreached = tx.one(
        "select count(*) as number from (select last_code, last_reply from deliveries where"
        " state = 'pending' and kind = 'mail' order by due_at limit :limit) as waiting"
        " where last_code is null and last_reply like :reply",
        reply=NO_CONNECTION,
        limit=LISTED,
    )
    return OutsideAnswers(*(int(row["number"]) if row else 0 for row in (taken, unreached)))


def list_waiting(tx: Tx, now: int) -> list[WaitingLane]:
    """List the lanes with waiting mail, longest wait first."""
    rows = tx.all(
        "select lane, created_at, due_at, last_reply from deliveries where state = 'pending'"
        " and kind = 'mail' order by due_at limit :limit",
        limit=LOOKED_AT,
    )
    by_lane: dict[str, list[Row]] = {}
    for row in rows:
        by_lane.setdefault(row["lane"], []).append(row)
    found = [_waiting(lane, of_lane, now) for lane, of_lane in by_lane.items()]
    return sorted(found, key=lambda waiting: waiting.oldest_at)


def _waiting(lane: str, rows: Sequence[Row], now: int) -> WaitingLane:
    replies = [row["last_reply"] for row in rows if row["last_reply"]]
    return WaitingLane(
        lane=lane,
        count=len(rows),
        due=sum(row["due_at"] <= now for row in rows),
        oldest_at=min(row["created_at"] for row in rows),
        next_at=rows[0]["due_at"],
        last_reply=replies[-1] if replies else "",
    )


def list_destinations(tx: Tx, since: int) -> list[DomainStatistics]:
    """List the busiest destinations first, from the newest finished deliveries."""
    rows = tx.all(
        "select lane, state, attempts, created_at, finished_at, (select has_tls from attempts where"
        " delivery_id = deliveries.id and number = deliveries.attempts) as has_tls from deliveries"
        " where kind = 'mail' and finished_at is not null and finished_at >= :since"
        " order by finished_at desc limit :limit",
        since=since,
        limit=LOOKED_AT,
    )
    found: dict[str, DomainStatistics] = {}
    for row in rows:
        _count(found.setdefault(row["lane"], DomainStatistics(row["lane"])), row)
    for lane in _complained_about(tx, since):
        found.setdefault(lane, DomainStatistics(lane)).complained += 1
    busiest = sorted(found.values(), key=lambda each: -(each.delivered + each.failed + each.bounced))
    return busiest[:LISTED]


def _count(destination: DomainStatistics, row: Row) -> None:
    setattr(destination, row["state"], getattr(destination, row["state"]) + 1)
    destination.deferred += row["attempts"] > 1
    if row["state"] == "delivered":
        destination.took.append(row["finished_at"] - row["created_at"])
        destination.encrypted += row["has_tls"] == 1
        destination.open += row["has_tls"] == 0


def _complained_about(tx: Tx, since: int) -> list[str]:
    """Return the lanes of emails with complaints."""
    ids = [row["message_id"] for row in _newest_events(tx, since) if row["kind"] == "message.complained"]
    if not ids:
        return []
    is_wanted, wanted = one_of("message_id", sorted(set(ids))[:LISTED])
    rows = tx.all(f"select lane from deliveries where {is_wanted} and kind = 'mail'", **wanted)
    return [row["lane"] for row in rows]


def _newest_events(tx: Tx, since: int) -> Iterable[Row]:
    return tx.all(
        "select created_at, kind, message_id from events where created_at >= :since"
        " order by created_at desc limit :limit",
        since=since,
        limit=LOOKED_AT * 4,
    )


def list_hours(tx: Tx, now: int) -> list[Hour]:
    """List the hours of the last day, oldest first, from the log of events and the queue."""
    first = now // HOUR - HOURS + 1
    places = {"message.received": 0, "message.sent": 1, "message.failed": 2, "message.bounced": 2}
    counts = [[0, 0, 0] for _ in range(HOURS)]
    for row in _newest_events(tx, first * HOUR):
        hour = row["created_at"] // HOUR - first
        if 0 <= hour < HOURS and row["kind"] in places:
            counts[hour][places[row["kind"]]] += 1
    delays = _by_hour(_event_delays(tx, first * HOUR), first)
    waits = _by_hour(_waits(tx, first * HOUR), first)
    return [
        Hour(received, sent, failed, p95_seconds(delays[hour]), p95_seconds(waits[hour]))
        for hour, (received, sent, failed) in enumerate(counts)
    ]


def _by_hour(rows: Iterable[Row], first: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(HOURS)]
    for row in rows:
        if 0 <= (hour := row["at"] // HOUR - first) < HOURS:
            found[hour].append(row["took"])
    return found


def _event_delays(tx: Tx, since: int) -> Iterable[Row]:
    """Return the delay from arrival to event of each email; examined mail has its event later."""
    return tx.all(
        "select looked_at.created_at as at, looked_at.created_at - messages.created_at as took from"
        " (select created_at, message_id, kind from events where created_at >= :since"
        " order by created_at desc limit :limit) as looked_at"
        " join messages on messages.id = looked_at.message_id where looked_at.kind = 'message.received'",
        since=since,
        limit=LOOKED_AT,
    )


def _waits(tx: Tx, since: int) -> Iterable[Row]:
    return tx.all(
        "select finished_at as at, finished_at - created_at as took from deliveries where kind = 'mail'"
        " and finished_at is not null and finished_at >= :since order by finished_at desc limit :limit",
        since=since,
        limit=LOOKED_AT,
    )


def list_loops(tx: Tx, now: int) -> list[Loop]:
    """List the loops, from the newest sends of the last hour."""
    rows = tx.all(
        "select messages.thread_id, messages.inbox_id, looked_at.account_id, count(*) as replies from"
        " (select message_id, account_id, kind from events where created_at > :since"
        " order by created_at desc limit :limit) as looked_at"
        " join messages on messages.id = looked_at.message_id where looked_at.kind = 'message.sent'"
        " group by messages.thread_id, messages.inbox_id, looked_at.account_id"
        " having count(*) >= :most order by count(*) desc limit 20",
        since=now - HOUR,
        limit=LOOKED_AT,
        most=LOOP_REPLIES_PER_HOUR,
    )
    return [Loop(row["thread_id"], row["inbox_id"], row["account_id"], row["replies"]) for row in rows]


def list_deliveries(tx: Tx, lane: str, state: str, since: int) -> list[ListedDelivery]:
    """List the deliveries of a domain that a figure counts, newest first; for pending, those that wait."""
    side = (
        "state = 'pending' and due_at >= 0 order by due_at"
        if state == "pending"
        else "finished_at is not null and finished_at >= :since order by finished_at desc"
    )
    rows = tx.all(
        "select id, account_id, message_id, target, state, attempts, last_reply, created_at, lane from"
        f" (select * from deliveries where kind = 'mail' and {side} limit :most) as looked_at"
        " where lane = :lane and state = :state limit :listed",
        lane=lane,
        state=state,
        since=since,
        most=LOOKED_AT,
        listed=LISTED,
    )
    return [item_from_row(ListedDelivery, row) for row in rows]


def list_messages_of(tx: Tx, lane: str, limit: int) -> list[tuple[str, str]]:
    """List the account and message of mail that waits for a domain."""
    rows = tx.all(
        "select distinct account_id, message_id from (select account_id, message_id, lane from deliveries"
        " where state = 'pending' and kind = 'mail' order by due_at limit :most) as looked_at"
        " where lane = :lane limit :limit",
        lane=lane,
        most=LOOKED_AT,
        limit=limit,
    )
    return [(row["account_id"], row["message_id"]) for row in rows]


def list_messages_of_deliveries(tx: Tx, delivery_ids: Sequence[str]) -> list[tuple[str, str]]:
    """List the account and message of deliveries that still wait."""
    is_wanted, wanted = one_of("id", delivery_ids)
    rows = tx.all(
        "select distinct account_id, message_id from deliveries"
        f" where {is_wanted} and state = 'pending' and kind = 'mail'",
        **wanted,
    )
    return [(row["account_id"], row["message_id"]) for row in rows]


def make_due(tx: Tx, delivery_ids: Sequence[str], now: int) -> int:
    """Makes waiting ones due now; an attempt under way keeps its claim."""
    is_wanted, wanted = one_of("id", delivery_ids)
    return tx.run(
        f"update deliveries set due_at = :now where {is_wanted} and state = 'pending' and kind = 'mail'"
        f" and due_at > :now and not ({UNDER_WAY})",
        now=now,
        **wanted,
    )


def make_lane_due(tx: Tx, lane: str, now: int) -> int:
    """Makes all that waits for a domain due now; an attempt under way keeps its claim."""
    return tx.run(
        "update deliveries set due_at = :now where id in (select id from deliveries where state = 'pending'"
        f" and kind = 'mail' and lane = :lane and due_at > :now and not ({UNDER_WAY})"
        " order by due_at limit :limit)",
        now=now,
        lane=lane,
        limit=LOOKED_AT,
    )
