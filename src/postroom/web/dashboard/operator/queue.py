"""The queue and the delivery results by domain; and the emails behind each figure."""

from operator import attrgetter
from typing import Literal

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import accounts
from postroom.accounts.scope import Scope
from postroom.clock import DAY
from postroom.errors import ApiError, BadRequest
from postroom.mailbox import holds
from postroom.operations import deliverability, operator
from postroom.operations.deliverability import ShownProvider
from postroom.queue import statistics
from postroom.queue.providers import counts
from postroom.queue.statistics import DomainStatistics, ListedDelivery, WaitingLane
from postroom.web.call import Tx
from postroom.web.dashboard.actions import decides
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.display.rendering import link
from postroom.web.dashboard.page_context import PageContext, go

PATH = "/app/operator/queue"
DAYS = {"1": DAY, "7": 7 * DAY, "30": 30 * DAY}
CANCELLED_AT_ONCE = 500
ACCOUNTS_COUNTED = 200


class LaneForm(Struct, frozen=True):
    lane: str


class TickedForm(Struct, frozen=True):
    ids: list[str] = []
    lane: str = ""


class SpanQuery(Struct, frozen=True):
    days: Literal["1", "7", "30"] = "1"


class BehindQuery(Struct, frozen=True):
    lane: str
    state: Literal["pending", "delivered", "failed", "bounced", "captured", "cancelled"] = "pending"
    days: Literal["1", "7", "30"] = "7"


async def show_queue(context: PageContext) -> Response:
    waiting, held = await context.read(read_queue, context)
    return await context.show("queue.html", "operator", title="Queue", waiting=waiting, held=held)


def read_queue(tx: Tx, context: PageContext) -> tuple[list[WaitingLane], int]:
    """Return the waiting lanes, and how many sends of all accounts wait for a person."""
    waiting = read_waiting(tx, context)
    reaches = [Scope(account.id) for account in accounts.list_all(tx)[:ACCOUNTS_COUNTED]]
    return waiting, sum(holds.count_within(tx, scope, holds.HELD) for scope in reaches)


def read_waiting(tx: Tx, context: PageContext) -> list[WaitingLane]:
    operator.require_operator(tx, context.call.caller)
    return statistics.list_waiting(tx, context.call.now())


async def export_queue(context: PageContext) -> Response:
    found = await context.read(read_waiting, context)
    rows = [(each.lane, each.count, each.due, each.oldest_at, each.last_reply) for each in found]
    return sheets.to_file("queue.csv", ("domain", "waiting", "due", "oldestAt", "lastReply"), rows)


try_again = decides(operator.retry_lane, PATH, "{made} are being retried.", LaneForm, lambda form: form.lane)


async def cancel_some(context: PageContext, body: TickedForm) -> Response:
    found = await context.read(operator.list_messages_of_deliveries, context.call.caller, ticked(body))
    return go(behind(body), f"{await cancel_all(context, found)} emails are cancelled.")


def ticked(body: TickedForm) -> list[str]:
    if not body.ids:
        raise BadRequest("Select at least one row.", field="ids")
    return list(dict.fromkeys(body.ids))[: statistics.LISTED]


def behind(form: TickedForm) -> str:
    return link("/app/operator/behind", lane=form.lane)


try_some_again = decides(
    operator.retry_deliveries, behind, "{made} of the selected are being retried.", TickedForm, ticked
)


async def cancel_lane(context: PageContext, body: LaneForm) -> Response:
    caller = context.call.caller
    found = await context.read(operator.list_messages_of_lane, caller, body.lane, CANCELLED_AT_ONCE)
    return go(PATH, f"{await cancel_all(context, found)} emails are cancelled.")


async def cancel_all(context: PageContext, found: list[tuple[str, str]]) -> int:
    """Cancels whole emails, for all their recipients."""
    base_url, count = context.call.resources.config.base_url, 0
    for account_id, message_id in found:
        try:
            await context.decide(operator.cancel_message, account_id, message_id, base_url)
        except ApiError:  # it has just been delivered, or somebody else cancelled it
            continue
        count += 1
    return count


async def show_deliverability(context: PageContext, query: SpanQuery) -> Response:
    return await context.show(
        "deliverability.html",
        "operator",
        title="Deliverability",
        destinations=await context.read(read_destinations, context, query.days),
        providers=await context.read(read_providers, context, query.days),
        query=query,
    )


def read_providers(tx: Tx, context: PageContext, days: str) -> list[ShownProvider]:
    """Return the providers, for all accounts together."""
    operator.require_operator(tx, context.call.caller)
    return deliverability.show_all(tx, counts.list_of_server(tx, context.call.now() - DAYS[days]))


def read_destinations(tx: Tx, context: PageContext, days: str) -> list[DomainStatistics]:
    operator.require_operator(tx, context.call.caller)
    return statistics.list_destinations(tx, context.call.now() - DAYS[days])


async def export_deliverability(context: PageContext, query: SpanQuery) -> Response:
    found = await context.read(read_destinations, context, query.days)
    head = ("domain", "delivered", "deferred", "failed", "bounced", "complained", "tlsPercent", "p95Seconds")
    columns = attrgetter(*("lane", "delivered", "deferred", "failed", "bounced", "complained", "tls_percent"))
    rows = [(*columns(each), p95(each)) for each in found]
    return sheets.to_file("deliverability.csv", head, rows)


def p95(destination: DomainStatistics) -> float | None:
    return None if destination.p95_seconds is None else round(destination.p95_seconds, 3)


async def show_behind(context: PageContext, query: BehindQuery) -> Response:
    found = await context.read(read_behind, context, query)
    return await context.show("behind.html", "operator", title=query.lane, found=found, query=query)


def read_behind(tx: Tx, context: PageContext, query: BehindQuery) -> list[ListedDelivery]:
    operator.require_operator(tx, context.call.caller)
    return statistics.list_deliveries(tx, query.lane, query.state, context.call.now() - DAYS[query.days])
