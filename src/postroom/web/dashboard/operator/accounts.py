"""Accounts: created, paused and opened by the operator."""

from operator import attrgetter

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
from postroom.operations.operator import AccountChange
from postroom.web.call import Tx
from postroom.web.dashboard.actions import decides
from postroom.web.dashboard.display import sheets
from postroom.web.dashboard.page_context import PageContext, go
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


async def show_accounts(context: PageContext, token: str = "", link: str = "") -> Response:
    """Show the accounts. `token` and `link` are shown only once."""
    found = await context.read(read_accounts, context)
    return await context.show(
        "accounts.html",
        "operator",
        title="Accounts",
        accounts=found,
        plans=PLANS,
        token=token,
        link_once=link,
    )


def read_accounts(tx: Tx, context: PageContext) -> list[AccountRow]:
    operator.require_operator(tx, context.call.caller)
    found = accounts.list_all(tx)[:SHOWN]
    used = usage.last_uses(tx, [account.id for account in found])
    return [AccountRow(each, used.get(each.id), pauses.find(tx, each.id)) for each in found]


async def export(context: PageContext) -> Response:
    found = await context.read(read_accounts, context)
    head = ("id", "name", "plan", "inboxes", "storedBytes", "createdAt", "lastUsedAt")
    columns = attrgetter("id", "name", "plan", "inbox_count", "stored_bytes", "created_at")
    rows = [(*columns(each.account), each.last_used_at) for each in found]
    return sheets.to_file("accounts.csv", head, rows)


def read_plan(value: str) -> Plan:
    plan = next((plan for plan in PLANS if plan == value), None)
    if plan is None:
        raise BadRequest(f"`plan` must be one of {', '.join(PLANS)}.", field="plan")
    return plan


async def create_account(context: PageContext, body: AccountForm) -> Response:
    token = keys.new_token()
    await context.decide(operator.create_account, body.name, read_plan(body.plan), None, token)
    return await show_accounts(context, token=token)


async def change_account(context: PageContext, account_id: str, body: PlanForm) -> Response:
    megabytes = read_number(body.megabytes, "megabytes")
    limit_bytes = None if megabytes is None else megabytes * MEGABYTE
    change = AccountChange(body.name, read_plan(body.plan), limit_bytes)
    await context.decide(operator.change_account, account_id, change)
    return go(PATH, "Saved.")


delete_account = decides(
    operator.delete_account,
    PATH,
    "{made} is deleted. Its email is removed within minutes.",
    DeletionForm,
    lambda form: form.typed,
)


async def open_account(context: PageContext, account_id: str) -> Response:
    """Creates a link that signs in to the account once."""
    call, token = context.call, sessions.new_token()
    await context.decide(operator.add_login_link, account_id, token, False)
    return await show_accounts(context, link=f"{call.resources.config.base_url}/app/sign-in?link={token}")


async def pause(context: PageContext, account_id: str) -> Response:
    base_url = context.call.resources.config.base_url
    await context.decide(operator.pause_account, account_id, base_url)
    return go(PATH, "Paused. This account sends no email until you resume it.")


resume = decides(
    operator.resume_account, PATH, "Resumed. Emails that are not held for another reason are sent now."
)
