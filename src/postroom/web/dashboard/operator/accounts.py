"""Accounts: made, paused and opened by who runs the server."""

from msgspec import Struct
from starlette.responses import Response

from postroom.accounts import accounts, keys, sessions
from postroom.accounts.accounts import Account
from postroom.accounts.rules import pauses
from postroom.accounts.rules.pauses import Pause
from postroom.config import PLANS, Plan
from postroom.errors import BadRequest
from postroom.mailbox import usage
from postroom.operations import operator
from postroom.web.call import Tx
from postroom.web.dashboard.desk import Desk, go
from postroom.web.dashboard.display import sheets
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


class AccountRow(Struct, frozen=True):
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
    operator.require_operator(tx, desk.call.caller)
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
    call, token = desk.call, keys.new_token()
    await call.resources.db.write(
        operator.create_account, call.decider, body.name, read_plan(body.plan), token, call.now()
    )
    return await show_accounts(desk, token=token)


async def change_account(desk: Desk, account_id: str, body: PlanForm) -> Response:
    call, megabytes = desk.call, read_number(body.megabytes, "megabytes")
    await call.resources.db.write(
        operator.change_account,
        call.decider,
        account_id,
        body.name,
        read_plan(body.plan),
        None if megabytes is None else megabytes * MEGABYTE,
        call.now(),
    )
    return go(PATH, "Kept.")


async def delete_account(desk: Desk, account_id: str, body: DeletionForm) -> Response:
    call = desk.call
    name = await call.resources.db.write(
        operator.delete_account, call.decider, account_id, body.typed, call.now()
    )
    return go(PATH, f"{name} is deleted. Its mail is removed within minutes.")


async def open_account(desk: Desk, account_id: str) -> Response:
    """A link that signs in to the account once."""
    call, token = desk.call, sessions.new_token()
    await call.resources.db.write(operator.add_login_link, call.decider, account_id, token, call.now())
    return await show_accounts(desk, link=f"{call.resources.config.base_url}/app/sign-in?link={token}")


async def pause(desk: Desk, account_id: str) -> Response:
    call, base_url = desk.call, desk.call.resources.config.base_url
    await call.resources.db.write(operator.pause_account, call.decider, account_id, base_url, call.now())
    return go(PATH, "Paused. Nothing leaves this account until it is resumed.")


async def resume(desk: Desk, account_id: str) -> Response:
    call = desk.call
    await call.resources.db.write(operator.resume_account, call.decider, account_id, call.now())
    return go(PATH, "Resumed. What nothing else holds goes now.")
