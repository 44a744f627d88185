"""The queue by domain, and how delivery to each domain goes; the mails behind each figure."""

from typing import Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import accounts
from postroom.accounts.reach import Reach
from postroom.clock import DAY
from postroom.errors import ApiError, BadRequest
from postroom.mailbox import holds
from postroom.outward.holding import decide
from postroom.outward.holding.decide import Ruling
from postroom.queue import deliveries, statistics
from postroom.queue.statistics import DomainStatistics, ListedDelivery, WaitingLane
from postroom.web.call import Tx
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.operator.health import require_operator

PATH = "/app/operator/queue"
DAYS = {"1": DAY, "7": 7 * DAY}
CANCELLED_AT_ONCE = 500
ACCOUNTS_COUNTED = 200


class LaneForm(Struct, frozen=True):
    lane: str


class TickedForm(Struct, frozen=True):
    ids: list[str] = []
    lane: str = ""


class SpanQuery(Struct, frozen=True):
    days: Literal["1", "7"] = "1"


class BehindQuery(Struct, frozen=True):
    lane: str
    state: Literal["pending", "delivered", "failed", "bounced", "captured", "cancelled"] = "pending"
    days: Literal["1", "7"] = "7"


async def show_queue(desk: Desk) -> Response:
    waiting, held = await desk.call.resources.db.read(read_queue, desk)
    return await desk.show("queue.html", "operator", title="Queue", waiting=waiting, held=held)


def read_queue(tx: Tx, desk: Desk) -> tuple[list[WaitingLane], int]:
    """And how many sends of all accounts wait for a person."""
    waiting = read_waiting(tx, desk)
    reaches = [Reach(account.id) for account in accounts.list_all(tx)[:ACCOUNTS_COUNTED]]
    return waiting, sum(holds.count_within(tx, reach, holds.HELD) for reach in reaches)


def read_waiting(tx: Tx, desk: Desk) -> list[WaitingLane]:
    require_operator(tx, desk)
    return statistics.list_waiting(tx, desk.call.now())


async def export_queue(desk: Desk) -> Response:
    found = await desk.call.resources.db.read(read_waiting, desk)
    rows = [(each.lane, each.count, each.due, each.oldest_at, each.last_reply) for each in found]
    return sheets.to_file("queue.csv", ("domain", "waiting", "due", "oldestAt", "lastReply"), rows)


async def try_again(desk: Desk, body: LaneForm) -> Response:
    def work(tx: Tx) -> int:
        require_operator(tx, desk)
        return statistics.make_lane_due(tx, body.lane, desk.call.now())

    count = await desk.call.resources.db.write(work)
    desk.call.resources.db.ring(deliveries.BELL)
    return go(PATH, f"{count} are tried again now.")


async def try_some_again(desk: Desk, body: TickedForm) -> Response:
    def work(tx: Tx) -> int:
        require_operator(tx, desk)
        return statistics.make_due(tx, ticked(body), desk.call.now())

    count = await desk.call.resources.db.write(work)
    desk.call.resources.db.ring(deliveries.BELL)
    return go(behind(body), f"{count} of those ticked are tried again now.")


async def cancel_some(desk: Desk, body: TickedForm) -> Response:
    def look(tx: Tx) -> list[tuple[str, str]]:
        require_operator(tx, desk)
        return statistics.list_messages_of_deliveries(tx, ticked(body))

    count = await cancel_all(desk, await desk.call.resources.db.read(look))
    return go(behind(body), f"{count} mails are cancelled.")


def ticked(body: TickedForm) -> list[str]:
    if not body.ids:
        raise BadRequest("Tick what it is about first.", field="ids")
    return list(dict.fromkeys(body.ids))[: statistics.LISTED]


def behind(body: TickedForm) -> str:
    return link("/app/operator/behind", lane=body.lane)


async def cancel_lane(desk: Desk, body: LaneForm) -> Response:
    def look(tx: Tx) -> list[tuple[str, str]]:
        require_operator(tx, desk)
        return statistics.list_messages_of(tx, body.lane, CANCELLED_AT_ONCE)

    count = await cancel_all(desk, await desk.call.resources.db.read(look))
    return go(PATH, f"{count} mails are cancelled.")


async def cancel_all(desk: Desk, found: list[tuple[str, str]]) -> int:
    """Whole mails: who else would get one does not get it either."""
    db, count = desk.call.resources.db, 0
    for account_id, message_id in found:
        try:
            bells = await db.write(cancel_one, desk, account_id, message_id)
        except ApiError:  # it has just been delivered, or somebody else cancelled it
            continue
        db.ring(*bells)
        count += 1
    return count


def cancel_one(tx: Tx, desk: Desk, account_id: str, message_id: str) -> list[str]:
    call = desk.call
    ruling = Ruling.of(call.decider, call.resources.config.base_url, call.now())
    return decide.cancel(tx, Reach(account_id), message_id, ruling)


async def show_deliverability(desk: Desk, query: SpanQuery) -> Response:
    found = await desk.call.resources.db.read(read_destinations, desk, query.days)
    return await desk.show(
        "deliverability.html", "operator", title="Deliverability", destinations=found, query=query
    )


def read_destinations(tx: Tx, desk: Desk, days: str) -> list[DomainStatistics]:
    require_operator(tx, desk)
    return statistics.list_destinations(tx, desk.call.now() - DAYS[days])


async def export_deliverability(desk: Desk, query: SpanQuery) -> Response:
    found = await desk.call.resources.db.read(read_destinations, desk, query.days)
    head = ("domain", "delivered", "deferred", "failed", "bounced", "complained", "tlsPercent", "p95Seconds")
    rows = [
        (
            *(each.lane, each.delivered, each.deferred, each.failed),
            *(each.bounced, each.complained, "" if each.tls_percent is None else each.tls_percent),
            p95(each),
        )
        for each in found
    ]
    return sheets.to_file("deliverability.csv", head, rows)


def p95(destination: DomainStatistics) -> float | str:
    return "" if destination.p95_seconds is None else round(destination.p95_seconds, 3)


async def show_behind(desk: Desk, query: BehindQuery) -> Response:
    def work(tx: Tx) -> list[ListedDelivery]:
        require_operator(tx, desk)
        return statistics.list_deliveries(tx, query.lane, query.state, desk.call.now() - DAYS[query.days])

    found = await desk.call.resources.db.read(work)
    return await desk.show("behind.html", "operator", title=query.lane, found=found, query=query)
