"""Accounts: made, paused and opened by who runs the server."""

from dataclasses import dataclass

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import accounts, audit, keys, sessions
from postroom.accounts.accounts import Account
from postroom.accounts.reach import Reach
from postroom.accounts.rules import pauses
from postroom.accounts.rules.pauses import Pause
from postroom.config import PLANS, Plan
from postroom.errors import BadRequest
from postroom.mailbox import inboxes, usage
from postroom.outward.holding import decide
from postroom.outward.holding.decide import Ruling
from postroom.queue import deliveries
from postroom.upkeep import account_removal
from postroom.web.call import Tx
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.operator.health import require_operator
from postroom.web.dashboard.settings.rules import read_number

PATH = "/app/operator/accounts"
SHOWN = 200
MEGABYTE = 1_000_000


class AccountForm(Struct, frozen=True):
    name: str
    plan: str = "free"


class PlanForm(Struct, frozen=True):
    name: str
    plan: str
    megabytes: str = ""  # empty: no limit


class DeletionForm(Struct, frozen=True):
    typed: str = ""


@dataclass(frozen=True, slots=True)
class AccountRow:
    account: Account
    last_used_at: int | None
    pause: Pause | None


async def show_accounts(desk: Desk, token: str = "", link: str = "") -> Response:
    """`token` and `link` are shown this once."""
    found = await desk.call.resources.db.read(read_accounts, desk)
    return await desk.show(
        "accounts.html",
        "operator",
        title="Accounts",
        accounts=found,
        plans=PLANS,
        token=token,
        link_once=link,
    )


def read_accounts(tx: Tx, desk: Desk) -> list[AccountRow]:
    require_operator(tx, desk)
    found = accounts.list_all(tx)[:SHOWN]
    used = usage.last_uses(tx, [account.id for account in found])
    return [AccountRow(each, used.get(each.id), pauses.find(tx, each.id)) for each in found]


async def export(desk: Desk) -> Response:
    found = await desk.call.resources.db.read(read_accounts, desk)
    head = ("id", "name", "plan", "inboxes", "storedBytes", "createdAt", "lastUsedAt")
    rows = [
        (
            *(each.account.id, each.account.name, each.account.plan, each.account.inbox_count),
            *(each.account.stored_bytes, each.account.created_at, each.last_used_at),
        )
        for each in found
    ]
    return sheets.to_file("accounts.csv", head, rows)


def read_plan(value: str) -> Plan:
    plan = next((plan for plan in PLANS if plan == value), None)
    if plan is None:
        raise BadRequest(f"plan is one of {', '.join(PLANS)}.", field="plan")
    return plan


async def create_account(desk: Desk, body: AccountForm) -> Response:
    plan, token, now = read_plan(body.plan), keys.new_token(), desk.call.now()

    def work(tx: Tx) -> None:
        require_operator(tx, desk)
        account = accounts.add(tx, body.name, plan, now)
        key = keys.add(tx, account.id, None, "first key", token, now)
        record(tx, desk, "account.created", account.id)
        record(tx, desk, "key.created", account.id, key.id)

    await desk.call.resources.db.write(work)
    return await show_accounts(desk, token=token)


async def change_account(desk: Desk, account_id: str, body: PlanForm) -> Response:
    plan, megabytes = read_plan(body.plan), read_number(body.megabytes, "megabytes")
    limit = None if megabytes is None else megabytes * MEGABYTE

    def work(tx: Tx) -> None:
        require_operator(tx, desk)
        found = accounts.get(tx, account_id)
        if body.name != found.name:
            found = accounts.rename(tx, found, body.name)
            record(tx, desk, "account.renamed", account_id)
        if (plan, limit) != (found.plan, found.storage_limit_bytes):
            accounts.set_storage_limit(tx, accounts.set_plan(tx, found, plan), limit)
            record(tx, desk, "account.plan_changed", account_id)

    await desk.call.resources.db.write(work)
    return go(PATH, "Kept.")


async def delete_account(desk: Desk, account_id: str, body: DeletionForm) -> Response:
    """Whoever types its name means it. It is closed at once; upkeep removes its mail."""

    def work(tx: Tx) -> str:
        require_operator(tx, desk)
        found = accounts.get(tx, account_id)
        if body.typed.strip() != found.name:
            raise BadRequest(f"Type {found.name} to delete it with all its mail.", field="typed")
        account_removal.close(tx, found, desk.call.now())
        desk.call.record(tx, "account.deleted", found.id, before={"name": found.name})
        return found.name

    name = await desk.call.resources.db.write(work)
    desk.call.resources.db.ring(inboxes.GONE)
    return go(PATH, f"{name} is deleted. Its mail is removed within minutes.")


def record(tx: Tx, desk: Desk, action: str, account_id: str, target: str = "") -> None:
    """In the log of the account that it is about, with the person who did it."""
    call = desk.call
    audit.record(
        tx,
        *(call.caller.actor, action, target or account_id, Reach(account_id), call.now()),
        address=call.address,
    )


async def open_account(desk: Desk, account_id: str) -> Response:
    """A link that signs in to the account once."""
    token, now = sessions.new_token(), desk.call.now()

    def work(tx: Tx) -> None:
        require_operator(tx, desk)
        sessions.add_link(tx, accounts.get(tx, account_id).id, False, token, now)
        record(tx, desk, "login_link.created", account_id)

    await desk.call.resources.db.write(work)
    base_url = desk.call.resources.config.base_url
    return await show_accounts(desk, link=f"{base_url}/app/sign-in?link={token}")


async def pause(desk: Desk, account_id: str) -> Response:
    call = desk.call

    def work(tx: Tx) -> list[str]:
        require_operator(tx, desk)
        reach = Reach(accounts.get(tx, account_id).id)
        record(tx, desk, "pause.begun", account_id)
        return decide.begin_pause(
            tx, reach, Ruling.of(call.decider, call.resources.config.base_url, call.now())
        )

    call.resources.db.ring(*await call.resources.db.write(work))
    return go(PATH, "Paused. Nothing leaves this account until it is resumed.")


async def resume(desk: Desk, account_id: str) -> Response:
    def work(tx: Tx) -> None:
        require_operator(tx, desk)
        decide.end_pause(tx, Reach(accounts.get(tx, account_id).id), desk.call.now())
        record(tx, desk, "pause.ended", account_id)

    await desk.call.resources.db.write(work)
    desk.call.resources.db.ring(deliveries.HOLDS_BELL)
    return go(PATH, "Resumed. What nothing else holds goes now.")
