"""Inboxes: created, named, limited and deleted; each with usage, rules, keys and its own webhook."""

from typing import Any

from msgspec import UNSET, Struct
from starlette.responses import Response

from postroom import fields
from postroom.accounts.rules import pauses
from postroom.accounts.rules.limits import Budget
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.limits import ALIASES
from postroom.mailbox import inboxes
from postroom.operations import addresses, holds, keys, webhooks
from postroom.operations import inboxes as operations
from postroom.processes import pools
from postroom.web import client_configuration
from postroom.web.api import webhooks as api_webhooks
from postroom.web.dashboard.actions import runs
from postroom.web.dashboard.display.plots import draw_qr_code
from postroom.web.dashboard.page_context import PageContext, go
from postroom.web.dashboard.pages.teamwork import LegalHoldForm
from postroom.web.dashboard.pages.webhooks import result_of_test
from postroom.web.dashboard.paging import SHOWN, OffsetQuery
from postroom.web.dashboard.settings.rules import (
    CHOICES,
    read_budget,
    read_days,
    saves_rules,
)

PATH = "/app/inboxes"
INBOX = f"{PATH}/{{inbox_id}}"


class InboxSettingsForm(Struct, rename="camel", frozen=True):
    display_name: str = ""
    retention_days: str = ""
    per_minute: str = ""
    per_day: str = ""
    cold_per_day: str = ""
    canary: bool = False


class InboxWebhookForm(Struct, frozen=True):
    url: str = ""


class AddressesForm(Struct, rename="camel", frozen=True):
    catch_all: bool = False
    subdomains: bool = False


class TypedForm(Struct, frozen=True):
    typed: str = ""


async def show_inboxes(context: PageContext, query: OffsetQuery) -> Response:
    page = await context.ask(operations.list_inboxes, query=operations.InboxQuery(None, SHOWN, query.offset))
    unread = await context.read(inboxes.count_unread, [each["id"] for each in page["data"]])
    return await context.show(
        "inbox_list.html",
        "settings",
        title="Inboxes",
        inboxes=page["data"],
        unread=unread,
        **query.of(page["total"]),
        domain=context.call.resources.config.domain,
    )


create_inbox = runs(operations.create_inbox, f"{PATH}/{{made.id}}", "{made.address} takes email now.")


async def show_inbox(context: PageContext, inbox_id: str, secret: str = "") -> Response:
    inbox = await context.ask(operations.get_inbox, inbox_id=inbox_id)
    own_aliases = await context.ask(
        addresses.list_aliases, inbox_id=inbox_id, query=fields.PageQuery(ALIASES)
    )
    meters = await context.ask(holds.get_inbox_limits, inbox_id=inbox_id)
    own_keys = (
        (await context.ask(keys.list_inbox_keys, inbox_id=inbox_id, query=fields.PageQuery()))
        if context.call.scope.is_account
        else {"data": []}
    )
    return await context.show(
        "inbox.html",
        "settings",
        title=inbox["address"],
        inbox=inbox,
        meters=meters,
        aliases=own_aliases["data"],
        keys=own_keys["data"],
        pause=await context.read(pauses.find, inbox_id),
        secret=secret,
        **CHOICES,
        endpoints=client_configuration.endpoints(context.call.resources.config),
        code=await pools.COMPOSING.run(draw_code, inbox["address"], context.call.resources.config),
    )


def draw_code(address: str, config: Config) -> str:
    """Draw a QR code with the settings for a mail client on the phone, without the password."""
    found = client_configuration.endpoints(config)
    if not found:
        return ""
    import segno  # for this page alone

    lines = [
        f"{endpoint.protocol.upper()}: {endpoint.host}:{endpoint.port} ({endpoint.security})"
        for endpoint in found
    ]
    code = segno.make_qr("\n".join([*lines, f"User name: {address}"]))
    return draw_qr_code(list(code.matrix_iter(border=4)))


def settings_of(form: InboxSettingsForm) -> dict[str, Any]:
    budget = read_budget(form.per_minute, form.per_day, form.cold_per_day)
    change = operations.InboxChange(
        display_name=form.display_name or None,
        retention_days=read_days(form.retention_days),
        limits=None if budget == Budget() else budget,
        canary=form.canary,
    )
    return {"body": change}


change_inbox = runs(operations.change_inbox, INBOX, "Saved.", InboxSettingsForm, settings_of)
set_rules = saves_rules(operations.change_inbox, operations.InboxChange, INBOX)
add_alias = runs(addresses.create_alias, f"{INBOX}#addresses", "Added {made.address}.")
delete_alias = runs(
    addresses.delete_alias,
    f"{INBOX}#addresses",
    "Deleted {body.address}.",
    addresses.NewAlias,
    lambda form: {"address": form.address},
)
set_addresses = runs(
    operations.change_inbox,
    f"{INBOX}#addresses",
    "Saved.",
    AddressesForm,
    lambda form: {
        "body": operations.InboxChange(catch_all=form.catch_all, subdomains=form.subdomains),
    },
)


async def set_webhook(context: PageContext, inbox_id: str, body: InboxWebhookForm) -> Response:
    change = operations.InboxChange(webhook_url=body.url or None)
    changed = await context.run(operations.change_inbox, inbox_id=inbox_id, body=change)
    if changed.webhook_secret is not UNSET:
        return await show_inbox(context, inbox_id, str(changed.webhook_secret))
    return go(f"{PATH}/{inbox_id}", "Webhook saved." if body.url else "The account's webhook is used.")


async def rotate_secret(context: PageContext, inbox_id: str) -> Response:
    made = await context.run(webhooks.rotate_inbox_secret, inbox_id=inbox_id)
    return await show_inbox(context, inbox_id, made.webhook_secret)


async def test_webhook(context: PageContext, inbox_id: str) -> Response:
    result = await result_of_test(context, api_webhooks.test_inbox_webhook, inbox_id=inbox_id)
    return go(f"{PATH}/{inbox_id}", result)


async def pause(context: PageContext, inbox_id: str) -> Response:
    await context.run(holds.put_pause, query=fields.ScopeFilter(inbox_id))
    return go(f"{PATH}/{inbox_id}", "Paused. Nothing is sent from this inbox until you resume.")


async def resume(context: PageContext, inbox_id: str) -> Response:
    await context.run(holds.delete_pause, query=fields.ScopeFilter(inbox_id))
    return go(f"{PATH}/{inbox_id}", "Resumed. Email that nothing else holds is sent now.")


hold = runs(
    operations.change_inbox,
    INBOX,
    lambda form: "Held. Nothing in this inbox is deleted." if form.is_held else "The legal hold is lifted.",
    LegalHoldForm,
    lambda form: {"body": operations.InboxChange(legal_hold=form.is_held)},
)


async def delete(context: PageContext, inbox_id: str, body: TypedForm) -> Response:
    """Delete an inbox. Typing the address confirms it."""
    inbox = await context.run(operations.get_inbox, inbox_id=inbox_id)
    if body.typed.strip() != inbox.address:
        raise BadRequest(f"Type {inbox.address} to delete the inbox and all its emails.", field="typed")
    await context.run(operations.delete_inbox, inbox_id=inbox_id)
    return go(PATH, f"{inbox.address} and all its email were deleted.")
