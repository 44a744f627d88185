"""Keys of the account, its pods and inboxes: created, changed, restricted and revoked."""

from datetime import UTC, datetime, timedelta

from msgspec import UNSET, Struct
from starlette.responses import Response

from postroom.accounts import keys
from postroom.accounts.keys import Key
from postroom.accounts.permissions import KNOWN
from postroom.accounts.rules.limits import Budget
from postroom.mailbox import inboxes
from postroom.operations import keys as operations
from postroom.operations.keys import ApiKey
from postroom.web.call import Tx
from postroom.web.dashboard import undo
from postroom.web.dashboard.forms import WHOLE_SCOPE
from postroom.web.dashboard.page_context import PageContext, go, plain
from postroom.web.dashboard.paging import SHOWN, OffsetQuery
from postroom.web.dashboard.settings.rules import (
    CHOICES,
    LONGEST_DAYS,
    read_budget,
    read_number,
    saves_rules,
)

PATH = "/app/settings"


class KeyForm(Struct, rename="camel", frozen=True):
    """`scope_id` is `all` for the account, else the id of a pod or of an inbox. A form must name it."""

    scope_id: str
    name: str = ""
    permissions: list[str] = []
    days: str = ""


class KeyChangeForm(Struct, rename="camel", frozen=True):
    """`days` is empty if its expiry stays as it is."""

    name: str = ""
    permissions: list[str] = []
    days: str = ""
    per_minute: str = ""
    per_day: str = ""
    cold_per_day: str = ""


async def show_keys(context: PageContext, query: OffsetQuery, token: str = "") -> Response:
    found, addresses = await context.read(read_keys, context, query.offset)
    return await context.show(
        "keys.html",
        "settings",
        title="API keys",
        keys=plain([ApiKey.of(key) for key in found[:SHOWN]]),
        addresses=addresses,
        **query.of(query.offset + len(found)),
        token=token,
        permissions=KNOWN,
    )


def read_keys(tx: Tx, context: PageContext, offset: int) -> tuple[list[Key], dict[str, str]]:
    """Return one key more than a page shows, to know whether there is another page."""
    found = keys.list_of_account(tx, context.call.account_id, SHOWN + 1, offset)
    named = {key.inbox_id for key in found if key.inbox_id is not None}
    return found, inboxes.addresses_of(tx, sorted(named))


async def create_key(context: PageContext, body: KeyForm) -> Response:
    chosen = None if body.scope_id == WHOLE_SCOPE else body.scope_id
    is_pod = chosen is not None and chosen.startswith("pod_")
    wanted = operations.NewScopedKey(
        body.name,
        body.permissions or None,
        read_end(context, body.days),
        pod_id=chosen if is_pod else None,
        inbox_id=None if is_pod else chosen,
    )
    made = await context.ask(operations.create_api_key, body=wanted)
    return await show_keys(context, OffsetQuery(), token=made["token"])


def read_end(context: PageContext, days: str) -> datetime | None:
    number = read_number(days, "days")
    now = datetime.fromtimestamp(context.call.now() / 1000, UTC)
    return None if number is None else now + timedelta(days=min(number, LONGEST_DAYS))


async def show_key(context: PageContext, key_id: str) -> Response:
    key = await context.ask(operations.get_api_key, key_id=key_id)
    named = [key["inboxId"]] if key["inboxId"] else []
    return await context.show(
        "key.html",
        "settings",
        title=key["name"] or "API key",
        key=key,
        addresses=await context.read(inboxes.addresses_of, named),
        permissions=[word for word in KNOWN if word in key["permissions"]],
        **CHOICES,
    )


async def change_key(context: PageContext, key_id: str, body: KeyChangeForm) -> Response:
    """Change a key. Unchanged limits are left out.

    A key gets its own budget only when limits are set for it.
    """
    budget = read_budget(body.per_minute, body.per_day, body.cold_per_day)
    limits = None if budget == Budget() else budget
    key = await context.run(operations.get_api_key, key_id=key_id)
    change = operations.KeyChange(
        name=body.name,
        permissions=body.permissions,
        limits=UNSET if limits == key.limits else limits,
        expires_at=read_end(context, body.days) or UNSET,
    )
    await context.run(operations.change_api_key, key_id=key_id, body=change)
    return go(f"{PATH}/keys/{key_id}", "Saved.")


set_key_rules = saves_rules(operations.change_api_key, operations.KeyChange, f"{PATH}/keys/{{key_id}}")


revoke_key = undo.delayed(
    operations.delete_api_key,
    f"{PATH}/keys",
    "Revoking the key in {seconds} seconds. Its streams and sessions end too.",
)
