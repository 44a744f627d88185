"""For who runs the server: the queue by domain, how delivery goes, the state of the machine, the accounts."""

import shutil
from dataclasses import dataclass

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import accounts, keys
from postroom.accounts.accounts import Account
from postroom.clock import DAY, SECOND
from postroom.config import PLANS
from postroom.errors import BadRequest, Forbidden
from postroom.queue import deliveries, outlook
from postroom.queue.outlook import DomainOutlook, Hour, Waiting
from postroom.web.call import Tx
from postroom.web.dashboard.desk import Desk, go, is_operator
from postroom.web.dashboard.plots import bars

PATH = "/app/operator"


class AccountForm(Struct, frozen=True):
    name: str
    plan: str = "free"


class LaneForm(Struct, frozen=True):
    lane: str


@dataclass(frozen=True, slots=True)
class Overview:
    waiting: list[Waiting]
    destinations: list[DomainOutlook]
    hours: list[Hour]
    accounts: list[Account]
    oldest_seconds: float


async def show_operator(desk: Desk, token: str = "") -> Response:
    resources, now = desk.call.resources, desk.call.now()
    overview = await resources.db.read(read_overview, desk, now)
    disk = shutil.disk_usage(resources.config.data_dir)
    return await desk.show(
        "operator.html",
        "operator",
        title="Operator",
        overview=overview,
        inward=bars([hour.received for hour in overview.hours], "Mails in, by hour"),
        outward=bars([hour.sent for hour in overview.hours], "Mails out, by hour"),
        disk=disk,
        workers=resources.workforce,
        plans=PLANS,
        token=token,
    )


def read_overview(tx: Tx, desk: Desk, now: int) -> Overview:
    require_operator(tx, desk)
    return Overview(
        waiting=outlook.list_waiting(tx, now),
        destinations=outlook.list_destinations(tx, now - DAY),
        hours=outlook.list_hours(tx, now),
        accounts=accounts.list_all(tx),
        oldest_seconds=(now - deliveries.oldest_due_at(tx, now)) / SECOND,
    )


def require_operator(tx: Tx, desk: Desk) -> None:
    if not is_operator(tx, desk):
        raise Forbidden("This is for who runs the server: postroom login-link --operator opens it.")


async def create_account(desk: Desk, body: AccountForm) -> Response:
    plan = next((plan for plan in PLANS if plan == body.plan), None)
    if plan is None:
        raise BadRequest(f"plan is one of {', '.join(PLANS)}.", field="plan")
    token = keys.new_token()

    def work(tx: Tx) -> None:
        require_operator(tx, desk)
        account = accounts.add(tx, body.name, plan, desk.call.now())
        keys.add(tx, account.id, None, "first key", token, desk.call.now())

    await desk.call.resources.db.write(work)
    return await show_operator(desk, token)


async def try_again(desk: Desk, body: LaneForm) -> Response:
    def work(tx: Tx) -> int:
        require_operator(tx, desk)
        return outlook.hurry(tx, body.lane, desk.call.now())

    count = await desk.call.resources.db.write(work)
    desk.call.resources.db.ring(deliveries.BELL)
    return go(PATH, f"{count} are tried again now.")
